"""Every fault of the endpoint and of the Qdrant server, at every stage of a workspace's life, over the real adapters.

The servers are the doubles, reached without sockets, so that the outages may last for as long as they like. Whatever
happened, in the end ledger and collection are those of an index that was built from nothing, no text was embedded
twice, and no answer that came meanwhile was wrong.
"""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx  # noqa: ASYNC127 - qdrant-client is built on it
import pytest
import trio
from attrs import define
from trio.testing import MockClock

from semindex.embedders.endpoint import endpoint_of
from semindex.embedders.hashing import HashingEmbedder
from semindex.embedders.openai_compatible import PROBE, open_endpoint_embedder
from semindex.engine.search import SearchRequest
from semindex.engine.workspace import Workspace
from semindex.model.errors import EmbedderUnavailable, NotReady, StoreUnavailable
from semindex.model.ids import collection_name
from semindex.model.profiles import EmbeddingProfile
from semindex.model.status import State
from semindex.ports import VectorStore
from semindex.stores.memory import MemoryVectorStore
from semindex.stores.qdrant import open_qdrant_store
from semindex.stores.qdrant_calls import parse_url
from semindex.testing.audit import differences
from semindex.testing.bench import Bench, Process, words
from semindex.testing.doubles import Fault, Faulty, InProcess
from semindex.testing.embedder_double import EmbedderDouble
from semindex.testing.qdrant_double import open_qdrant_double

ROOT = "/primary"
PATIENCE = 50_000.0
LONG = 600.0
"""Seconds that an outage lasts."""
FILES = {f"file{number}": words(f"token{number}", f"other{number}") for number in range(12)}

ALWAYS = {"times": None}
EMBEDDER_FAULTS = {
    "a server's error": [Fault(status=500, times=2)],
    "an overloaded server, for long": [Fault(status=503, **ALWAYS)],
    "a rate limit": [Fault(status=429, headers={"retry-after": "2"}, times=2)],
    "a rate limit, for long": [Fault(status=429, **ALWAYS)],
    "no answer, for long": [Fault(hangs=True, **ALWAYS)],
    "late answers": [Fault(delay=40, times=4)],
    "answers that are cut": [Fault(cut=50, times=2)],
    "no vectors, for long": [Fault(status=200, body='{"error": {"message": "loading"}}', **ALWAYS)],
    "another key, for long": [Fault(status=401, **ALWAYS)],
    "a redirect, for long": [Fault(status=302, headers={"location": "http://x/"}, **ALWAYS)],
    "too few vectors": [Fault(spoil="count", times=2)],
    "vectors that are no numbers": [Fault(spoil="nan", times=2)],
    "another dimension, for long": [Fault(spoil="dimension", **ALWAYS)],
}
USELESS = {
    "answers that are cut": 2,
    "too few vectors": 2,
    "vectors that are no numbers": 2,
    "another dimension, for long": 1,
}
"""Faults of answers that were made and are of no use: how often a text may be sent in vain."""
STORE_FAULTS = {
    "a server's error": [Fault(status=500, times=2)],
    "a server that starts, for long": [Fault(status=503, **ALWAYS)],
    "a rate limit": [Fault(status=429, headers={"retry-after": "2"}, times=2)],
    "no answer, for long": [Fault(hangs=True, **ALWAYS)],
    "answers that are cut": [Fault(cut=10, times=9)],
    "a proxy without a server, for long": [Fault(status=404, body="404 page not found", **ALWAYS)],
    "another key, for long": [Fault(status=401, **ALWAYS)],
}


@define
class Field:
    """A workspace over doubles."""

    bench: Bench
    embedder: Faulty
    store: Faulty | None
    endpoint: EmbedderDouble

    @property
    def sent(self) -> Counter[str]:
        """How often each text was embedded, apart from the validation's."""
        return Counter(text for text in self.endpoint.texts if text != PROBE)

    async def settled(self, workspace: Workspace) -> None:
        while workspace.status().state is not State.INDEXED:
            await workspace.changes.beyond(workspace.changes.value)

    async def check(self) -> None:
        assert await differences(self.bench, ROOT) == []


@asynccontextmanager
async def field(directory: Path | None = None) -> AsyncIterator[Field]:
    """Open a workspace's world: the endpoint, a Qdrant server if there is a directory for it, and a tree."""
    endpoint = EmbedderDouble(512)
    embedder = Faulty(endpoint)
    async with AsyncExitStack() as stack:
        adapter = await stack.enter_async_context(
            open_endpoint_embedder(
                endpoint_of("http://embedder.test/v1", None),
                EmbeddingProfile("openai-compatible", "deterministic", 512, 0.2),
                batch_size=5,
                concurrency=3,
                request_timeout=30,
                tries=3,
                transport=InProcess(embedder),
            )
        )
        vectors: VectorStore = MemoryVectorStore()
        server: Faulty | None = None
        if directory is not None:
            server = await stack.enter_async_context(open_qdrant_double(directory))
            transport: Any = InProcess(server, httpx)
            vectors = await stack.enter_async_context(
                open_qdrant_store(
                    parse_url("http://qdrant.test:6333"), None, call_timeout=30, concurrency=4, transport=transport
                )
            )
        bench = Bench(embedder=cast(HashingEmbedder, adapter), store=vectors)
        bench.tree(ROOT, **FILES)
        yield Field(bench, embedder, server, endpoint)


async def lift_later(*servers: Faulty) -> None:
    """End what does not end by itself."""
    await trio.sleep(LONG)
    for server in servers:
        server.script()


async def first_build(at: Field, process: Process, fail: Callable[[], None]) -> None:
    fail()
    await at.settled(await process.start(ROOT))


async def edit(at: Field, process: Process, fail: Callable[[], None]) -> None:
    workspace = await process.start(ROOT)
    await at.settled(workspace)
    fail()
    at.bench.trees[ROOT].write("file3.py", words("heliotrope"))
    at.bench.trees[ROOT].write("new.py", words("vermilion"))
    at.bench.trees[ROOT].delete("file5.py")
    await workspace.sweep()
    for query in ("token3", "token5"):
        await ask(workspace, query, allowed=set())
    await at.settled(workspace)


async def ask(workspace: Workspace, query: str, allowed: set[str]) -> None:
    """Search while something fails: the answer may be an error, or late, but never wrong."""
    try:
        answer = await workspace.search(SearchRequest(query, min_score=0.5, fresh_seconds=2))
    except (EmbedderUnavailable, StoreUnavailable, NotReady):
        return
    assert {hit.file_path for hit in answer.results} <= allowed


async def search(at: Field, process: Process, fail: Callable[[], None]) -> None:
    workspace = await process.start(ROOT)
    await at.settled(workspace)
    fail()
    for number in range(3):
        await ask(workspace, f"token{number} other{number}", {f"file{number}.py"})
    await trio.sleep(LONG + 60)
    for number in range(3):
        assert (await process.found(ROOT, f"token{number} other{number}", min_score=0.5)).paths == (f"file{number}.py",)
    await at.settled(workspace)


async def stop_and_start(at: Field, process: Process, fail: Callable[[], None]) -> None:
    workspace = await process.start(ROOT)
    await at.settled(workspace)
    at.bench.trees[ROOT].write("file3.py", words("heliotrope"))
    at.bench.trees[ROOT].advance(10)
    fail()
    with trio.move_on_after(1):
        await workspace.sweep()
    await process.stop(ROOT)
    await at.settled(await process.start(ROOT))


async def start(at: Field, process: Process, fail: Callable[[], None]) -> None:
    await at.settled(await process.start(ROOT))
    await process.stop(ROOT)
    fail()
    await at.settled(await process.start(ROOT))


Stage = Callable[[Field, Process, Callable[[], None]], Awaitable[None]]
STAGES: dict[str, Stage] = {
    "first build": first_build,
    "edit": edit,
    "search": search,
    "stop and start": stop_and_start,
    "start": start,
}


async def run(at: Field, stage: str, fail: Callable[[], None], *failing: Faulty) -> None:
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:

            def begin() -> None:
                fail()
                nursery.start_soon(lift_later, *failing)

            async with at.bench.process(concurrency=3) as process:
                await STAGES[stage](at, process, begin)
            nursery.cancel_scope.cancel(reason="the stage is over")
    await at.check()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("fault", EMBEDDER_FAULTS)
async def test_an_endpoint_fails(autojump_clock: MockClock, fault: str, stage: str) -> None:
    async with field() as at:
        await run(at, stage, lambda: at.embedder.script(*EMBEDDER_FAULTS[fault]), at.embedder)

        documents = Counter({text: count for text, count in at.sent.items() if "\n" in text})
        assert max(documents.values()) <= 1 + USELESS.get(fault, 0)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("fault", STORE_FAULTS)
async def test_a_qdrant_server_fails(autojump_clock: MockClock, fast_directory: Path, fault: str, stage: str) -> None:
    async with field(fast_directory) as at:
        server = at.store
        assert server is not None
        await run(at, stage, lambda: server.script(*STORE_FAULTS[fault]), server)

        assert set(at.sent.values()) == {1}


@pytest.mark.parametrize("stage", STAGES)
async def test_both_fail_together_for_long(autojump_clock: MockClock, fast_directory: Path, stage: str) -> None:
    async with field(fast_directory) as at:
        server = at.store
        assert server is not None

        def fail() -> None:
            at.embedder.script(Fault(status=503, times=None))
            server.script(Fault(status=503, times=None))

        await run(at, stage, fail, at.embedder, server)

        assert set(at.sent.values()) == {1}


async def test_a_server_that_comes_back_empty_is_filled_again_and_nothing_is_embedded_again(
    autojump_clock: MockClock, fast_directory: Path
) -> None:
    async with field(fast_directory) as at:
        assert at.store is not None
        with trio.fail_after(PATIENCE):
            async with at.bench.process() as process:
                workspace = await process.start(ROOT)
                await at.settled(workspace)
                await at.bench.store.drop(collection_name(ROOT))

                with pytest.raises(NotReady, match="built anew"):
                    await workspace.search(SearchRequest("token3"))
                await at.settled(workspace)
                assert (await process.found(ROOT, "token3 other3", min_score=0.5)).paths == ("file3.py",)

        await at.check()
        assert {text: count for text, count in at.sent.items() if "\n" in text and count > 1} == {}


async def test_a_server_that_comes_back_empty_is_filled_again_by_an_edit(
    autojump_clock: MockClock, fast_directory: Path
) -> None:
    async with field(fast_directory) as at:
        with trio.fail_after(PATIENCE):
            async with at.bench.process() as process:
                workspace = await process.start(ROOT)
                await at.settled(workspace)
                await at.bench.store.drop(collection_name(ROOT))
                at.bench.trees[ROOT].write("file3.py", words("heliotrope"))
                await workspace.sweep()
                while workspace.status().state is State.INDEXED:
                    await workspace.changes.beyond(workspace.changes.value)
                await at.settled(workspace)

        await at.check()


async def test_a_file_whose_text_the_endpoint_always_refuses_is_flagged_and_the_rest_goes_on(
    autojump_clock: MockClock,
) -> None:
    async with field() as at:
        at.endpoint.poison = "token7"
        with trio.fail_after(PATIENCE):
            async with at.bench.process() as process:
                workspace = await process.start(ROOT)
                await at.settled(workspace)
                [(path, reason)] = workspace.status().failed_files
                assert path == "file7.py"
                assert "refuses a request (HTTP 400)" in reason

                at.endpoint.poison = None
                at.bench.trees[ROOT].write("file7.py", FILES["file7"] + "again\n")
                await workspace.sweep()
                await at.settled(workspace)

        await at.check()


async def test_a_cached_query_is_answered_while_the_endpoint_is_down(autojump_clock: MockClock) -> None:
    async with field() as at:
        with trio.fail_after(PATIENCE):
            async with at.bench.process() as process:
                workspace = await process.start(ROOT)
                await at.settled(workspace)
                await process.found(ROOT, "token3 other3", min_score=0.5)
                at.embedder.script(Fault(status=503, times=None))

                assert (await process.found(ROOT, "token3 other3", min_score=0.5)).paths == ("file3.py",)
                with pytest.raises(EmbedderUnavailable):
                    await workspace.search(SearchRequest("a question that was never asked"))


async def test_a_wrong_dimension_is_told_and_nothing_is_written(
    autojump_clock: MockClock, fast_directory: Path
) -> None:
    async with field(fast_directory) as at:
        at.endpoint.dimension = 384
        with trio.fail_after(PATIENCE):
            async with at.bench.process() as process:
                workspace = await process.start(ROOT)
                while workspace.status().last_error is None:
                    await workspace.changes.beyond(workspace.changes.value)
                status = workspace.status()
                assert status.state is State.INDEXING
                assert "answers with 384 dimensions where 512 are configured" in status.message
                assert await at.bench.store.collections() == []
                assert at.sent == Counter()

                at.endpoint.dimension = 512
                await at.settled(workspace)

        await at.check()
