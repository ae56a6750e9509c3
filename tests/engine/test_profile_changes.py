"""Another model, dimension, provider, prefix or chunking: noticed at the start, told, carried out without mixing."""

from typing import Any

import pytest
import trio
from attrs import evolve
from trio.testing import MockClock

from semindex.embedders.hashing import HashingEmbedder
from semindex.engine.search import SearchRequest
from semindex.engine.workspace import Workspace
from semindex.model.errors import EmbedderUnavailable
from semindex.model.ids import collection_name
from semindex.model.points import CollectionMetadata
from semindex.model.profiles import ChunkingProfile
from semindex.model.status import State
from semindex.testing.audit import differences
from semindex.testing.bench import Bench, words
from semindex.testing.intercept import Failing, Gate, Recorder

A, B = "/primary", "/worktree"
PATIENCE = 10_000.0
FILES = {f"file{number}": words(f"token{number}", f"other{number}") for number in range(20)}


class Another(HashingEmbedder):
    """The same vectors under another profile."""

    def __init__(self, dimension: int = 512, **changed: Any) -> None:
        super().__init__(dimension)
        object.__setattr__(self, "profile", evolve(self.profile, **changed))


CHANGES = {
    "model": Another(model="another"),
    "provider": Another(provider="another"),
    "dimension": Another(256),
    "query prefix": Another(query_prefix="query: "),
    "document prefix": Another(document_prefix="passage: "),
}


async def indexed(bench: Bench, workspace: Workspace) -> None:
    while workspace.status().state is not State.INDEXED:
        await workspace.changes.beyond(workspace.changes.value)


async def built() -> Bench:
    bench = Bench()
    bench.tree(A, **FILES)
    async with bench.process() as process:
        await indexed(bench, await process.start(A))
    return bench


async def metadata_of(bench: Bench) -> CollectionMetadata:
    info = await bench.store.describe(collection_name(A))
    assert info is not None
    return CollectionMetadata.from_payload(info.metadata or {})


@pytest.mark.parametrize("change", CHANGES)
async def test_another_embedding_is_told_and_built_anew_while_the_old_one_answers_nothing(
    autojump_clock: MockClock, change: str
) -> None:
    bench = await built()
    old = await metadata_of(bench)
    bench.embedder = CHANGES[change]
    bench.embedder.calls.clear()
    gate, recorder = Gate("pool.chunk"), Recorder()
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder, gate) as process:
            workspace = await process.start(A)
            await gate.reached()
            status = workspace.status()
            assert status.state is State.INDEXING
            assert f"The index is built anew, because its {change} " in status.message
            assert await metadata_of(bench) == old, "it goes once there are vectors in its place"
            answer = await workspace.search(SearchRequest("anything", min_score=0))
            assert answer.results == ()
            assert recorder.of("store.search") == []

            gate.open()
            await indexed(bench, workspace)
            assert "anew" not in workspace.status().message
            assert (await process.found(A, "token3 other3", min_score=0.5)).paths == ("file3.py",)

    assert (await metadata_of(bench)).differences(bench.embedder.profile) == []
    if change != "document prefix":
        assert await differences(bench, A) == []
    assert sorted(bench.sent()) == sorted(
        []
        if change == "query prefix"
        else [bench.embedder.profile.document_prefix + text.strip() for text in FILES.values()]
    )


async def test_nothing_of_the_old_index_is_lost_while_the_new_embedder_has_not_answered(
    autojump_clock: MockClock,
) -> None:
    bench = await built()
    first = bench.embedder
    bench.embedder = Another(model="another")
    down = Failing("embedder.embed", EmbedderUnavailable("The endpoint refuses the API key."), times=10**6)
    with trio.fail_after(PATIENCE):
        async with bench.process(down) as process:
            workspace = await process.start(A)
            await trio.sleep(600)
            status = workspace.status()
            assert status.state is State.INDEXING
            assert status.message == "The endpoint refuses the API key. Trying again."
            with pytest.raises(EmbedderUnavailable, match="API key"):
                await workspace.search(SearchRequest("token3"))

        sent = len(first.calls)
        bench.embedder = first
        async with bench.process() as process:
            await indexed(bench, await process.start(A))

    assert await differences(bench, A) == []
    assert len(first.calls) == sent


async def test_a_worktree_with_another_embedding_waits_for_its_baseline_and_is_built_anew(
    autojump_clock: MockClock,
) -> None:
    bench = await built()
    bench.tree(B, **(FILES | {"file3": words("heliotrope")}))
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await process.start(A)
            await indexed(bench, await process.start(B, baseline=A))
        bench.embedder = Another(model="another")
        async with bench.process() as process:
            await process.start(A)
            await indexed(bench, await process.start(B, baseline=A))
            assert (await process.found(B, "heliotrope", min_score=0.5)).paths == ("file3.py",)
            assert (await process.found(B, "token4 other4", min_score=0.5)).paths == ("file4.py",)

    assert await differences(bench, B, baseline=A) == []


@pytest.mark.parametrize("was", ChunkingProfile)
async def test_another_chunking_is_carried_out_in_place_and_told_while_searches_go_on(
    autojump_clock: MockClock, was: ChunkingProfile
) -> None:
    bench = Bench(chunking=was)
    bench.tree(A, **FILES)
    async with bench.process() as process:
        await indexed(bench, await process.start(A))
    [bench.chunking] = [profile for profile in ChunkingProfile if profile is not was]
    recorder, gate = Recorder(), Gate("pool.chunk")
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder, gate) as process:
            workspace = await process.start(A)
            await gate.reached()
            assert "Files are chunked anew one by one" in workspace.status().message
            request = SearchRequest("token3 other3", min_score=0.5, fresh=False)
            [hit] = (await workspace.search(request)).results
            assert hit.file_path == "file3.py"

            gate.open()
            await indexed(bench, workspace)
            assert workspace.status().message == "Index up-to-date."

    assert recorder.of("store.drop") == recorder.of("store.create") == []
    assert (await metadata_of(bench)).chunking_profile is bench.chunking
    assert await differences(bench, A) == []
