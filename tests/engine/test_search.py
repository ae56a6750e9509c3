"""One query's way from the store's hits to verified results, on the exact store."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
import trio
import trio.testing
from attrs import define, field

from semindex.engine.filetable import FileTable
from semindex.engine.index import Index
from semindex.engine.priority import Priority
from semindex.engine.search import Candidates, SearchRequest, Source, overlay_sources
from semindex.model.chunks import Chunk
from semindex.model.errors import StoreUnavailable
from semindex.model.ids import point_id
from semindex.model.points import Hit, chunk_payload
from semindex.model.status import FileRecord, FileState
from semindex.ports import TreeScan, Vectors
from semindex.stores.memory import MemoryVectorStore
from semindex.testing.intercept import Around, Call, Proceed, Recorder, intercept

BASE, DELTA = "ws-base", "ws-delta"
PATIENCE = 60.0


@define
class Disk:
    """What lies on the disk: path → hash; and which files were read, in which calls."""

    hashes_by_path: dict[str, str] = field(factory=dict)
    reads: list[list[str]] = field(factory=list)

    async def hashes(self, paths: Sequence[str]) -> dict[str, str | None]:
        self.reads.append(list(paths))
        await trio.lowlevel.checkpoint()
        return {path: self.hashes_by_path.get(path) for path in paths}

    async def scan(self) -> TreeScan:
        raise NotImplementedError

    async def look(self, paths: Sequence[str]) -> TreeScan:
        raise NotImplementedError

    async def explain(self, path: str) -> Any:
        raise NotImplementedError


@define
class Library:
    """Collections of chunks whose scores are chosen freely."""

    store: MemoryVectorStore = field(factory=MemoryVectorStore)
    disk: Disk = field(factory=Disk)

    async def add(
        self, path: str, score: float, *, lines: tuple[int, int] = (1, 9), file_hash: str = "h", collection: str = BASE
    ) -> None:
        await self.add_many({path: score}, lines=lines, file_hash=file_hash, collection=collection)

    async def add_many(
        self,
        scores: Mapping[str, float],
        *,
        lines: tuple[int, int] = (1, 9),
        file_hash: str = "h",
        collection: str = BASE,
    ) -> None:
        if collection not in await self.store.collections():
            await self.store.create(collection, 2)
        ids = [f"{collection} {path} {lines} {file_hash}" for path in scores]
        chunks = [Chunk(f"text of {path}", *lines, 50, name, "t") for name, path in zip(ids, scores, strict=True)]
        await self.store.upsert(
            collection,
            [point_id(name) for name in ids],
            np.array([[score, np.sqrt(1 - score**2)] for score in scores.values()], np.float32),
            [chunk_payload(path, file_hash, chunk) for path, chunk in zip(scores, chunks, strict=True)],
        )
        for path in scores:
            self.disk.hashes_by_path.setdefault(path, file_hash)

    def candidates(self, sources: Sequence[Source], arounds: Sequence[Around], **fields: Any) -> Candidates:
        request = SearchRequest("", **{"max_results": 3, "candidates": 3, "min_score": 0.0, **fields})
        return Candidates(intercept(self.store, "store", arounds), self.disk, sources, request)

    async def best(self, *arounds: Around, sources: Sequence[Source] = (), **fields: Any) -> list[Hit]:
        candidates = self.candidates(sources or [anything(BASE)], arounds, **fields)
        with trio.fail_after(PATIENCE):
            return await candidates.best(QUERY)


QUERY: Vectors = np.array([1, 0], np.float32)


def anything(collection: str) -> Source:
    return Source(collection, lambda _hit: True)


def paths(hits: Sequence[Hit]) -> list[str]:
    return [hit.file_path for hit in hits]


async def test_the_best_come_first_and_no_more_than_asked_for() -> None:
    library = Library()
    await library.add_many({"c": 0.5, "a": 0.9, "b": 0.7, "d": 0.3})

    assert paths(await library.best()) == ["a", "b", "c"]
    assert paths(await library.best(max_results=1)) == ["a"]
    assert paths(await library.best(max_results=50)) == ["a", "b", "c", "d"]


async def test_nothing_below_the_minimal_score_is_returned() -> None:
    library = Library()
    await library.add_many({"a": 0.9, "b": 0.5, "c": 0.2})

    assert paths(await library.best(min_score=0.5)) == ["a", "b"]


async def test_only_files_below_the_prefix_are_returned() -> None:
    library = Library()
    await library.add_many({"src/a": 0.9, "src/deep/b": 0.8, "srcs/c": 0.7, "lib/src/d": 0.6})

    assert paths(await library.best(segments=("src",))) == ["src/a", "src/deep/b"]
    assert paths(await library.best(segments=("src", "deep"))) == ["src/deep/b"]


@pytest.mark.parametrize("candidates", [3, 7, 50, 200])
async def test_ties_are_in_the_order_of_path_and_lines_whatever_the_store_returned_first(candidates: int) -> None:
    library = Library()
    names = [f"f{number:03}" for number in range(100)]
    await library.add_many(dict.fromkeys(reversed(names), 0.5))
    await library.add("f000", 0.5, lines=(20, 30))
    await library.add("z", 0.9)

    hits = await library.best(max_results=4, candidates=candidates)

    assert [(hit.file_path, hit.start_line) for hit in hits] == [("z", 1), ("f000", 1), ("f000", 20), ("f001", 1)]


async def test_a_hit_inside_a_better_one_of_its_file_is_folded_and_replaced() -> None:
    library = Library()
    await library.add("a", 0.9, lines=(10, 50))
    await library.add("a", 0.8, lines=(20, 30))
    await library.add("a", 0.7, lines=(5, 30))
    await library.add("b", 0.6, lines=(20, 30))
    await library.add("a", 0.5, lines=(10, 50), file_hash="other")

    folded = await library.best(max_results=3, candidates=3)
    kept = await library.best(max_results=4, candidates=3, fold=False)

    assert [(hit.file_path, hit.start_line) for hit in folded] == [("a", 10), ("a", 5), ("b", 20)]
    assert [(hit.file_path, hit.start_line) for hit in kept] == [("a", 10), ("a", 20), ("a", 5), ("b", 20)]


async def test_a_better_hit_is_not_folded_into_a_worse_one_around_it() -> None:
    library = Library()
    await library.add("a", 0.9, lines=(20, 30))
    await library.add("a", 0.8, lines=(10, 50))

    assert [hit.start_line for hit in await library.best()] == [20, 10]


async def test_hits_of_files_that_are_not_what_was_indexed_are_withheld_counted_and_replaced() -> None:
    library = Library()
    await library.add_many({f"gone{n}": 0.9 - n / 1000 for n in range(10)} | {"a": 0.5, "b": 0.4, "c": 0.3, "d": 0.2})
    for n in range(10):
        del library.disk.hashes_by_path[f"gone{n}"]
    library.disk.hashes_by_path["b"] = "changed"
    candidates = library.candidates([anything(BASE)], [])

    assert paths(await candidates.best(QUERY)) == ["a", "c", "d"]
    assert candidates.withheld == 11


async def test_a_withheld_hit_that_is_met_again_is_counted_once() -> None:
    library = Library()
    await library.add_many({f"f{n}": 0.9 - n / 100 for n in range(20)})
    library.disk.hashes_by_path["f0"] = "changed"
    candidates = library.candidates([anything(BASE)], [], max_results=15, candidates=2)

    assert len(await candidates.best(QUERY)) == 15
    assert candidates.withheld == 1


async def test_fewer_results_come_only_when_the_store_holds_no_more() -> None:
    library = Library()
    await library.add_many({f"f{n:04}": 0.9 - n / 10_000 for n in range(5000)} | {"first": 0.3, "second": 0.2})
    for n in range(5000):
        library.disk.hashes_by_path[f"f{n:04}"] = "changed"

    assert paths(await library.best()) == ["first", "second"]


@pytest.mark.parametrize("candidates", [3, 50, 200])
async def test_thousands_of_masked_hits_above_the_first_valid_one_do_not_starve_it(candidates: int) -> None:
    library = Library()
    await library.add_many({f"masked{n}": 0.9 - n / 100_000 for n in range(5000)} | {"a": 0.3, "b": 0.2, "c": 0.1})
    masking = Source(BASE, lambda hit: not hit.file_path.startswith("masked"))

    assert paths(await library.best(sources=[masking], candidates=candidates)) == ["a", "b", "c"]
    assert all("masked" not in path for read in library.disk.reads for path in read)


async def test_what_is_known_to_be_masked_is_not_asked_for_again() -> None:
    library, recorder = Library(), Recorder()
    await library.add_many({f"masked{n}": 0.9 - n / 1000 for n in range(20)} | {"a": 0.3, "b": 0.2, "c": 0.1})
    known = frozenset(f"masked{n}" for n in range(10))
    masking = Source(BASE, lambda hit: not hit.file_path.startswith("masked"), known)

    assert paths(await library.best(recorder, sources=[masking])) == ["a", "b", "c"]
    excluded = [set(call.kwargs["exclude"]) for call in recorder.of("store.search")]
    assert excluded[0] >= known
    assert len(excluded[1]) > len(known)
    assert masking.exclude == known


async def test_files_are_read_once_and_only_as_far_down_as_needed() -> None:
    library = Library()
    await library.add_many({f"f{n:03}": 0.9 - n / 1000 for n in range(100)})
    for n in range(40):
        await library.add(f"f{n:03}", 0.1, lines=(20, 30))

    await library.best(candidates=100)
    assert library.disk.reads == [["f000", "f001", "f002"]]

    library.disk.reads.clear()
    library.disk.hashes_by_path["f001"] = "changed"
    await library.best(candidates=100)
    read = [path for paths in library.disk.reads for path in paths]
    assert len(read) == len(set(read)) == 6


async def test_a_file_that_changes_between_the_store_and_the_check_is_not_shown() -> None:
    library = Library()
    await library.add_many({"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.6})

    async def edit(call: Call, proceed: Proceed) -> Any:
        hits = await proceed()
        library.disk.hashes_by_path["a"] = "edited meanwhile"
        return hits

    assert paths(await library.best(edit)) == ["b", "c", "d"]


async def test_a_file_that_the_check_says_nothing_of_is_not_shown() -> None:
    library = Library()
    await library.add_many({"a": 0.9, "b": 0.8})

    class Silent(Disk):
        async def hashes(self, paths: Sequence[str]) -> dict[str, str | None]:
            return {path: "h" for path in await super().hashes(paths) if path != "a"}

    library.disk = Silent(library.disk.hashes_by_path)
    assert paths(await library.best()) == ["b"]


async def test_two_collections_give_one_ranking_in_which_each_text_stands_once() -> None:
    library = Library()
    await library.add_many({"a": 0.9, "c": 0.7, "e": 0.5})
    await library.add_many({"b": 0.8, "c": 0.7, "d": 0.6}, collection=DELTA)

    hits = await library.best(sources=[anything(DELTA), anything(BASE)], max_results=9, candidates=2)

    assert paths(hits) == ["a", "b", "c", "d", "e"]


async def test_a_collection_that_was_cut_off_early_hides_nothing_better() -> None:
    """The delta is exhausted at once, the baseline's best lie just below what its first page showed."""
    library = Library()
    await library.add_many({f"base{n}": 0.9 - n / 100 for n in range(10)})
    await library.add_many({f"delta{n}": 0.5 for n in range(3)}, collection=DELTA)

    hits = await library.best(sources=[anything(DELTA), anything(BASE)], max_results=8, candidates=8)
    assert paths(hits) == [f"base{n}" for n in range(8)]

    masking = Source(BASE, lambda hit: hit.file_path not in {"base0", "base1"})
    hits = await library.best(sources=[anything(DELTA), masking], max_results=9, candidates=9)
    assert paths(hits) == [f"base{n}" for n in range(2, 10)] + ["delta0"]


async def test_the_store_is_asked_for_all_collections_at_once(autojump_clock: trio.testing.MockClock) -> None:
    library = Library()
    await library.add("a", 0.9)
    await library.add("b", 0.8, collection=DELTA)

    async def slow(call: Call, proceed: Proceed) -> Any:
        await trio.sleep(1)
        return await proceed()

    candidates = library.candidates([anything(DELTA), anything(BASE)], [slow])
    assert paths(await candidates.best(QUERY)) == ["a", "b"]
    assert trio.current_time() == pytest.approx(1)
    assert candidates.store_seconds == pytest.approx(1)
    assert candidates.verification_seconds == 0


@pytest.mark.parametrize("failing", [BASE, DELTA])
async def test_what_the_store_raises_for_one_collection_is_raised_plainly_and_at_once(
    autojump_clock: trio.testing.MockClock, failing: str
) -> None:
    library = Library()
    await library.add("a", 0.9)
    await library.add("b", 0.8, collection=DELTA)

    async def break_one(call: Call, proceed: Proceed) -> Any:
        if call.args[0] != failing:
            await trio.sleep(10)
            return await proceed()
        await trio.lowlevel.checkpoint()
        raise StoreUnavailable("It does not answer.")

    with pytest.raises(StoreUnavailable, match="does not answer"):
        await library.best(break_one, sources=[anything(DELTA), anything(BASE)])
    assert trio.current_time() == 0


async def test_a_hit_of_the_baseline_counts_only_for_a_file_that_the_overlay_has() -> None:
    await trio.lowlevel.checkpoint()
    baseline, overlay = Index(), Index()
    names = ["inherited", "own", "waiting", "deleted"]
    await baseline.start_over(FileTable(FileRecord(name, FileState.INDEXED, "h") for name in names))
    await overlay.start_over(
        FileTable(
            [
                FileRecord("inherited", FileState.INDEXED, "h", inherited=True),
                FileRecord("own", FileState.INDEXED, "other"),
                FileRecord("waiting", FileState.INDEXED, "other"),
            ]
        )
    )
    baseline.attach(overlay)
    overlay.note_pending("waiting", Priority.EDIT)

    own, inherited = overlay_sources(overlay, DELTA, BASE)
    hits = [Hit(name, 1, 9, 0.5, "text", "h", name) for name in [*names, "unknown"]]

    assert (own.collection, [own.accepts(hit) for hit in hits]) == (DELTA, [True] * 5)
    assert inherited.collection == BASE
    assert [hit.file_path for hit in hits if inherited.accepts(hit)] == ["inherited", "waiting"]
    assert [source.collection for source in overlay_sources(overlay, None, BASE)] == [BASE]
