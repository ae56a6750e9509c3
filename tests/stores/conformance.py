"""What every vector store must do: subclass :class:`VectorStoreConformance` and provide the fixture ``store``.

A new adapter needs nothing but a module with a subclass and that fixture.
"""

import math
import uuid
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import pytest
import trio
import trio.testing

from semindex.model.chunks import Chunk
from semindex.model.errors import StoreRejected
from semindex.model.ids import METADATA_POINT_ID, point_id
from semindex.model.points import Hit, Payload, chunk_payload
from semindex.ports import Vectors, VectorStore

WS = "ws-0123456789abcdef"
NAN, INF = math.nan, math.inf


def payload(path: str, line: int = 1, *, text: str = "x = 1", file_hash: str = "hash") -> Payload:
    return chunk_payload(path, file_hash, Chunk(text, line, line + 1, len(text), f"{path}:{line}", "function"))


def vectors(*rows: Sequence[float]) -> Vectors:
    return np.array(rows, np.float32)


async def put(store: VectorStore, path: str, *rows: Sequence[float], file_hash: str = "hash") -> list[str]:
    """Store one chunk per vector, at lines 1, 2, …; return their ids."""
    ids = [point_id(f"{path}:{line}") for line in range(1, len(rows) + 1)]
    payloads = [payload(path, line, file_hash=file_hash) for line in range(1, len(rows) + 1)]
    await store.upsert(WS, ids, vectors(*rows), payloads)
    return ids


async def paths(store: VectorStore, *, segments: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[str]:
    """Return the path of each chunk that a search without a threshold finds, sorted."""
    hits = await store.search(WS, vectors([1, 0])[0], limit=1000, min_score=-2, segments=segments, exclude=exclude)
    return sorted(hit.file_path for hit in hits)


async def points(store: VectorStore) -> int:
    info = await store.describe(WS)
    assert info is not None
    return info.points


CALLS: dict[str, Callable[[VectorStore], Awaitable[object]]] = {
    "open": lambda store: store.open(WS),
    "write_metadata": lambda store: store.write_metadata(WS, {"a": 1}),
    "upsert": lambda store: store.upsert(WS, [point_id("a")], vectors([1, 0]), [payload("a.py")]),
    "delete_files": lambda store: store.delete_files(WS, ["a.py"]),
    "search": lambda store: store.search(WS, vectors([1, 0])[0], limit=5, min_score=0),
    "fetch_vectors": lambda store: store.fetch_vectors(WS, [point_id("a")]),
    "file_points": lambda store: store.file_points(WS),
    "stored_texts": lambda store: store.stored_texts(WS),
    "flush": lambda store: store.flush(WS),
    "optimize": lambda store: store.optimize(WS),
}
"""Calls that need the collection ``WS`` of dimension 2."""

REFUSED: dict[str, tuple[list[str], Vectors, list[Payload], str]] = {
    "a component that is NaN": ([point_id("a")], vectors([1, NAN]), [payload("a.py")], "NaN"),
    "an infinite component": ([point_id("a")], vectors([1, -INF]), [payload("a.py")], "infinite"),
    "another dimension": (
        [point_id("a")],
        vectors([1, 2, 3]),
        [payload("a.py")],
        r"dimension 2, not of shape \[1, 3\]",
    ),
    "fewer vectors than ids": (
        [point_id("a"), point_id("b")],
        vectors([1, 0]),
        [payload("a.py")] * 2,
        r"2 ids .*\[1, 2\]",
    ),
    "fewer payloads than ids": (
        [point_id("a"), point_id("b")],
        vectors([1, 0], [0, 1]),
        [payload("a.py")],
        "2 ids .* 1 pay",
    ),
    "a single vector's shape": ([point_id("a")], vectors([1, 0])[0], [payload("a.py")], r"1 ids .*\[2\]"),
    "an empty id": ([""], vectors([1, 0]), [payload("a.py")], "'' is no point id"),
    "an id that is no UUID": (["chunk-1"], vectors([1, 0]), [payload("a.py")], "'chunk-1' is no point id"),
    "an id in another spelling": ([point_id("a").upper()], vectors([1, 0]), [payload("a.py")], "lower case"),
    "the id of the metadata point": ([METADATA_POINT_ID], vectors([1, 0]), [payload("a.py")], "metadata point"),
    "a path that is not Unicode": ([point_id("a")], vectors([1, 0]), [payload("a\udcff.py")], "filePath.* surrogate"),
}


class VectorStoreConformance:
    async def test_a_new_collection_is_empty(self, store: VectorStore) -> None:
        await store.create(WS, 2)

        info = await store.describe(WS)
        assert info is not None
        assert (info.dimension, info.points, info.metadata) == (2, 0, None)
        assert await paths(store) == []
        assert await store.file_points(WS) == {}

    async def test_what_was_never_created_is_described_as_absent(self, store: VectorStore) -> None:
        assert await store.describe(WS) is None
        assert await store.collections() == []
        assert await store.drop(WS) is False

    async def test_creating_what_exists_is_refused_and_leaves_it_alone(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])

        with pytest.raises(StoreRejected, match="exists already"):
            await store.create(WS, 2)

        assert await paths(store) == ["a.py"]

    async def test_creating_what_exists_is_refused_even_if_it_is_empty(self, store: VectorStore) -> None:
        await store.create(WS, 2)

        with pytest.raises(StoreRejected, match="exists already"):
            await store.create(WS, 2)

    async def test_collections_are_listed_by_name_and_are_apart(self, store: VectorStore) -> None:
        for name in ("ws-b", "ws-a", WS):
            await store.create(name, 2)
        await put(store, "a.py", [1, 0])

        assert await store.collections() == [WS, "ws-a", "ws-b"]
        assert await store.search("ws-a", vectors([1, 0])[0], limit=5, min_score=-2) == []

    async def test_a_name_that_could_leave_the_store_is_refused(self, store: VectorStore) -> None:
        for name in ("", ".", "..", "../ws", "a/b", "ws.bad-1", "ws\0", "wś"):
            for call in (store.create(name, 2), store.drop(name), store.describe(name), store.close(name)):
                with pytest.raises(StoreRejected, match="no collection name"):
                    await call

    async def test_a_dimension_below_one_is_refused(self, store: VectorStore) -> None:
        with pytest.raises(StoreRejected, match="dimension 0"):
            await store.create(WS, 0)

        assert await store.describe(WS) is None

    async def test_a_hit_has_what_was_stored(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        stored = payload("src/ünï/日本 🦀.py", 7, text='"\\ \r\n\t\0 ß 🦀\u2028', file_hash="h" * 64)
        await store.upsert(WS, [point_id("a")], vectors([3, 4]), [stored])

        [hit] = await store.search(WS, vectors([1, 0])[0], limit=5, min_score=0)

        assert hit.score == pytest.approx(0.6)
        assert hit == Hit.from_payload(hit.score, stored)

    async def test_writing_a_point_again_replaces_it(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        [point] = await put(store, "a.py", [1, 0])

        await store.upsert(WS, [point], vectors([0, 1]), [payload("b.py")])
        await store.upsert(WS, [point], vectors([0, 1]), [payload("b.py")])

        assert await points(store) == 1
        assert await store.file_points(WS) == {"b.py": {"hash": 1}}
        [hit] = await store.search(WS, vectors([0, 1])[0], limit=5, min_score=0.9)
        assert hit.file_path == "b.py"

    async def test_the_last_of_two_points_with_one_id_in_a_batch_stays(self, store: VectorStore) -> None:
        await store.create(WS, 2)

        await store.upsert(WS, [point_id("a")] * 2, vectors([1, 0], [0, 1]), [payload("a.py"), payload("b.py")])

        assert await store.file_points(WS) == {"b.py": {"hash": 1}}

    async def test_writing_nothing_is_allowed(self, store: VectorStore) -> None:
        await store.create(WS, 2)

        await store.upsert(WS, [], np.empty((0, 2), np.float32), [])
        await store.delete_files(WS, [])

        assert await points(store) == 0

    async def test_deleting_no_file_deletes_nothing(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])

        await store.delete_files(WS, [])
        await store.delete_files(WS, ["b.py"])

        assert await paths(store) == ["a.py"]

    @pytest.mark.parametrize(
        ("gone", "kept"),
        [
            ("a/b", ["a/b/c", "a/b/c/d.py", "a/bc", "a", "x/a/b"]),
            ("p/a/b/c/d/e/f.py", ["p/a/b/c/d/e/g.py", "p/a/b/c/d/x.py", "p/a/b/c/d/e/f.py/y.py", "p/a/b/c/d"]),
            ("p/a/b/c/d", ["p/a/b/c/d/e", "p/a/b/c/d/e/f"]),
            ("Ä/ß.py", ["Ä/s.py", "a/ß.py", "ä/ß.py"]),
        ],
    )
    async def test_deleting_a_file_leaves_every_other_file(
        self, store: VectorStore, gone: str, kept: list[str]
    ) -> None:
        await store.create(WS, 2)
        for path in [gone, *kept]:
            await put(store, path, [1, 0], [0, 1])

        await store.delete_files(WS, [gone])

        assert await paths(store) == sorted(kept * 2)
        assert await points(store) == 2 * len(kept)

    async def test_many_files_are_deleted_by_one_call(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        files = [f"src/{number}.py" for number in range(130)]
        ids = [point_id(path) for path in files]
        await store.upsert(WS, ids, vectors(*[[1, 0]] * 130), [payload(path) for path in files])

        await store.delete_files(WS, files[:120])

        assert await paths(store) == sorted(files[120:])

    async def test_hits_are_ordered_by_their_cosine_and_cut_at_the_limit(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        for degrees in (80, 10, 170, 45):
            angle = math.radians(degrees)
            await put(store, f"{degrees}.py", [7 * math.cos(angle), 7 * math.sin(angle)])

        hits = await store.search(WS, vectors([5, 0])[0], limit=3, min_score=-1)

        assert [hit.file_path for hit in hits] == ["10.py", "45.py", "80.py"]
        assert [hit.score for hit in hits] == pytest.approx([math.cos(math.radians(d)) for d in (10, 45, 80)], abs=1e-6)
        assert await store.search(WS, vectors([5, 0])[0], limit=0, min_score=-1) == []

    async def test_a_score_equal_to_the_least_is_kept(self, store: VectorStore) -> None:
        await store.create(WS, 4)
        await put(store, "half.py", [1, 1, 1, 1])
        await put(store, "none.py", [0, 1, 0, 0])
        query = vectors([1, 0, 0, 0])[0]

        at_half = await store.search(WS, query, limit=5, min_score=0.5)
        above_half = await store.search(WS, query, limit=5, min_score=0.5001)
        at_zero = await store.search(WS, query, limit=5, min_score=0.0)

        assert [hit.file_path for hit in at_half] == ["half.py"]
        assert above_half == []
        assert [hit.file_path for hit in at_zero] == ["half.py", "none.py"]

    @pytest.mark.parametrize(
        ("segments", "found"),
        [
            ((), ["src", "src/a.py", "src/a.py/b.py", "src/lib/a.py", "src2/a.py"]),
            (("src",), ["src", "src/a.py", "src/a.py/b.py", "src/lib/a.py"]),
            (("src", "a.py"), ["src/a.py", "src/a.py/b.py"]),
            (("src", "lib"), ["src/lib/a.py"]),
            (("sr",), []),
            (("lib",), []),
            (("src", "a.py", "b.py", "c"), []),
        ],
    )
    async def test_a_prefix_names_a_file_or_a_directory(
        self, store: VectorStore, segments: tuple[str, ...], found: list[str]
    ) -> None:
        await store.create(WS, 2)
        for path in ("src/a.py", "src/a.py/b.py", "src/lib/a.py", "src2/a.py", "src"):
            await put(store, path, [1, 0])

        assert await paths(store, segments=segments) == found

    async def test_a_prefix_deeper_than_any_index_still_fills_the_limit(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        near = [f"a/b/c/d/e/near/{number}.py" for number in range(400)]
        far = [f"a/b/c/d/e/far/x/{number}.py" for number in range(8)]
        await store.upsert(
            WS,
            [point_id(path) for path in near + far],
            vectors(*[[1, 0.01]] * len(near), *[[1, 1]] * len(far)),
            [payload(path) for path in near + far],
        )
        query = vectors([1, 0])[0]

        hits = await store.search(WS, query, limit=5, min_score=0.1, segments=("a", "b", "c", "d", "e", "far", "x"))
        one = await store.search(WS, query, limit=5, min_score=0.1, segments=tuple(far[3].split("/")))

        assert len(hits) == 5
        assert {hit.file_path for hit in hits} < set(far)
        assert [hit.file_path for hit in one] == [far[3]]

    async def test_excluded_files_are_neither_returned_nor_counted(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        for path in ("a.py", "b.py", "b.py/c.py", "d.py"):
            await put(store, path, [1, 0], [1, 0.1])

        assert await paths(store, exclude=["b.py", "unknown.py"]) == [
            "a.py",
            "a.py",
            "b.py/c.py",
            "b.py/c.py",
            "d.py",
            "d.py",
        ]
        assert await paths(store, segments=["b.py"], exclude=["b.py"]) == ["b.py/c.py"] * 2
        hits = await store.search(WS, vectors([1, 0])[0], limit=2, min_score=0, exclude={"a.py", "b.py", "d.py"})
        assert [hit.file_path for hit in hits] == ["b.py/c.py"] * 2

    async def test_very_many_files_can_be_excluded(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        await put(store, "src/20000.py", [1, 0])
        await put(store, "src/19999.py", [1, 0])

        assert await paths(store, exclude=[f"src/{number}.py" for number in range(20_000)]) == ["src/20000.py"]

    async def test_metadata_is_replaced_and_never_found_or_counted(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])
        await store.write_metadata(WS, {"type": "metadata", "started_at": 1, "embedding_model_id": "ünï"})
        await store.write_metadata(WS, {"completed_at": 2, "indexing_complete": True})

        info = await store.describe(WS)
        assert info is not None
        assert info.metadata == {"type": "metadata", "completed_at": 2, "indexing_complete": True}
        assert info.points == 1
        assert await paths(store) == ["a.py"]
        assert await store.file_points(WS) == {"a.py": {"hash": 1}}

    async def test_vectors_come_back_by_id_with_length_one(self, store: VectorStore) -> None:
        await store.create(WS, 3)
        ids = await put(store, "a.py", [0, 3, 4], [0, 0, 0], [-2, 0, 0])

        found = await store.fetch_vectors(WS, [*ids[::-1], point_id("unknown")])

        assert set(found) == set(ids)
        assert all(vector.dtype == np.float32 for vector in found.values())
        rows = np.stack([found[point] for point in ids])
        np.testing.assert_allclose(rows, vectors([0, 0.6, 0.8], [0, 0, 0], [-1, 0, 0]), atol=1e-6)
        assert await store.fetch_vectors(WS, []) == {}

    async def test_many_points_are_written_and_fetched_by_one_call(self, store: VectorStore) -> None:
        await store.create(WS, 8)
        ids = [str(uuid.UUID(int=number)) for number in range(700)]
        rows = np.random.default_rng(7).normal(size=(700, 8)).astype(np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)

        await store.upsert(WS, ids, rows, [payload(f"{number % 30}.py", number) for number in range(700)])
        found = await store.fetch_vectors(WS, ids)

        np.testing.assert_allclose(np.stack([found[point] for point in ids]), rows, atol=1e-6)
        [hit] = await store.search(WS, rows[555], limit=1, min_score=0.9)
        assert hit.start_line == 555

    async def test_points_are_counted_by_file_and_hash(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0], [0, 1], file_hash="old")
        await put(store, "a.py", [1, 0], file_hash="new")
        await put(store, "b/c.py", [1, 0])

        assert await store.file_points(WS) == {"a.py": {"old": 1, "new": 1}, "b/c.py": {"hash": 1}}

    async def test_more_points_than_a_page_are_counted_and_found(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        ids = [str(uuid.UUID(int=number)) for number in range(4500)]
        rows = np.tile(vectors([1, 0]), (4500, 1))

        await store.upsert(WS, ids, rows, [payload(f"{number % 9}.py", number) for number in range(4500)])

        assert await store.file_points(WS) == {f"{number}.py": {"hash": 500} for number in range(9)}
        hits = await store.search(WS, rows[0], limit=4200, min_score=0)
        assert len({hit.start_line for hit in hits}) == 4200

    async def test_every_text_is_read_once_with_its_vector_page_by_page(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        await store.write_metadata(WS, {"a": 1})
        ids = [str(uuid.UUID(int=number)) for number in range(600)]
        rows = np.array([[math.cos(number), math.sin(number)] for number in range(600)], np.float32)
        await store.upsert(WS, ids, rows, [payload("a.py", number, text=f"text {number}") for number in range(600)])

        found: list[tuple[str, Vectors]] = []
        page = await store.stored_texts(WS)
        while True:
            found += zip(page.texts, page.vectors, strict=True)
            if page.following is None:
                break
            page = await store.stored_texts(WS, page.following)

        assert sorted(text for text, _ in found) == sorted(f"text {number}" for number in range(600))
        for text, vector in found:
            np.testing.assert_allclose(vector, rows[int(text.removeprefix("text "))], atol=1e-6)

    async def test_a_dropped_collection_is_gone_and_its_name_free(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])
        await store.write_metadata(WS, {"a": 1})

        assert await store.drop(WS) is True

        assert await store.describe(WS) is None
        assert await store.collections() == []
        assert await store.drop(WS) is False
        await store.create(WS, 3)
        info = await store.describe(WS)
        assert info is not None
        assert (info.dimension, info.points, info.metadata) == (3, 0, None)
        await put(store, "a.py", [1, 0, 0])

    async def test_a_closed_collection_is_opened_by_the_next_call(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])

        await store.close(WS)
        await store.close(WS)

        assert await paths(store) == ["a.py"]

    async def test_a_collection_survives_being_flushed_and_optimised(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])

        await store.open(WS)
        await store.flush(WS)
        await store.optimize(WS)

        assert await paths(store) == ["a.py"]

    async def test_closing_what_does_not_exist_is_allowed(self, store: VectorStore) -> None:
        await store.close(WS)

    async def test_every_call_for_an_unknown_collection_is_refused(self, store: VectorStore) -> None:
        for call in CALLS.values():
            with pytest.raises(StoreRejected, match=f"{WS} does not exist"):
                await call(store)
            assert await store.describe(WS) is None

    async def test_every_call_is_a_checkpoint(self, store: VectorStore) -> None:
        await store.create(WS, 2)

        for call in CALLS.values():
            with trio.testing.assert_checkpoints():
                await call(store)

    @pytest.mark.parametrize("fault", REFUSED)
    async def test_points_are_refused_for(self, store: VectorStore, fault: str) -> None:
        ids, rows, payloads, message = REFUSED[fault]
        await store.create(WS, 2)

        with pytest.raises(StoreRejected, match=message):
            await store.upsert(WS, ids, rows, payloads)

        assert await points(store) == 0

    async def test_one_point_that_is_refused_keeps_all_others_out(self, store: VectorStore) -> None:
        await store.create(WS, 2)
        ids = [str(uuid.UUID(int=number)) for number in range(600)]
        rows = np.tile(vectors([1, 0]), (600, 1))
        rows[599, 1] = NAN

        with pytest.raises(StoreRejected, match="NaN"):
            await store.upsert(WS, ids, rows, [payload("a.py", number) for number in range(600)])

        assert await points(store) == 0

    @pytest.mark.parametrize(
        ("query", "message"),
        [
            (vectors([1, NAN])[0], "NaN"),
            (vectors([1, 0, 0])[0], r"dimension 2, not of shape \[3\]"),
            (vectors([1, 0]), r"one vector, not vectors of shape \[1, 2\]"),
        ],
    )
    async def test_a_query_is_refused(self, store: VectorStore, query: Vectors, message: str) -> None:
        await store.create(WS, 2)

        with pytest.raises(StoreRejected, match=message):
            await store.search(WS, query, limit=5, min_score=0)

    async def test_paths_that_are_not_unicode_are_refused(self, store: VectorStore) -> None:
        await store.create(WS, 2)

        with pytest.raises(StoreRejected, match="surrogate"):
            await store.delete_files(WS, ["a\udcff.py"])
        with pytest.raises(StoreRejected, match="surrogate"):
            await paths(store, segments=["a\udcff"])
        with pytest.raises(StoreRejected, match="surrogate"):
            await paths(store, exclude=["a\udcff"])
        with pytest.raises(StoreRejected, match="surrogate"):
            await store.write_metadata(WS, {"embedding_model_id": "\ud800"})

    async def test_calls_at_the_same_time_get_their_own_answers(self, store: VectorStore) -> None:
        await store.create(WS, 2)

        async def write_and_find(number: int) -> None:
            path = f"{number}/{number}.py"
            await put(store, path, [1, number])
            assert await paths(store, segments=[str(number)]) == [path]
            assert await store.fetch_vectors(WS, [point_id("unknown")]) == {}
            await store.delete_files(WS, [path])

        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                for number in range(25):
                    nursery.start_soon(write_and_find, number)

        assert await points(store) == 0
