"""Reaching a Qdrant server: URLs, what answers mean, and how often a call is tried, under a virtual clock."""

import json
from collections.abc import Awaitable, Callable
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from semindex.model.errors import (
    CollectionMissing,
    ConfigurationError,
    SemindexError,
    StoreRejected,
    StoreUnavailable,
)
from semindex.stores.qdrant_calls import (
    TRIES,
    Answered,
    Attempts,
    CollectionExists,
    RequestTooLarge,
    Unanswered,
    parse_url,
)

RECORDED = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "parity" / "qdrant_rest.json").read_text(encoding="utf-8")
)["urls"]
ERROR = b'{"status": {"error": "Wrong\\n input"}, "time": 0.1}'


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: repr(case["input"]))
def test_a_url_means_what_it_means_to_the_reference_engine(case: dict[str, str]) -> None:
    assert str(parse_url(case["input"])) == case["restUri"]


@pytest.mark.parametrize(
    ("url", "meaning"),
    [
        ("127.0.0.1:7333", "http://127.0.0.1:7333"),
        ("[::1]:6333", "http://[::1]:6333"),
        ("https://[2001:db8::1]/q", "https://[2001:db8::1]:443/q"),
        (" HTTPS://Qdrant.Example.COM ", "https://qdrant.example.com:443"),
    ],
)
def test_a_url_may_be_written_in_more_ways(url: str, meaning: str) -> None:
    assert str(parse_url(url)) == meaning


@pytest.mark.parametrize("url", ["ftp://host", "http://", "http://:6333", "host:port", "host:99999", "http://[::1"])
def test_what_is_no_url_of_a_server_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"indexing\.qdrant\.url"):
        parse_url(url)


def test_credentials_in_a_url_are_refused_and_not_shown() -> None:
    with pytest.raises(ConfigurationError, match="apiKey") as caught:
        parse_url("https://user:secret@host")
    assert "secret" not in str(caught.value)


class Server:
    """Raises these errors one after the other, and then answers."""

    def __init__(self, *errors: Exception, seconds: float = 0.0) -> None:
        self._errors = chain(errors, repeat(None))
        self._seconds = seconds
        self.began: list[float] = []
        self.under_way = self.peak = 0

    async def request(self) -> str:
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
        return "done"


def attempts(
    *, call_timeout: float = 30, concurrency: int = 8, failed: Callable[[SemindexError, float], None] = lambda *_: None
) -> Attempts:
    server = parse_url("http://qdrant:6333")
    return Attempts(server, call_timeout=call_timeout, concurrency=concurrency, failed=failed)


AGAIN = [Answered(status, ERROR) for status in (408, 429, 500, 502, 503, 504)] + [Unanswered("ConnectError")]


@pytest.mark.parametrize("error", AGAIN, ids=str)
async def test_what_may_pass_is_tried_again_after_growing_pauses(
    autojump_clock: trio.testing.MockClock, error: Exception
) -> None:
    server = Server(error, error, error)

    assert await attempts()(server.request) == "done"

    pauses = [later - earlier for earlier, later in zip(server.began, server.began[1:], strict=False)]
    for pause, least in zip(pauses, (0.2, 0.4, 0.8), strict=True):
        assert least <= pause <= 1.25 * least


@pytest.mark.parametrize("error", AGAIN, ids=str)
async def test_after_so_many_tries_the_store_is_unavailable(
    autojump_clock: trio.testing.MockClock, error: Exception
) -> None:
    server = Server(*[error] * 99)

    with pytest.raises(StoreUnavailable, match="http://qdrant:6333"):
        await attempts()(server.request)

    assert len(server.began) == TRIES


async def test_a_time_that_the_server_names_is_kept(autojump_clock: trio.testing.MockClock) -> None:
    server = Server(Answered(503, ERROR, 7.0), Answered(429, ERROR, 0.0))

    await attempts()(server.request)

    assert server.began == [0, 7, 7]


async def test_a_time_that_is_longer_than_the_call_may_take_is_not_waited_for(
    autojump_clock: trio.testing.MockClock,
) -> None:
    server = Server(Answered(503, ERROR, 31.0))

    with pytest.raises(StoreUnavailable, match=r"fails \(HTTP 503\): Wrong input"):
        await attempts()(server.request)

    assert trio.current_time() == 0


async def test_a_call_with_all_of_its_tries_ends_in_time(autojump_clock: trio.testing.MockClock) -> None:
    server = Server(*[Unanswered("ReadError")] * 9, seconds=4)

    with pytest.raises(StoreUnavailable, match="did not answer within 10 s"):
        await attempts(call_timeout=10)(server.request)

    assert trio.current_time() == 10


async def test_a_call_that_never_gets_its_turn_ends_in_time(autojump_clock: trio.testing.MockClock) -> None:
    server = Server(seconds=60)
    call = attempts(call_timeout=10, concurrency=1)

    async def refused() -> None:
        with pytest.raises(StoreUnavailable, match="within 10 s"):
            await call(server.request)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(refused)

    assert trio.current_time() == 10
    assert server.peak == 1


async def test_so_many_requests_are_under_way_at_the_same_time(autojump_clock: trio.testing.MockClock) -> None:
    server = Server(seconds=1)
    call = attempts(concurrency=3)
    async with trio.open_nursery() as nursery:
        for _ in range(9):
            nursery.start_soon(call, server.request)

    assert server.peak == 3
    assert trio.current_time() == 3


async def test_each_try_that_will_be_repeated_is_told_at_once(autojump_clock: trio.testing.MockClock) -> None:
    told: list[tuple[float, str]] = []
    server = Server(Unanswered("ReadError"), Answered(503, ERROR), seconds=1)

    await attempts(failed=lambda error, seconds: told.append((seconds, str(error))))(server.request)

    assert [seconds for seconds, _ in told] == pytest.approx([1, 1])
    assert "cannot be reached: ReadError" in told[0][1]
    assert "HTTP 503" in told[1][1]


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (404, ERROR, CollectionMissing, "ws-a does not exist"),
        (404, b"404 page not found", StoreUnavailable, "no Qdrant server"),
        (404, b'{"detail": "Not Found"}', StoreUnavailable, "no Qdrant server"),
        (404, b'{"status": "ok"}', StoreUnavailable, "no Qdrant server"),
        (405, b"", StoreUnavailable, "no Qdrant server"),
        (409, ERROR, CollectionExists, "ws-a exists already"),
        (413, b"<html>", RequestTooLarge, "too large"),
        (400, ERROR, StoreRejected, r"refused a call \(HTTP 400\): Wrong input"),
        (422, ERROR, StoreRejected, "HTTP 422"),
        (401, b"Must provide an API key", StoreUnavailable, "refuses the API key"),
        (403, ERROR, StoreUnavailable, "refuses the API key"),
        (301, b"", StoreUnavailable, "redirects"),
        (308, ERROR, StoreUnavailable, "redirects"),
    ],
)
async def test_an_answer_that_no_repetition_changes_is_told_at_once(
    autojump_clock: trio.testing.MockClock, status: int, body: bytes, kind: type[SemindexError], message: str
) -> None:
    server = Server(Answered(status, body))

    with pytest.raises(kind, match=message) as caught:
        await attempts()(server.request, "ws-a")

    assert caught.type is kind
    assert len(server.began) == 1


async def test_a_cancelled_call_ends(autojump_clock: trio.testing.MockClock) -> None:
    server: Any = Server(seconds=60)
    request: Callable[[], Awaitable[str]] = server.request
    with trio.move_on_after(1) as scope:
        await attempts()(request)

    assert scope.cancelled_caught
    assert server.under_way == 0
