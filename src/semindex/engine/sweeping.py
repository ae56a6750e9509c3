"""When the working tree is compared with the index: whenever somebody asks, and from time to time.

One sweep runs at a time. Whoever asks for one is served by a sweep that begins after the asking, never by one that is
already under way, since that may have passed the file in question.
"""

from collections.abc import Awaitable, Callable

import trio
from attrs import define, field

from semindex.engine.backoff import Backoff
from semindex.model.errors import NotReady, SemindexError

FIRST_RETRY = 1.0
"""Seconds before a sweep that failed is tried again, doubling up to the interval."""


@define
class _Request:
    full: bool = False
    done: trio.Event = field(factory=trio.Event)
    error: Exception | None = field(factory=lambda: NotReady("The workspace stopped before it was compared."))


class Sweeper:
    """Runs sweeps on demand and at least every ``interval`` seconds."""

    def __init__(self, sweep: Callable[[bool], Awaitable[None]], *, interval: float) -> None:
        """Make a sweeper; ``sweep(full)`` does one, where a full one also tries failed files again."""
        self._sweep = sweep
        self._interval = interval
        self._next = _Request()
        self._wanted = trio.Event()

    async def request(self, *, full: bool = False) -> None:
        """Return when a sweep that begins from now on has ended; raises what it raised."""
        request = self._next
        request.full |= full
        self._wanted.set()
        await request.done.wait()
        if request.error is not None:
            raise request.error

    async def run(self) -> None:
        """Serve requests until cancelled; the first sweep begins at once."""
        backoff = Backoff(FIRST_RETRY, self._interval)
        try:
            while True:
                request, self._next, self._wanted = self._next, _Request(), trio.Event()
                await self._serve(request)
                if request.error is None:
                    backoff.reset()
                with trio.move_on_after(self._interval if request.error is None else backoff.next()) as waiting:
                    await self._wanted.wait()
                self._next.full |= waiting.cancelled_caught
        finally:
            self._next.done.set()
            self._next = _Request()

    async def _serve(self, request: _Request) -> None:
        try:
            await self._sweep(request.full)
        except SemindexError as error:
            request.error = error
        else:
            request.error = None
        finally:
            request.done.set()
