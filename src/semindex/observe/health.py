"""Health of what a cell depends on, learnt from the calls that are made anyway; probed only while they fail."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime

import trio

from semindex.clock import utc_now
from semindex.engine.revision import Revision
from semindex.model.answers import DependencyStatus
from semindex.model.errors import SemindexError
from semindex.observe.calls import Call

PROBE_PAUSE = 2.0
"""Seconds between two probes."""
PROBE_TIMEOUT = 10.0
"""Seconds after which a probe has failed."""


class DependencyHealth:
    """What is known of one dependency; an observer of its port (:mod:`semindex.observe.calls`)."""

    def __init__(
        self,
        unavailable: type[SemindexError],
        changed: Callable[[], None],
        *,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """``unavailable`` is what the port raises when there was no answer; ``changed`` is told of every change."""
        self._unavailable = unavailable
        self._changed = changed
        self._clock = clock
        self._failing = trio.Event()
        self.recoveries = Revision()
        """Counts how often calls succeeded again after some had failed."""
        self.status = DependencyStatus(reachable=True)

    def __call__(self, call: Call) -> None:
        """Take note of a call. One that was refused was answered; an error that no adapter knows was not."""
        error = call.error
        reachable = error is None or (isinstance(error, SemindexError) and not isinstance(error, self._unavailable))
        last_error = self.status.last_error if reachable else _told(error)
        was_reachable = self.status.reachable
        self.status = DependencyStatus(reachable, round(1000 * call.seconds, 2), last_error, self._clock())
        if not reachable:
            self._failing.set()
        elif not was_reachable:
            self._failing = trio.Event()
            self.recoveries.bump()
        if reachable != was_reachable:
            self._changed()

    def try_failed(self, error: SemindexError, seconds: float) -> None:
        """Take note of a try that an adapter repeats: the call it belongs to may be long in coming to its end."""
        self(Call("", (), seconds, error))

    async def probe_while_failing(self, probe: Callable[[], Awaitable[object]], *, at_first: bool = False) -> None:
        """Call ``probe`` again and again while calls fail, and with ``at_first`` once before anything is known.

        It goes through the observed port, which tells how it ended.
        """
        if at_first:
            await _carry_out(probe)
        while True:
            await self._failing.wait()
            await trio.sleep(PROBE_PAUSE)
            if not self.status.reachable:
                await _carry_out(probe)


async def _carry_out(probe: Callable[[], Awaitable[object]]) -> None:
    with trio.move_on_after(PROBE_TIMEOUT), suppress(Exception):
        await probe()


def _told(error: Exception | None) -> str:
    """Return what may be told of an error: messages of foreign ones may hold anything."""
    return str(error) if isinstance(error, SemindexError) else f"An unexpected {type(error).__name__}."
