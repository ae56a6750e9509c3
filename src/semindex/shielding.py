"""The two ways to go on although the caller is cancelled: never without a bound, never silent when the bound has cut.

Everything that shields from cancellation does it here, but for what mends a library from within (:mod:`semindex.http`).
"""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import trio

logger = logging.getLogger(__name__)


@contextmanager
def shielded(seconds: float, what: str) -> Iterator[None]:
    """Let the body go on for so many seconds, cancelled or not, then cut it; for closing what must be closed in time.

    ``what`` is what the log names when it was cut.
    """
    with trio.move_on_after(seconds, shield=True) as scope:
        yield
    if scope.cancelled_caught:
        _tell(what, seconds)


@asynccontextmanager
async def grace_period(seconds: float, what: str) -> AsyncIterator[None]:
    """Let the body take its time, and once the caller is cancelled, so many seconds more; for finishing what was begun.

    ``what`` is what the log names when it was cut. As with any nursery, errors of the body come
    out in an ExceptionGroup.
    """
    scope = trio.CancelScope(shield=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_bound_when_cancelled, scope, seconds)
        with scope:
            yield
        if scope.cancelled_caught:
            _tell(what, seconds)
        nursery.cancel_scope.cancel(reason="the body is over")


async def _bound_when_cancelled(scope: trio.CancelScope, seconds: float) -> None:
    try:
        await trio.sleep_forever()
    finally:
        scope.deadline = trio.current_time() + seconds


def _tell(what: str, seconds: float) -> None:
    logger.warning("%s took longer than %g seconds and was cut", what, seconds)
