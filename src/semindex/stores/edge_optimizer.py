"""When the search structures of a collection of the embedded store are built, and the process that does it."""

import subprocess

import trio

from semindex.model.errors import StoreUnavailable
from semindex.stores.edge_connection import open_lifeline, worker_command
from semindex.stores.edge_protocol import Settings

LARGE_VECTORS = 64 * 1024 * 1024
"""Bytes of vectors above which looking at each one becomes slower than a walk through a graph is worth."""

LARGE_POINTS = 50_000

STALE_SHARE = 0.2
"""Share of a collection that may lack a graph, or be dead weight, before it is optimised again (the engine's own
threshold for the latter)."""

DEAD_POINTS = 1_000
"""Removed points below which the engine does not clean up."""

OPTIMIZE_DEADLINE = 1800.0
"""Seconds; 100,000 points of dimension 384 took 96 on two busy cores."""


def worth_optimizing(points: int, indexed: int, removed: int, dimension: int) -> bool:
    """Say whether a collection is large and mostly not in a graph, or holds too many dead points.

    ``indexed`` counts the points of graphs with those that were removed from them since.
    """
    if removed >= DEAD_POINTS and removed > STALE_SHARE * (points + removed):
        return True
    large = points > LARGE_POINTS or points * dimension * 4 > LARGE_VECTORS
    return large and points - max(indexed - removed, 0) > STALE_SHARE * points


async def run_optimizer(settings: Settings, collection: str) -> None:
    """Build the search structures of a collection that is closed. Cancelling ends the process; nothing is lost by it.

    Raises StoreUnavailable.
    """
    with open_lifeline() as lifeline:
        command = worker_command("optimize", lifeline, settings, collection)
        try:
            with trio.fail_after(OPTIMIZE_DEADLINE):
                done = await trio.run_process(
                    command,
                    capture_stderr=True,
                    check=False,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[lifeline],
                    start_new_session=True,
                )
        except (trio.TooSlowError, OSError) as error:
            raise StoreUnavailable(f"The collection {collection} could not be optimised: {error!r}.") from None
    if done.returncode:
        last_words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise StoreUnavailable(f"The collection {collection} could not be optimised: {last_words}.")
