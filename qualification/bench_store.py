"""Measures the embedded vector store against the exact twin in memory: ``python qualification/bench_store.py``.

Prints what a person compares between releases: points written per second, search times before and after the graph is
built, recall against exact search, and how long the event loop was held. Trust the ratios more than the times. Exits
with status 1 where recall or the loop's delay is out of bounds.
"""

import argparse
import sys
import tempfile
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
import trio
from attrs import field, frozen

from semindex.model.chunks import Chunk
from semindex.model.ids import point_id
from semindex.model.points import Payload, chunk_payload
from semindex.ports import Vectors, VectorStore
from semindex.stores import edge_optimizer
from semindex.stores.edge import EdgeVectorStore, open_edge_store
from semindex.stores.memory import MemoryVectorStore

COLLECTION = "ws-bench"
BATCH = 60
LIMIT = 50
LEAST_RECALL = 0.95
LONGEST_DELAY_MS = 20.0
"""Bound of the 95th percentile of the loop's delays; the longest one is often the machine's doing."""


@frozen
class Corpus:
    """Points around cluster centres, fifteen to a file, and queries near some of them."""

    ids: Sequence[str]
    vectors: Vectors
    payloads: Sequence[Payload]
    queries: Vectors

    @classmethod
    def make(cls, points: int, dimension: int, queries: int) -> "Corpus":
        """Make the same corpus each time."""
        random = np.random.default_rng(20)
        centres = random.normal(size=(points // 100 + 1, dimension))
        vectors = centres[random.integers(0, len(centres), points)] + 0.7 * random.normal(size=(points, dimension))
        near = vectors[random.integers(0, points, queries)] + 0.5 * random.normal(size=(queries, dimension))
        payloads = [
            chunk_payload(path_of(number // 15), "0" * 64, Chunk("x = 1  # \n" * 70, 1, 70, 700, str(number), "block"))
            for number in range(points)
        ]
        ids = [point_id(str(number)) for number in range(points)]
        return cls(ids, unit(vectors), payloads, unit(near))


@frozen
class Question:
    """A kind of search."""

    name: str
    segments: Sequence[str] = ()
    exclude: Collection[str] = field(factory=frozenset, repr=False)


def path_of(file: int) -> str:
    """Return a path: half of the files differ in an early segment, half in one deeper than any index reaches."""
    if file % 2:
        return f"part{file % 20}/module{file % 7}/file{file}.py"
    return f"src/main/java/org/example/part{file % 20}/File{file}.java"


QUESTIONS = (
    Question("everything"),
    Question("a twentieth, by an indexed prefix", ("part3",)),
    Question("a twentieth, by a deeper prefix", ("src", "main", "java", "org", "example", "part4")),
    Question("half, excluding 2,000 paths", exclude=frozenset(path_of(file) for file in range(0, 4000, 2))),
)


def unit(vectors: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Vectors:
    """Scale rows to length 1."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


async def write(store: VectorStore, corpus: Corpus) -> float:
    """Write everything in batches, as the indexer does; return points per second."""
    await store.create(COLLECTION, corpus.vectors.shape[1])
    began = perf_counter()
    for start in range(0, len(corpus.ids), BATCH):
        part = slice(start, start + BATCH)
        await store.upsert(COLLECTION, corpus.ids[part], corpus.vectors[part], corpus.payloads[part])
    return len(corpus.ids) / (perf_counter() - began)


async def search(store: VectorStore, corpus: Corpus, question: Question) -> tuple[list[set[str]], list[float]]:
    """Return the hits of each query, and its milliseconds."""
    found, times = [], []
    for query in corpus.queries:
        began = perf_counter()
        hits = await store.search(
            COLLECTION, query, limit=LIMIT, min_score=0.2, segments=question.segments, exclude=question.exclude
        )
        times.append(1000 * (perf_counter() - began))
        found.append({hit.segment_hash for hit in hits[:10]})
    return found, times


async def longest_delays(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Run some work; return the 95th percentile and the maximum of the loop's delays meanwhile, in milliseconds."""
    delays = []

    async def tick() -> None:
        while True:
            due = perf_counter() + 0.005
            await trio.sleep(0.005)
            delays.append(1000 * (perf_counter() - due))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        await work()
        nursery.cancel_scope.cancel()
    return float(np.percentile(delays, 95)), max(delays)


def recall(found: Sequence[set[str]], exact: Sequence[set[str]]) -> float:
    """Return the share of the exact hits that were found."""
    return sum(len(a & b) for a, b in zip(found, exact, strict=True)) / max(sum(map(len, exact)), 1)


async def compare(store: VectorStore, memory: VectorStore, corpus: Corpus) -> float:
    """Print one line per kind of search; return the least recall."""
    recalls = []
    for question in QUESTIONS:
        exact, memory_times = await search(memory, corpus, question)
        found, times = await search(store, corpus, question)
        recalls.append(recall(found, exact))
        p50, p95 = np.percentile(times, [50, 95])
        ratio = p50 / np.percentile(memory_times, 50)
        print(
            f"  {question.name:34} p50 {p50:6.2f} ms  p95 {p95:6.2f} ms  {ratio:5.2f}x memory  recall@10 {recalls[-1]:.3f}"
        )
    return min(recalls)


async def measure(store: EdgeVectorStore, corpus: Corpus) -> bool:
    """Print everything; return whether it is within bounds."""
    began = perf_counter()
    await store.collections()
    print(f"worker ready after {1000 * (perf_counter() - began):.0f} ms")
    memory = MemoryVectorStore()
    in_memory = await write(memory, corpus)
    speeds = []

    async def bulk() -> None:
        speeds.append(await write(store, corpus))

    p95, longest = await longest_delays(bulk)
    print(f"written: {speeds[0]:.0f} points/s ({in_memory / speeds[0]:.1f}x in memory), batches of {BATCH}")
    print(f"event loop held while writing: p95 {p95:.1f} ms, at most {longest:.1f} ms")
    began = perf_counter()
    await store.flush(COLLECTION)
    print(f"flushed in {perf_counter() - began:.2f} s\nsearched before optimising:")
    before = await compare(store, memory, corpus)
    edge_optimizer.LARGE_POINTS = 0  # this corpus is smaller than what the store would optimise by itself
    began = perf_counter()
    await store.optimize(COLLECTION)
    print(f"optimised in {perf_counter() - began:.1f} s\nsearched after optimising:")
    after = await compare(store, memory, corpus)
    began = perf_counter()
    files = await store.file_points(COLLECTION)
    print(f"{len(files)} files counted in {perf_counter() - began:.2f} s")
    return min(before, after) >= LEAST_RECALL and p95 <= LONGEST_DELAY_MS


async def main(points: int, dimension: int, queries: int) -> bool:
    """Measure with a store in a temporary directory."""
    corpus = Corpus.make(points, dimension, queries)
    print(f"{points} points of dimension {dimension}, limit {LIMIT}")
    with tempfile.TemporaryDirectory() as directory:
        async with open_edge_store(Path(directory)) as store:
            return await measure(store, corpus)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--points", type=int, default=20_000)
    arguments.add_argument("--dimension", type=int, default=256)
    arguments.add_argument("--queries", type=int, default=200)
    options = arguments.parse_args()
    sys.exit(0 if trio.run(main, options.points, options.dimension, options.queries) else 1)
