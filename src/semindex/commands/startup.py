"""What a long-running process does once, when everything is imported and before the first work comes in."""

import gc

COLLECTOR_THRESHOLDS = (5_000, 5, 1_000)
"""How many new objects, young and middle collections make the next generation due: more than Python's default.

Indexing makes many objects that are all freed without the collector's help.
"""


def quieten_collector() -> None:
    """Keep the cyclic collector from stopping the loop for tens of milliseconds.

    A full collection walks every container there is. What was made by importing lives as long as the process, so it is
    taken out of the collector's sight.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
