"""Trying again: pauses after a failure, and one gate that a rate limit closes for every request of the cell."""

import email.utils
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

import trio

from semindex.model.errors import EmbedderUnavailable

logger = logging.getLogger(__name__)
T = TypeVar("T")

FIRST_PAUSE = 0.5
"""Seconds before the second try after a failed connection or a server's error, doubling."""
RATE_PAUSE, LONGEST_RATE_PAUSE = 5.0, 300.0
"""Seconds for which a rate limit closes the gate where the server names no time: doubling from the first to the longest."""
RATE_TRIES = 3


class RateLimited(EmbedderUnavailable):
    """The endpoint wants fewer requests for a while."""

    def __init__(self, message: str, retry_after: float | None) -> None:
        """``retry_after``: seconds that the server asks for."""
        super().__init__(message)
        self.retry_after = retry_after


class Passing(EmbedderUnavailable):
    """A failure that may be over in a moment: no connection, a server's error, no answer in time."""


class Patience:
    """Decides how often and when a request is tried again, for all requests of the cell together."""

    def __init__(self, tries: int) -> None:
        """``tries`` bounds how often a passing failure is tried in all."""
        self._tries = tries
        self._opens_at = 0.0
        self._pause = RATE_PAUSE

    async def __call__(self, request: Callable[[], Awaitable[T]]) -> T:
        """Carry out a request; raises what its last try raised."""
        failures = limits = 0
        while True:
            await self._pass_gate()
            try:
                result = await request()
            except RateLimited as error:
                limits += 1
                if limits == RATE_TRIES:
                    raise
                self._close_gate(error.retry_after)
            except Passing:
                failures += 1
                if failures == self._tries:
                    raise
                # A little apart, so that requests that failed together do not come back together.
                await trio.sleep(FIRST_PAUSE * 2 ** (failures - 1) * (1 + random.random() / 4))
            else:
                self._pause = RATE_PAUSE
                return result

    async def _pass_gate(self) -> None:
        while trio.current_time() < self._opens_at:  # noqa: ASYNC110 - a time passes here, not an event
            await trio.sleep_until(self._opens_at)

    def _close_gate(self, retry_after: float | None) -> None:
        """Close the gate for everybody; requests that were limited together close it once."""
        now = trio.current_time()
        if self._opens_at > now:
            return
        pause = self._pause if retry_after is None else min(retry_after, LONGEST_RATE_PAUSE)
        self._opens_at = now + pause
        self._pause = min(2 * self._pause, LONGEST_RATE_PAUSE)
        logger.warning("the embedding endpoint limits the rate: no request for %.1f s", pause)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a Retry-After header asks for, given as a number or as a date."""
    value = headers.get("retry-after", "").strip()
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, (moment - datetime.now(UTC)).total_seconds()) if moment.tzinfo else None
