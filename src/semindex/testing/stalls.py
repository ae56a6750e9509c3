"""Watching that nothing blocks the loop or holds the interpreter's lock, in CPU time: a busy machine adds nothing."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from attrs import define

TICK = 0.001
"""Seconds between two looks."""


@define
class Stalls:
    """The worst that was seen, in seconds of CPU time."""

    loop: float = 0.0
    """Burnt by the loop's own thread between two looks: a step that blocks."""
    others: float = 0.0
    """Burnt by other threads of the process while the loop could not look: a lock that is held."""


@asynccontextmanager
async def watched_stalls() -> AsyncIterator[Stalls]:
    """Watch the loop for as long as the context lasts.

    Wall time would blame this process for what other processes do to it, so that both figures are CPU time. ``others``
    can be too high where a thread works without the lock while the loop waits for a processor; what holds the lock for
    long stands out all the same.
    """
    stalls = Stalls()

    async def look() -> None:
        while True:
            wall, own, whole = time.perf_counter(), time.thread_time(), time.process_time()
            await trio.sleep(TICK)
            own, whole = time.thread_time() - own, time.process_time() - whole
            stalls.loop = max(stalls.loop, own)
            stalls.others = max(stalls.others, min(whole - own, time.perf_counter() - wall))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        yield stalls
        nursery.cancel_scope.cancel(reason="watched long enough")
