"""Taking over what another cell or the reference engine has made."""

from typing import Any

import pytest
import trio
from attrs import evolve
from trio.testing import MockClock

from semindex.embedders.hashing import HashingEmbedder
from semindex.model.errors import StoreUnavailable
from semindex.model.ids import collection_name
from semindex.model.points import CollectionMetadata
from semindex.model.profiles import ChunkingProfile, EmbeddingProfile, Role
from semindex.model.status import State
from semindex.ports import VectorStore
from semindex.testing.audit import differences
from semindex.testing.bench import Bench, words
from semindex.testing.intercept import Failing

A = "/primary"
NAME = collection_name(A)
PATIENCE = 10_000.0
FILES = {f"file{number}": words(f"token{number}", f"other{number}") for number in range(6)}


async def donated(**changed: Any) -> Bench:
    """Have the reference engine index a tree; return the bench of a cell new there, with another tree by now."""
    donor = Bench(chunking=ChunkingProfile.KILO, cell_id="the reference engine")
    donor.tree(A, **FILES)
    async with donor.process() as process:
        await (await process.start(A)).settled()
    metadata = CollectionMetadata.from_payload(await metadata_of(donor.store))
    payload = evolve(metadata, **changed).to_payload()
    # Only we write these.
    for key in ("cell_id", "chunking_profile"):
        del payload[key]
    await donor.store.write_metadata(NAME, payload)
    hashes = {record.path: record.file_hash or "" for record in donor.ledgers[A].values()}
    return Bench(
        embedder=donor.embedder,
        store=donor.store,
        chunking=ChunkingProfile.KILO,
        trees=donor.trees,
        reference_hashes={A: hashes},
    )


async def metadata_of(store: VectorStore) -> dict[str, Any]:
    info = await store.describe(NAME)
    assert info is not None
    return dict(info.metadata or {})


async def adopted(bench: Bench) -> None:
    """Start a cell, take the collection over, and wait until the index is complete."""
    async with bench.process() as process:
        workspace = await process.start(A)
        workspace.adopt()
        while (status := workspace.status()).state is not State.INDEXED:
            assert status.state is not State.ERROR or "not made by this cell" in status.message, status.message
            await workspace.changes.beyond(workspace.changes.value)
        assert (await process.found(A, "token3 other3", min_score=0.5)).paths == ("file3.py",)
    assert await differences(bench, A) == []


async def test_without_being_asked_nothing_of_it_is_touched(autojump_clock: MockClock) -> None:
    bench = await donated()
    before = await metadata_of(bench.store)
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            status = await (await process.start(A)).settled()

    assert status.state is State.ERROR
    assert "Register the workspace with --adopt" in status.message
    assert await metadata_of(bench.store) == before
    assert bench.ledgers[A] == {}


async def test_nothing_is_embedded_or_written_again_where_the_cache_file_agrees(autojump_clock: MockClock) -> None:
    bench = await donated()
    sent = len(bench.sent())
    with trio.fail_after(PATIENCE):
        await adopted(bench)

    assert len(bench.sent()) == sent
    metadata = CollectionMetadata.from_payload(await metadata_of(bench.store))
    assert (metadata.cell_id, metadata.indexing_complete) == (bench.cell_id, True)


@pytest.mark.parametrize("chunking", ChunkingProfile)
async def test_nothing_is_embedded_again_without_a_cache_file_and_under_either_profile(
    autojump_clock: MockClock, chunking: ChunkingProfile
) -> None:
    bench = await donated()
    bench.reference_hashes = {}
    bench.chunking = chunking
    sent = len(bench.sent())
    with trio.fail_after(PATIENCE):
        await adopted(bench)

    assert len(bench.sent()) == sent
    assert (await metadata_of(bench.store))["chunking_profile"] == chunking


async def test_what_changed_since_then_is_all_that_is_embedded(autojump_clock: MockClock) -> None:
    bench = await donated()
    tree = bench.trees[A]
    tree.write("file0.py", words("heliotrope"))
    tree.write("new.py", words("vermilion"))
    tree.delete("file1.py")
    tree.rename("file2.py", "moved.py")
    tree.advance(10)
    sent = len(bench.sent())
    with trio.fail_after(PATIENCE):
        await adopted(bench)

    assert sorted(bench.sent()[sent:]) == [words("heliotrope").strip(), words("vermilion").strip()]


async def test_a_file_that_the_reference_engine_had_not_finished_is_chunked_again(autojump_clock: MockClock) -> None:
    bench = await donated(indexing_complete=False)
    del bench.reference_hashes[A]["file4.py"]
    bench.reference_hashes[A]["file5.py"] = "0" * 64
    bench.reference_hashes[A]["gone.py"] = "1" * 64
    sent = len(bench.sent())
    with trio.fail_after(PATIENCE):
        await adopted(bench)

    assert len(bench.sent()) == sent
    assert (await metadata_of(bench.store))["indexing_complete"] is True


async def test_a_file_without_chunks_is_known_from_the_cache_file(autojump_clock: MockClock) -> None:
    bench = await donated()
    bench.trees[A].write("empty.py", "x\n")
    bench.trees[A].advance(10)
    async with bench.process() as process:
        [hash_] = (await bench.trees[A].hashes(["empty.py"])).values()
        assert hash_ is not None
        bench.reference_hashes[A]["empty.py"] = hash_
        workspace = await process.start(A)
        workspace.adopt()
        with trio.fail_after(PATIENCE):
            while workspace.status().state is not State.INDEXED:
                await workspace.changes.beyond(workspace.changes.value)

    assert bench.ledgers[A]["empty.py"].file_hash == hash_


async def test_a_registration_that_failed_is_repeated_with_the_wish(autojump_clock: MockClock) -> None:
    bench = await donated()
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            workspace = await process.start(A)
            await trio.sleep(1000)
            assert workspace.status().state is State.ERROR
            began = trio.current_time()

            workspace.adopt()
            while workspace.status().state is not State.INDEXED:
                await workspace.changes.beyond(workspace.changes.value)

            assert trio.current_time() - began < 5


async def test_a_take_over_that_was_interrupted_is_repeated(autojump_clock: MockClock) -> None:
    bench = await donated()
    sent = len(bench.sent())
    error = StoreUnavailable("The store does not answer.")
    failures = [
        Failing("store.describe", error, times=1),
        Failing("store.stored_texts", error, times=1),
        Failing("cache.put", error, times=1),
        Failing("store.file_points", error, times=1),
        Failing("ledger.apply", error, times=1),
        Failing("store.write_metadata", error, times=1),
    ]
    with trio.fail_after(PATIENCE):
        async with bench.process(*failures) as process:
            workspace = await process.start(A)
            workspace.adopt()
            while workspace.status().state is not State.INDEXED:
                await workspace.changes.beyond(workspace.changes.value)

    assert [failing.times for failing in failures] == [0] * 6
    assert await differences(bench, A) == []
    assert len(bench.sent()) == sent


async def test_a_worktree_of_the_reference_engine_is_taken_over(autojump_clock: MockClock) -> None:
    worktree = "/worktree"
    bench = await donated()
    bench.tree(worktree, **(FILES | {"file0": words("heliotrope")}))
    bench.reference_hashes[worktree] = {**bench.reference_hashes[A]}
    async with Bench(
        embedder=bench.embedder, store=bench.store, chunking=bench.chunking, trees=bench.trees, cell_id="donor"
    ).process() as process:
        # Its own collection holds nothing but the file that differs.
        other = await process.start(worktree)
        await other.settled()
    name = collection_name(worktree)
    await bench.store.delete_files(name, [f"file{number}.py" for number in range(1, 6)])
    sent = len(bench.sent())

    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            primary = await process.start(A)
            primary.adopt()
            while primary.status().state is not State.INDEXED:
                await primary.changes.beyond(primary.changes.value)
            overlay = await process.start(worktree, baseline=A)
            overlay.adopt()
            while overlay.status().state is not State.INDEXED:
                await overlay.changes.beyond(overlay.changes.value)
            assert (await process.found(worktree, "heliotrope", min_score=0.5)).paths == ("file0.py",)
            assert (await process.found(worktree, "token3 other3", min_score=0.5)).paths == ("file3.py",)

    assert await differences(bench, worktree, baseline=A) == []
    assert len(bench.sent()) == sent


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"embedding_model_id": "another"}, "model 'another' became 'fnv1a-bag-of-tokens'"),
        ({"embedding_dimension": 8}, "dimension 8 became 512"),
        ({"index_schema": 1}, "schema 1 became 2"),
    ],
)
async def test_vectors_of_another_kind_are_not_taken_over(
    autojump_clock: MockClock, changed: dict[str, Any], why: str
) -> None:
    bench = await donated(**changed)
    before = await metadata_of(bench.store)
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            workspace = await process.start(A)
            workspace.adopt()
            while "cannot be taken over" not in workspace.status().message:
                await workspace.changes.beyond(workspace.changes.value)
            assert why in workspace.status().message

    assert await metadata_of(bench.store) == before


async def test_another_provider_of_the_same_model_is_no_obstacle(autojump_clock: MockClock) -> None:
    bench = await donated(embedding_provider="openai")
    with trio.fail_after(PATIENCE):
        await adopted(bench)


class Nomic(HashingEmbedder):
    """Embeds as a model does whose query prefix the reference engine puts before chunks as well."""

    def __init__(self, document_prefix: str) -> None:
        super().__init__(512)
        profile = EmbeddingProfile("openai-compatible", "nomic-embed-text", 512, 0.3, "search_query: ", document_prefix)
        object.__setattr__(self, "profile", profile)


@pytest.mark.parametrize(("prefix", "is_taken_over"), [("search_query: ", True), ("", False)])
async def test_chunks_that_were_embedded_with_a_prefix_need_that_prefix(
    autojump_clock: MockClock, prefix: str, is_taken_over: bool
) -> None:
    bench = await donated(embedding_model_id="nomic-embed-text", embedding_provider="openai-compatible")
    bench.embedder = Nomic(prefix)
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            workspace = await process.start(A)
            workspace.adopt()
            while workspace.status().state is not State.INDEXED and "document prefix" not in workspace.status().message:
                await workspace.changes.beyond(workspace.changes.value)

            assert (workspace.status().state is State.INDEXED) is is_taken_over
    assert bench.sent(Role.DOCUMENT) == []


async def test_taking_over_what_is_ours_already_changes_nothing(autojump_clock: MockClock) -> None:
    bench = Bench()
    bench.tree(A, **FILES)
    with trio.fail_after(PATIENCE):
        await adopted(bench)
        before = await metadata_of(bench.store)
        await adopted(bench)

    assert await metadata_of(bench.store) == before
