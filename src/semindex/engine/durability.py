"""When the store makes durable what it was given, and builds its search structures: once edits have come to rest.

A flush holds up the searches of the embedded store, and whoever edits searches soon after. What is not flushed survives
kill -9 all the same; only a power failure may cost storing it again.
"""

import logging

import trio

from semindex.engine.collection import CollectionKeeper
from semindex.engine.workqueue import WorkQueue
from semindex.model.errors import StoreRejected, StoreUnavailable
from semindex.ports import VectorStore

logger = logging.getLogger(__name__)

QUIET_BEFORE_FLUSH, LONGEST_UNFLUSHED = 3.0, 30.0
"""Seconds of quiet after which the store is flushed, and seconds after which it is flushed in any case."""


async def keep_durable(queue: WorkQueue, keeper: CollectionKeeper, store: VectorStore, begin: trio.Event) -> None:
    """Flush and optimize a collection whenever its workspace has come to rest after the beginning, until cancelled."""
    await begin.wait()
    while True:
        await queue.idle()
        latest, marks, is_quiet = trio.current_time() + LONGEST_UNFLUSHED, queue.marks, False
        while not is_quiet:
            with trio.move_on_at(min(latest, trio.current_time() + QUIET_BEFORE_FLUSH)) as waiting:
                await queue.marked_beyond(marks)
            marks, is_quiet = queue.marks, waiting.cancelled_caught
        try:
            if keeper.exists:
                await store.flush(keeper.name)
                await store.optimize(keeper.name)
        except (StoreUnavailable, StoreRejected) as error:
            # What was stored stays searchable, and the next rest tries again: no reason to end the indexing.
            logger.warning("%s was not made durable: %s", keeper.name, error)
        await queue.marked_beyond(marks)
