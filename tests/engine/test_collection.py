"""Opening, creating, describing and deleting the collection of a workspace."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import ANY

import pytest
import trio
import trio.testing
from attrs import evolve

from semindex.engine.collection import CollectionKeeper, Opened, contradictions, purge_collection
from semindex.engine.filetable import FileTable
from semindex.model.chunks import Chunk
from semindex.model.errors import ForeignCollection, StoreUnavailable
from semindex.model.ids import point_id
from semindex.model.points import CollectionMetadata, chunk_payload
from semindex.model.profiles import ChunkingProfile, EmbeddingProfile, Role
from semindex.model.status import FileRecord, FileState
from semindex.ports import VectorStore
from semindex.state.memory import MemoryLedger
from semindex.stores.memory import MemoryVectorStore
from semindex.testing.bench import Bench, words
from semindex.testing.intercept import Failing, Recorder, intercept

NAME = "ws-0123456789abcdef"
SMALL, LARGE = EmbeddingProfile("test", "small", 4), EmbeddingProfile("test", "large", 8)
EMPTY = FileTable()


def keeper_of(store: VectorStore, profile: EmbeddingProfile = SMALL, cell_id: str = "mine") -> CollectionKeeper:
    return CollectionKeeper(store, NAME, profile, ChunkingProfile.EXTENDED, cell_id)


async def metadata_of(store: VectorStore) -> CollectionMetadata:
    info = await store.describe(NAME)
    assert info is not None
    assert info.metadata is not None
    return CollectionMetadata.from_payload(info.metadata)


async def test_a_collection_that_does_not_exist_is_created_incomplete_and_ours() -> None:
    store = MemoryVectorStore()
    keeper = keeper_of(store)

    assert await keeper.open(EMPTY) == Opened(is_new=True, is_complete=False)
    assert not keeper.exists
    await keeper.ensure()

    assert keeper.exists
    assert await metadata_of(store) == CollectionMetadata(
        "test", "small", 4, False, ChunkingProfile.EXTENDED, "mine", ANY
    )


async def test_a_collection_that_was_completed_stays_complete_over_a_restart() -> None:
    store = MemoryVectorStore()
    first = keeper_of(store)
    await first.open(EMPTY)
    await first.ensure()
    assert not first.is_complete
    await first.describe(complete=True)

    again = keeper_of(store)
    assert await again.open(EMPTY) == Opened(is_new=False, is_complete=True)
    await again.ensure()
    assert again.is_complete
    assert (await metadata_of(store)).indexing_complete


async def test_a_collection_of_another_embedding_is_not_used_and_goes_when_the_new_one_is_made() -> None:
    store = MemoryVectorStore()
    await keeper_of(store, LARGE).ensure()

    keeper = keeper_of(store, SMALL)
    opened = await keeper.open(EMPTY)
    assert (opened.is_new, opened.is_complete, keeper.exists) == (True, False, False)
    assert (
        opened.change == "The index is built anew, because its model 'large' became 'small', its dimension 8 became 4."
    )
    assert (await metadata_of(store)).embedding_model_id == "large"

    await keeper.ensure()
    assert keeper.exists
    assert await metadata_of(store) == CollectionMetadata(
        "test", "small", 4, False, ChunkingProfile.EXTENDED, "mine", ANY
    )
    info = await store.describe(NAME)
    assert info is not None
    assert info.dimension == 4


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ({"provider": "other"}, "provider 'test' became 'other'"),
        ({"model": "other"}, "model 'small' became 'other'"),
        ({"query_prefix": "q: "}, "query prefix '' became 'q: '"),
        ({"document_prefix": "d: "}, "document prefix '' became 'd: '"),
    ],
)
async def test_everything_that_makes_vectors_incomparable_is_noticed_and_told(
    field: dict[str, Any], change: str
) -> None:
    store = MemoryVectorStore()
    await keeper_of(store, SMALL).ensure()

    keeper = keeper_of(store, evolve(SMALL, **field))
    opened = await keeper.open(EMPTY)
    assert opened.is_new
    assert opened.change == f"The index is built anew, because its {change}."

    await keeper.ensure()
    assert await keeper_of(store, evolve(SMALL, **field)).open(EMPTY) == Opened(is_new=False, is_complete=False)
    assert (await keeper_of(store, SMALL).open(EMPTY)).is_new


async def test_another_chunking_is_told_and_the_collection_is_kept() -> None:
    store = MemoryVectorStore()
    first = keeper_of(store)
    await first.ensure()
    await first.describe(complete=True)

    keeper = CollectionKeeper(store, NAME, SMALL, ChunkingProfile.KILO, "mine")
    opened = await keeper.open(EMPTY)
    assert (opened.is_new, opened.is_complete, keeper.exists) == (False, True, True)
    assert opened.change == "Files are chunked anew one by one, because the profile 'extended' became 'kilo'."
    assert not keeper.is_complete

    await keeper.describe(complete=True)
    assert (await metadata_of(store)).chunking_profile is ChunkingProfile.KILO


async def test_a_creation_that_was_cut_short_is_carried_on() -> None:
    failing = Failing("store.write_metadata", StoreUnavailable("The store does not answer."), times=1)
    store = intercept(MemoryVectorStore(), "store", [failing])
    keeper = keeper_of(store)
    await keeper.open(EMPTY)
    with pytest.raises(StoreUnavailable):
        await keeper.ensure()

    await keeper.ensure()

    assert (await metadata_of(store)).cell_id == "mine"


async def test_a_creation_that_a_kill_cut_short_is_carried_on_by_the_next_start() -> None:
    store = MemoryVectorStore()
    await store.create(NAME, 4)

    keeper = keeper_of(store)
    assert (await keeper.open(EMPTY)).is_new
    await keeper.ensure()

    assert (await metadata_of(store)).cell_id == "mine"


@pytest.mark.parametrize("cell_id", ["theirs", None])
async def test_a_foreign_collection_is_neither_used_nor_deleted(cell_id: str | None) -> None:
    store, ledger = MemoryVectorStore(), MemoryLedger({"a": FileRecord("a", FileState.PENDING)})
    await store.create(NAME, 8)
    await store.write_metadata(NAME, CollectionMetadata("x", "y", 8, True, cell_id=cell_id).to_payload())

    with pytest.raises(ForeignCollection, match="not made by this cell"):
        await keeper_of(store).open(EMPTY)
    await purge_collection(store, ledger, NAME, "mine")

    assert await store.collections() == [NAME]
    assert await ledger.load() == {}


async def test_a_purge_deletes_our_collection_and_its_ledger() -> None:
    store, ledger = MemoryVectorStore(), MemoryLedger({"a": FileRecord("a", FileState.PENDING)})
    await keeper_of(store).ensure()

    await purge_collection(store, ledger, NAME, "mine")

    assert await store.collections() == []
    assert await ledger.load() == {}
    await purge_collection(store, ledger, NAME, "mine")


async def test_a_purge_finishes_a_deletion_that_was_cut_short_and_left_no_collection_that_is_seen() -> None:
    remains = {NAME}

    class HalfDropped(MemoryVectorStore):
        """Holds what kill -9 leaves in the middle of a deletion: files under no name that is listed or described."""

        async def drop(self, collection: str) -> bool:
            await trio.lowlevel.checkpoint()
            was_there = collection in remains
            remains.discard(collection)
            return was_there

    store = HalfDropped()
    assert await store.describe(NAME) is None

    await purge_collection(store, MemoryLedger(), NAME, "mine")

    assert not remains


async def test_a_purge_whose_collection_stays_is_an_error_and_keeps_the_ledger() -> None:
    class Undead(MemoryVectorStore):
        async def drop(self, collection: str) -> bool:
            await trio.lowlevel.checkpoint()
            return True

    store, records = Undead(), {"a": FileRecord("a", FileState.PENDING)}
    await keeper_of(store).ensure()

    with pytest.raises(StoreUnavailable, match="still there"):
        await purge_collection(store, MemoryLedger(records), NAME, "mine")

    assert list(records) == ["a"]


@pytest.mark.parametrize("failing_call", ["store.open", "store.write_metadata", "store.create"])
async def test_what_was_opened_is_closed_even_if_opening_failed_half_way(failing_call: str) -> None:
    recorder, failing = Recorder(), Failing(failing_call, StoreUnavailable("The store does not answer."))
    real = MemoryVectorStore()
    if failing_call == "store.open":
        await keeper_of(real).ensure()
    store = intercept(real, "store", [recorder, failing])
    keeper = keeper_of(store)
    failing.times = 1

    async def open_and_ensure() -> None:
        await keeper.open(EMPTY)
        await keeper.ensure()

    with pytest.raises(StoreUnavailable):
        await open_and_ensure()
    await keeper.close()

    assert len(recorder.of("store.close")) == 1


async def test_where_nothing_was_opened_nothing_is_closed() -> None:
    recorder = Recorder()
    keeper = keeper_of(intercept(MemoryVectorStore(), "store", [recorder]))

    await keeper.close()
    await keeper.open(EMPTY)
    await keeper.close()

    assert recorder.of("store.close") == []


def record(path: str, chunks: int, **fields: object) -> FileRecord:
    return FileRecord(path, FileState.INDEXED, "h", chunks=chunks, **fields)  # type: ignore[arg-type]  # a test's shorthand


@pytest.mark.parametrize(
    ("records", "stored", "repaired"),
    [
        ([record("a", 2)], {"a": {"h": 2}}, []),
        ([record("a", 2)], {}, ["a"]),
        ([record("a", 2)], {"a": {"h": 1}}, ["a"]),
        ([record("a", 2)], {"a": {"h": 3}}, ["a"]),
        ([record("a", 2)], {"a": {"old": 2}}, ["a"]),
        ([record("a", 2)], {"a": {"h": 2, "old": 1}}, ["a"]),
        ([record("a", 2, dirty=True)], {"a": {"h": 2}}, ["a"]),
        ([record("a", 0, inherited=True)], {}, []),
        ([record("a", 0, inherited=True)], {"a": {"h": 1}}, ["a"]),
        ([FileRecord("a", FileState.FAILED)], {}, []),
        ([FileRecord("a", FileState.FAILED)], {"a": {"h": 1}}, ["a"]),
        ([], {"stray": {"h": 1}}, ["stray"]),
    ],
)
async def test_the_files_of_which_the_store_says_otherwise_are_repaired_and_no_others(
    records: Sequence[FileRecord], stored: dict[str, dict[str, int]], repaired: Sequence[str]
) -> None:
    others = {f"fine{number}": {"h": 1} for number in range(3)}
    table = FileTable([*records, *(record(path, 1) for path in others)])

    found = await contradictions(table, {**others, **stored})

    assert [each.path for each in found] == repaired
    assert all(each.dirty for each in found)


async def test_points_that_the_store_lost_or_gained_are_repaired_with_vectors_from_the_cache(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, recorder = Bench(), Recorder()
    bench.tree("/r", **{f"f{number}": words(f"token{number}") for number in range(10)})
    with trio.fail_after(60):
        async with bench.process() as process:
            await (await process.start("/r")).settled()
        sent = bench.sent()
        (name,) = await bench.store.collections()
        await bench.store.delete_files(name, ["f3.py", "f4.py"])
        stray = Chunk("stray", 1, 1, 5, "0" * 64, "lines")
        vectors = await bench.embedder.embed(["stray"], Role.QUERY)
        await bench.store.upsert(name, [point_id("0" * 64)], vectors, [chunk_payload("stray.py", "h", stray)])

        async with bench.process(recorder) as process:
            await (await process.start("/r")).settled()
            written = [call.args[1] for call in recorder.of("store.upsert")]
            assert sum(map(len, written)) == 2
            assert (await process.found("/r", "token3")).paths == ("f3.py",)
            assert (await process.found("/r", "stray")).paths == ()
        assert bench.sent() == sent
        info = await bench.store.describe(name)
        assert info is not None
        assert info.points == 10
