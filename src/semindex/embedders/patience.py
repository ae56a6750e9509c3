"""When requests are sent, and sent again: so many at once, pauses after failures, a gate that rate limits close."""

import email.utils
import logging
import math
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import trio

from semindex.clock import utc_now
from semindex.embedders.endpoint import Passing, RateLimited
from semindex.ports import TryFailed

logger = logging.getLogger(__name__)
T = TypeVar("T")

FIRST_PAUSE = 0.5
"""Seconds before the second try after a failed connection or a server's error, doubling."""
RATE_PAUSE, LONGEST_RATE_PAUSE = 5.0, 300.0
"""Seconds for which a rate limit closes the gate if the server names no time: doubling from first to longest."""
RATE_TRIES = 3


class Patience:
    """Decides when a request is sent and whether it is sent again, for all requests of the cell together."""

    def __init__(self, *, concurrency: int, tries: int, failed: TryFailed) -> None:
        """``tries`` bounds how often a passing failure is tried in all."""
        self._slots = trio.CapacityLimiter(concurrency)
        self._tries = tries
        self._failed = failed
        self._opens_at = 0.0
        self._pause = RATE_PAUSE

    async def __call__(self, request: Callable[[], Awaitable[T]]) -> T:
        """Carry out a request.

        Raises what its last try raised, and RateLimited also if the caller's own time ends too early.
        """
        failures = limits = 0
        while True:
            await self._pass_gate()
            async with self._slots:
                if trio.current_time() < self._opens_at:
                    continue  # it was closed while this request waited for its turn
                began = trio.current_time()
                try:
                    result = await request()
                except RateLimited as error:
                    self._close_gate(error.retry_after)
                    limits += 1
                    if limits == RATE_TRIES:
                        raise
                    continue
                except Passing as error:
                    failures += 1
                    if failures == self._tries:
                        raise
                    self._failed(error, trio.current_time() - began)
                else:
                    self._pause = RATE_PAUSE
                    return result
            # A little apart, so that requests that failed together do not come back together.
            await trio.sleep(FIRST_PAUSE * 2 ** (failures - 1) * (1 + random.random() / 4))

    async def _pass_gate(self) -> None:
        while (left := self._opens_at - trio.current_time()) > 0:
            if self._opens_at > trio.current_effective_deadline():
                raise RateLimited(f"The embedding endpoint limits the rate of requests for another {left:.0f} s.", left)
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
        seconds = float(value)
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (moment - utc_now()).total_seconds() if moment.tzinfo else math.nan
    return max(0.0, seconds) if math.isfinite(seconds) else None
