"""The embedder of endpoints: the conformance suite, and every way in which an endpoint has been seen to fail.

SEMINDEX_TEST_EMBEDDER_URL names a real endpoint to run the suite against, SEMINDEX_TEST_EMBEDDER_MODEL and _DIMENSION
its model, SEMINDEX_TEST_EMBEDDER_API_KEY its key.
"""

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
import trio
import trio.testing

from semindex.embedders import openai_compatible, patience
from semindex.embedders.endpoint import Passing, RateLimited, TooLarge, endpoint_of
from semindex.embedders.hashing import hashed_tokens
from semindex.embedders.openai_compatible import OpenAICompatibleEmbedder, open_endpoint_embedder
from semindex.engine.priority import Priority
from semindex.engine.scheduler import EmbeddingScheduler
from semindex.model.errors import EmbedderRejected, EmbedderUnavailable
from semindex.model.profiles import EmbeddingProfile, Role
from semindex.ports import Embedder
from semindex.state.memory import MemoryEmbeddingCache
from semindex.testing.doubles import Fault, Faulty, InProcess, served
from semindex.testing.embedder_double import EmbedderDouble
from tests.embedders.conformance import EmbedderConformance
from tests.servers import answering

KEY = "sk-key-of-the-embedder-tests"
MODEL = "deterministic-test-embedding"
REAL = os.environ.get("SEMINDEX_TEST_EMBEDDER_URL")
FOREVER = 1_000_000


@asynccontextmanager
async def opened(
    base_url: str,
    *,
    key: str | None = KEY,
    model: str = MODEL,
    dimension: int = 64,
    request_timeout: float = 30,
    **options: Any,
) -> AsyncIterator[OpenAICompatibleEmbedder]:
    profile = EmbeddingProfile("openai-compatible", model, dimension)
    settings = {"batch_size": 60, "concurrency": 4, "tries": 3} | options
    async with open_endpoint_embedder(
        endpoint_of(base_url, key), profile, request_timeout=request_timeout, **settings
    ) as embedder:
        yield embedder


class Bed:
    """A double, without a socket, and what is needed to look at it."""

    def __init__(self, **options: Any) -> None:
        self.double = EmbedderDouble(64, KEY, **options)
        self.faulty = Faulty(self.double)

    @property
    def requests(self) -> int:
        return len(self.faulty.requests)

    @property
    def texts(self) -> list[str]:
        """Every text that was embedded but the one that validates the endpoint."""
        return [text for text in self.double.texts if text != openai_compatible.PROBE]

    def opened(self, **options: Any) -> Any:
        return opened("http://embedder.test/v1", transport=InProcess(self.faulty), **options)


def with_environment(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    """Have exactly these variables say which proxies and certificates are used."""
    for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    with_environment(monkeypatch)


class TestOpenAICompatibleEmbedder(EmbedderConformance):
    @pytest.fixture
    async def embedder(self) -> AsyncIterator[Embedder]:
        if REAL:
            async with opened(
                REAL,
                key=os.environ.get("SEMINDEX_TEST_EMBEDDER_API_KEY"),
                model=os.environ["SEMINDEX_TEST_EMBEDDER_MODEL"],
                dimension=int(os.environ["SEMINDEX_TEST_EMBEDDER_DIMENSION"]),
            ) as embedder:
                yield embedder
        else:
            async with served(EmbedderDouble(64, KEY)) as url, opened(f"{url}/v1") as embedder:
                yield embedder

    if REAL:

        async def test_texts_without_words_share_a_vector_that_never_changes(self, embedder: Embedder) -> None:
            pytest.skip("neural models give a vector of its own to every text")

        async def test_a_long_text_gets_a_vector(self, embedder: Embedder) -> None:
            pytest.skip("endpoints refuse texts of this length")


# What is asked


async def test_the_first_text_is_preceded_by_one_validation_for_all_who_wait() -> None:
    bed = Bed()
    async with bed.opened() as embedder, trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(embedder.embed, [f"text {number}"], Role.DOCUMENT)

    assert bed.double.batches[0] == (openai_compatible.PROBE,)
    assert sorted(bed.texts) == [f"text {number}" for number in range(5)]
    assert bed.requests == 6


async def test_a_server_that_does_not_know_the_parameter_dimensions_gets_it_once() -> None:
    bed = Bed()
    unknown = '{"error": {"message": "Unrecognized request argument supplied: dimensions"}}'
    bed.faulty.script(Fault(status=400, body=unknown))

    async with bed.opened() as embedder:
        await embedder.embed(["a"], Role.DOCUMENT)
        await embedder.embed(["b"], Role.DOCUMENT)

    assert bed.requests == 4
    assert bed.texts == ["a", "b"]


# Failures that pass

PASSING = {
    "a server's error": Fault(status=500),
    "an unavailable server": Fault(status=503, body="<html>busy</html>"),
    "an overloaded server": Fault(status=529),
    "an answer cut short": Fault(cut=100),
    "a body that is missing": Fault(cut=0),
    "no answer in time": Fault(hangs=True),
    "an answer that is late": Fault(delay=31),
    "an answer that is not JSON": Fault(status=200, body="<html>welcome</html>"),
    "a rate limit": Fault(status=429),
    "a rate limit with a time": Fault(status=429, headers={"retry-after": "7"}),
}


# A query has no more time than one request: only a document outlasts a request that gets no answer.
@pytest.mark.parametrize(
    ("fault", "role"),
    [
        (name, role)
        for name, fault in PASSING.items()
        for role in Role
        if role is Role.DOCUMENT or not (fault.hangs or fault.delay)
    ],
)
async def test_a_failure_that_passes_costs_nothing_but_time(
    autojump_clock: trio.testing.MockClock, fault: str, role: Role
) -> None:
    bed = Bed()
    async with bed.opened() as embedder:
        await embedder.embed(["first"], role)
        bed.faulty.script(PASSING[fault])

        vectors = await embedder.embed(["alpha beta", "gamma"], role)

    np.testing.assert_allclose(vectors, hashed_tokens(["alpha beta", "gamma"], 64), atol=1e-6)
    assert bed.requests == 4  # validation, first, the failure, its repetition


@pytest.mark.parametrize("fault", ["a server's error", "an answer cut short", "no answer in time"])
async def test_a_failure_that_does_not_pass_is_unavailable_after_as_many_tries_as_are_configured(
    autojump_clock: trio.testing.MockClock, fault: str
) -> None:
    bed = Bed()
    async with bed.opened(tries=2) as embedder:
        await embedder.embed(["first"], Role.DOCUMENT)
        bed.faulty.script(PASSING[fault].model_copy(update={"times": None}))

        with pytest.raises(Passing):
            await embedder.embed(["alpha"], Role.DOCUMENT)

    assert bed.requests == 4


async def test_every_try_that_fails_is_told_at_once(autojump_clock: trio.testing.MockClock) -> None:
    bed, told = Bed(), list[float]()
    async with bed.opened(failed=lambda _error, _seconds: told.append(trio.current_time())) as embedder:
        await embedder.embed(["first"], Role.DOCUMENT)
        bed.faulty.script(Fault(status=500, times=2))
        await embedder.embed(["alpha"], Role.DOCUMENT)

    assert len(told) == 2
    assert told[0] == 0


async def test_a_rate_limit_pauses_all_workers_once(autojump_clock: trio.testing.MockClock) -> None:
    bed = Bed()
    bed.double.api_key = None
    async with bed.opened(key=None) as embedder:
        await embedder.embed(["first"], Role.DOCUMENT)
        bed.faulty.script(Fault(status=429, headers={"retry-after": "2"}, times=4))
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(embedder.embed, [f"text {number}"], Role.DOCUMENT)

    assert trio.current_time() - began == 2
    assert len(bed.texts) == 13
    assert bed.requests == 2 + 4 + 12


@pytest.mark.parametrize("fault", [Fault(hangs=True, times=None), Fault(delay=31, times=None)])
async def test_a_query_takes_no_longer_than_one_request_may(
    autojump_clock: trio.testing.MockClock, fault: Fault
) -> None:
    bed = Bed()
    async with bed.opened() as embedder:
        await embedder.embed(["first"], Role.QUERY)
        bed.faulty.script(fault)
        began = trio.current_time()

        with pytest.raises(EmbedderUnavailable, match="within 30 s"):
            await embedder.embed(["alpha"], Role.QUERY)

        assert trio.current_time() - began == 30


async def test_a_query_does_not_wait_for_a_gate_that_opens_too_late(autojump_clock: trio.testing.MockClock) -> None:
    bed = Bed()
    async with bed.opened() as embedder, trio.open_nursery() as nursery:
        await embedder.embed(["first"], Role.QUERY)
        bed.faulty.script(Fault(status=429, headers={"retry-after": "120"}))
        nursery.start_soon(embedder.embed, ["document"], Role.DOCUMENT)
        await trio.testing.wait_all_tasks_blocked()

        with pytest.raises(RateLimited, match="120 s"):
            await embedder.embed(["alpha"], Role.QUERY)

        assert trio.current_time() == 0
    assert bed.texts == ["first", "document"]


# Failures that are of the configuration

CONFIGURATION = {
    "another key": (Fault(status=401, body='{"error": "no such key"}'), "refuses the API key"),
    "a key without rights": (Fault(status=403), "refuses the API key"),
    "another address or model": (Fault(status=404, body='{"error": "model \\"m\\" not found"}'), "no such model"),
    "a redirect": (Fault(status=302, headers={"location": "http://elsewhere.test/"}), "redirects"),
    "another dimension": (Fault(spoil="dimension"), "answers with 65 dimensions where 64 are configured"),
    "every text refused": (Fault(status=400, body='{"error": "no"}', times=None), "refuses every text.*400.*: no"),
    "an error with status 200": (
        Fault(status=200, body='{"error": {"message": "overloaded"}}', times=None),
        "refuses every text.*overloaded",
    ),
    "vectors that are no numbers": (Fault(spoil="nan", times=None), "refuses every text.*not finite"),
    "too few vectors": (Fault(spoil="count", times=None), "refuses every text.*0 vectors for 1 texts"),
}


@pytest.mark.parametrize("case", CONFIGURATION)
async def test_a_wrong_configuration_is_told_by_the_validation_before_any_text_is_sent(case: str) -> None:
    fault, message = CONFIGURATION[case]
    bed = Bed()
    bed.faulty.script(fault)

    async with bed.opened() as embedder:
        with pytest.raises(EmbedderUnavailable, match=message) as caught:
            await embedder.embed(["alpha", "beta"], Role.DOCUMENT)

        assert KEY not in f"{caught.value} {caught.value!r}"
        assert bed.requests == 1
        bed.faulty.script()
        await embedder.embed(["alpha", "beta"], Role.DOCUMENT)

    assert bed.texts == ["alpha", "beta"]


@pytest.mark.parametrize("case", ["every text refused", "an error with status 200", "too few vectors"])
async def test_an_endpoint_that_begins_to_refuse_everything_is_unavailable_and_no_text_is_at_fault(
    autojump_clock: trio.testing.MockClock, case: str
) -> None:
    fault, message = CONFIGURATION[case]
    bed = Bed()
    async with bed.opened() as embedder:
        await embedder.embed(["first"], Role.DOCUMENT)
        await trio.sleep(openai_compatible.TRUST + 1)
        bed.faulty.script(fault)

        for _ in range(2):
            with pytest.raises(EmbedderUnavailable, match=message):
                await embedder.embed(["alpha"] * 60, Role.DOCUMENT)
            await trio.sleep(1)

    assert bed.requests == 2 + 2 + 1  # the second time nothing but a validation is sent


async def test_those_who_wait_for_a_validation_that_fails_share_its_failure(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bed, failures = Bed(), list[float]()
    bed.faulty.script(Fault(hangs=True, times=None))

    async with bed.opened(request_timeout=60) as embedder:

        async def embed() -> None:
            with pytest.raises(EmbedderUnavailable, match="within 15 s"):
                await embedder.embed(["alpha"], Role.DOCUMENT)
            failures.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            for _ in range(6):
                nursery.start_soon(embed)

    assert failures == [openai_compatible.VALIDATION_TIMEOUT] * 6


# Texts at fault


async def embed_all(embedder: Embedder, texts: list[str]) -> tuple[set[int], dict[int, str]]:
    """Embed texts through the cell's scheduler; return the indexes that got their vector, and the others' errors."""
    scheduler = EmbeddingScheduler(embedder, MemoryEmbeddingCache())
    async with trio.open_nursery() as nursery:
        await nursery.start(scheduler.run)
        outcome = await scheduler.embed_documents(texts, Priority.EDIT)
        nursery.cancel_scope.cancel(reason="all is embedded")
    right = hashed_tokens(texts, 64)
    for index, vector in outcome.vectors.items():
        np.testing.assert_allclose(vector, right[index], atol=1e-6)
    return set(outcome.vectors), {index: str(error) for index, error in outcome.errors.items()}


async def test_a_batch_that_is_too_large_is_split_until_it_passes() -> None:
    bed = Bed(max_texts=7)
    texts = [f"number{index} of many" for index in range(60)]
    async with bed.opened() as embedder:
        embedded, errors = await embed_all(embedder, texts)

    assert embedded == set(range(60))
    assert errors == {}
    assert sorted(bed.texts) == sorted(texts)


async def test_a_server_that_takes_single_texts_only_gets_single_texts() -> None:
    bed = Bed(max_texts=1)
    async with bed.opened() as embedder:
        embedded, errors = await embed_all(embedder, ["alpha", "beta", "gamma"])

    assert (embedded, errors) == ({0, 1, 2}, {})


async def test_one_text_that_always_fails_is_isolated_and_the_others_are_embedded_once() -> None:
    bed = Bed(poison="a poisonous passage")
    texts = [f"word{index}" for index in range(60)]
    texts[37] = "text with a poisonous passage in it"
    async with bed.opened() as embedder:
        embedded, errors = await embed_all(embedder, texts)

    assert embedded == set(range(60)) - {37}
    assert errors.keys() == {37}
    assert "HTTP 400" in errors[37]
    assert "poisonous" not in errors[37]
    assert sorted(bed.texts) == sorted(texts[:37] + texts[38:])


@pytest.mark.parametrize("spoil", ["nan", "count"])
async def test_vectors_that_cannot_be_right_are_asked_for_again_and_never_returned(spoil: Any) -> None:
    bed = Bed()
    async with bed.opened() as embedder:
        await embedder.embed(["first"], Role.DOCUMENT)
        bed.faulty.script(Fault(spoil=spoil))
        embedded, errors = await embed_all(embedder, [f"word{index}" for index in range(8)])

    assert (embedded, errors) == (set(range(8)), {})


@pytest.mark.parametrize(
    "fault",
    [
        Fault(spoil="nan"),
        Fault(spoil="count"),
        Fault(status=400),
        Fault(status=200, body='{"error": {"message": "try again"}}'),
    ],
    ids=["no numbers", "too few", "refused", "an error"],
)
async def test_a_single_text_is_at_fault_only_if_it_is_refused_twice(fault: Fault) -> None:
    bed = Bed()
    async with bed.opened() as embedder:
        await embedder.embed(["first"], Role.DOCUMENT)
        bed.faulty.script(fault)

        vectors = await embedder.embed(["alpha"], Role.DOCUMENT)

    np.testing.assert_allclose(vectors, hashed_tokens(["alpha"], 64), atol=1e-6)


async def test_a_single_text_that_is_too_long_is_cut_to_its_half(caplog: pytest.LogCaptureFixture) -> None:
    bed = Bed(max_length=100)
    text = "alpha " * 25
    async with bed.opened() as embedder:
        await embedder.embed([text], Role.DOCUMENT)

    assert bed.texts == [text[:75]]
    assert "cut to its half" in caplog.text


async def test_a_text_whose_half_is_too_long_is_rejected() -> None:
    bed = Bed(max_length=100)
    async with bed.opened() as embedder:
        with pytest.raises(TooLarge, match="too large"):
            await embedder.embed(["alpha " * 50], Role.DOCUMENT)


# Real connections


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real connections run in real time: pauses are short."""
    monkeypatch.setattr(patience, "FIRST_PAUSE", 0.01)


REAL_FAULTS = {
    "an answer cut in its middle": Fault(cut=100),
    "an answer cut before its body": Fault(cut=0),
    "no answer": Fault(hangs=True),
    "a late answer": Fault(delay=5),
    "a server's error": Fault(status=503),
}


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", REAL_FAULTS)
async def test_a_failing_connection_is_outlasted(fault: str) -> None:
    faulty = Faulty(EmbedderDouble(64, KEY))
    async with served(faulty) as url, opened(f"{url}/v1", request_timeout=0.3) as embedder:
        await embedder.embed(["first"], Role.DOCUMENT)
        faulty.script(REAL_FAULTS[fault])

        with trio.fail_after(20):
            vectors = await embedder.embed(["alpha"], Role.DOCUMENT)

    np.testing.assert_allclose(vectors, hashed_tokens(["alpha"], 64), atol=1e-6)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("reply", "reason"), [(b"", "RemoteProtocolError"), (b"what is this\r\n\r\n", "RemoteProtocolError")]
)
async def test_what_is_no_http_server_is_unavailable(reply: bytes, reason: str) -> None:
    async with answering(reply) as server, opened(f"http://{server.address}/v1", tries=2) as embedder:
        with trio.fail_after(20), pytest.raises(Passing, match=rf"{server.address}.*cannot be reached \({reason}\)"):
            await embedder.embed(["alpha"], Role.DOCUMENT)

    assert len(server.requests) == 2


@pytest.mark.usefixtures("impatient")
async def test_a_server_that_is_not_there_is_unavailable_and_the_message_holds_no_credentials() -> None:
    with trio.socket.socket() as closed:
        await closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        async with opened(f"http://user:password@127.0.0.1:{port}/v1?key=hidden") as embedder:
            with trio.fail_after(20), pytest.raises(Passing) as caught:
                await embedder.embed(["alpha"], Role.DOCUMENT)

    told = f"{caught.value} {caught.value!r} {embedder!r}"
    assert f"127.0.0.1:{port}/v1/embeddings cannot be reached (ConnectError)" in told
    for secret in ("user", "password", "hidden", KEY, "alpha"):
        assert secret not in told


@pytest.mark.usefixtures("impatient")
async def test_an_answer_without_an_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_compatible, "MAX_ANSWER", 100_000)
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"
    async with answering(head + b" " * 1_000_000) as server, opened(f"http://{server.address}/v1") as embedder:
        with trio.fail_after(20), pytest.raises(EmbedderUnavailable, match="without an end"):
            await embedder.embed(["alpha"], Role.DOCUMENT)


async def test_proxies_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with answering(vectors_of("semindex")) as proxy:
        with_environment(monkeypatch, HTTP_PROXY=f"http://{proxy.address}")
        with trio.fail_after(20):
            async with opened("http://embedder.invalid/v1") as embedder:
                await embedder.embed(["alpha"], Role.DOCUMENT)
            with_environment(monkeypatch, HTTP_PROXY=f"http://{proxy.address}", NO_PROXY="127.0.0.1")
            async with served(EmbedderDouble(64, KEY)) as url, opened(f"{url}/v1") as embedder:
                await embedder.embed(["alpha"], Role.DOCUMENT)

    assert [request.split(b"\r\n")[0] for request in proxy.requests] == [
        b"POST http://embedder.invalid/v1/embeddings HTTP/1.1"
    ] * 2


@pytest.mark.usefixtures("impatient")
async def test_certificates_are_checked_against_the_authorities_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, certificate: Any
) -> None:
    async with answering(vectors_of("semindex"), certificate.server) as server:
        with trio.fail_after(20):
            async with opened(f"https://{server.address}/v1") as embedder:
                with pytest.raises(Passing, match="cannot be reached"):
                    await embedder.embed(["alpha"], Role.DOCUMENT)
            with_environment(monkeypatch, SSL_CERT_FILE=str(certificate.authority))
            async with opened(f"https://{server.address}/v1") as embedder:
                await embedder.embed(["alpha"], Role.DOCUMENT)

    assert len(server.requests) == 2


async def test_a_large_answer_is_read_in_a_thread_and_a_small_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = list[Callable[..., Awaitable[object]]]()
    run_sync = trio.to_thread.run_sync

    async def counted(*arguments: Any, **options: Any) -> object:
        threads.append(arguments[0])
        return await run_sync(*arguments, **options)

    monkeypatch.setattr(trio.to_thread, "run_sync", counted)
    bed = Bed()
    bed.double.dimension = 4096
    async with bed.opened(dimension=4096) as embedder:
        await embedder.embed(["alpha"], Role.DOCUMENT)
        assert threads == []
        await embedder.embed(["alpha"] * 10, Role.DOCUMENT)
        assert len(threads) == 1


def test_nothing_is_said_of_requests_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    from semindex.observe import log

    log.configure("json")
    try:
        for name in ("httpx", "httpx2", "httpcore", "httpcore2"):
            assert not logging.getLogger(name).isEnabledFor(logging.INFO)
    finally:
        logging.basicConfig(handlers=[], force=True, level=logging.WARNING)


def vectors_of(text: str) -> bytes:
    """An answer over HTTP with the vector of one text."""
    row = hashed_tokens([text], 64)[0].tolist()
    body = f'{{"data": [{{"index": 0, "embedding": {row}}}]}}'.encode()
    return b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def test_a_rejection_is_no_unavailability() -> None:
    assert not issubclass(TooLarge, EmbedderUnavailable)
    assert issubclass(TooLarge, EmbedderRejected)
