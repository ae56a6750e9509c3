"""When requests are sent and sent again, under a virtual clock."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import chain, repeat

import pytest
import trio
import trio.testing

from semindex.embedders.endpoint import Passing, RateLimited
from semindex.embedders.patience import LONGEST_RATE_PAUSE, RATE_PAUSE, Patience, retry_after
from semindex.model.errors import EmbedderRejected, SemindexError


class Server:
    """Answers a request after a second with the next of these errors, or else with its number."""

    def __init__(self, *errors: Exception | None, seconds: float = 1.0) -> None:
        self._errors = chain(errors, repeat(None))
        self._seconds = seconds
        self.began: list[float] = []
        self.under_way = self.peak = 0

    async def request(self) -> int:
        self.began.append(trio.current_time())
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        error = next(self._errors)
        try:
            await trio.sleep(self._seconds)
        finally:
            self.under_way -= 1
        if error is not None:
            raise error
        return len(self.began)


def patient(
    *, concurrency: int = 4, tries: int = 3, failed: Callable[[SemindexError, float], None] = lambda *_: None
) -> Patience:
    return Patience(concurrency=concurrency, tries=tries, failed=failed)


async def in_parallel(count: int, call: Callable[[], Awaitable[object]]) -> None:
    async def one() -> None:
        await call()

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(one)


async def test_a_passing_failure_is_tried_again_after_growing_pauses(autojump_clock: trio.testing.MockClock) -> None:
    told: list[tuple[str, float]] = []
    server = Server(Passing("first"), Passing("second"))

    assert await patient(failed=lambda error, seconds: told.append((str(error), seconds)))(server.request) == 3

    first, second = (later - earlier - 1 for earlier, later in zip(server.began, server.began[1:], strict=False))
    assert 0.5 <= first <= 0.625
    assert 1.0 <= second <= 1.25
    assert [message for message, _ in told] == ["first", "second"]
    assert [seconds for _, seconds in told] == pytest.approx([1, 1])


async def test_the_last_failure_is_raised_after_so_many_tries(autojump_clock: trio.testing.MockClock) -> None:
    server = Server(*[Passing(str(number)) for number in range(9)])

    with pytest.raises(Passing, match="3"):
        await patient(tries=4)(server.request)

    assert len(server.began) == 4


async def test_what_no_repetition_mends_is_raised_at_once(autojump_clock: trio.testing.MockClock) -> None:
    server = Server(EmbedderRejected("these texts"))

    with pytest.raises(EmbedderRejected):
        await patient()(server.request)

    assert len(server.began) == 1


async def test_so_many_requests_are_under_way_at_once_and_a_pause_takes_no_turn(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = Server(Passing("1"), Passing("2"), Passing("3"))
    patience = patient(concurrency=3)

    await in_parallel(12, lambda: patience(server.request))

    assert server.peak == 3
    assert server.began[3:6] == [1.0] * 3  # while the first three pause


async def test_a_rate_limit_pauses_everybody_once_for_as_long_as_the_server_asks(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = Server(*[RateLimited("", 2.0)] * 4)
    patience = patient()

    await in_parallel(12, lambda: patience(server.request))

    assert server.began == [0.0] * 4 + [3.0] * 4 + [4.0] * 4 + [5.0] * 4


async def test_a_limit_that_names_no_time_pauses_longer_each_time_and_a_success_ends_that(
    autojump_clock: trio.testing.MockClock,
) -> None:
    limited = RateLimited("", None)
    server = Server(limited, limited, None, limited, seconds=0)
    patience = patient()

    await patience(server.request)
    await patience(server.request)

    assert server.began == [0, RATE_PAUSE, 3 * RATE_PAUSE, 3 * RATE_PAUSE, 4 * RATE_PAUSE]


async def test_after_three_limits_a_request_gives_up_and_leaves_the_gate_closed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = Server(*[RateLimited("limited", 2.0)] * 3, seconds=0)
    patience = patient()

    with pytest.raises(RateLimited, match="limited"):
        await patience(server.request)
    await patience(server.request)

    assert server.began == [0, 2, 4, 6]


async def test_no_server_pauses_us_for_more_than_five_minutes(autojump_clock: trio.testing.MockClock) -> None:
    server = Server(RateLimited("", 86_400.0), seconds=0)

    await patient()(server.request)

    assert server.began == [0, LONGEST_RATE_PAUSE]


async def test_whoever_has_no_time_for_a_closed_gate_is_told_at_once(autojump_clock: trio.testing.MockClock) -> None:
    server = Server(RateLimited("", 100.0), seconds=0)
    patience = patient()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(patience, server.request)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(RateLimited, match="another 100 s"), trio.fail_after(30):
            await patience(server.request)
        assert trio.current_time() == 0

    assert len(server.began) == 2


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("2", 2.0), (" 0.5 ", 0.5), ("-3", 0.0), ("", None), ("soon", None), ("nan", None), ("inf", None), (None, None)],
)
def test_a_retry_after_is_a_number_of_seconds(value: str | None, seconds: float | None) -> None:
    assert retry_after({} if value is None else {"retry-after": value}) == seconds


def test_a_retry_after_may_be_a_date() -> None:
    def at(seconds: int) -> dict[str, str]:
        return {"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)}

    assert 25 < (retry_after(at(30)) or 0) <= 30
    assert retry_after(at(-30)) == 0
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 -0000"}) is None
