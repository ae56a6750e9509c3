"""Measures the production adapters against the doubles: ``python qualification/bench_adapters.py``.

The Qdrant double runs in a process of its own, as a server does; the embedder is instant, so that what is measured
is our side of the wire. Prints points written per second through the cell's embedding scheduler and the store,
texts embedded per second through the endpoint's adapter, and how long the event loop was held. Exits with status 1
where a point costs this side more CPU time than 3,000 a second allow, or the loop was held for too long: both are
the same on a busy machine.
"""

import argparse
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import numpy as np
import trio
from attrs import frozen

from semindex.commands.startup import quieten_collector
from semindex.embedders.endpoint import endpoint_of
from semindex.embedders.openai_compatible import open_endpoint_embedder
from semindex.engine.priority import Priority
from semindex.engine.scheduler import EmbeddingScheduler
from semindex.model.chunks import Chunk
from semindex.model.ids import point_id
from semindex.model.points import Payload, chunk_payload
from semindex.model.profiles import EmbeddingProfile, Role
from semindex.ports import Vectors, VectorStore
from semindex.state.memory import MemoryEmbeddingCache
from semindex.stores.qdrant import open_qdrant_store
from semindex.stores.qdrant_calls import parse_url
from semindex.testing.doubles import DoubleProcess
from semindex.testing.stalls import Stalls, watched_stalls

COLLECTION = "ws-bench"
POINTS_PER_COMMIT = 240
"""Points that the indexer writes at once."""
COMMITS_AT_ONCE = 2
"""Workspaces that are being built at the same time."""
TEXTS_PER_CALL = 240
LEAST_POINTS_PER_SECOND = 3_000
LONGEST_STALL = 0.030
"""Seconds for which the loop may be held."""
LINE = "x = 1  # \n"


class InstantEmbedder:
    """Has every vector ready."""

    batch_size = 60

    def __init__(self, dimension: int) -> None:
        self.profile = EmbeddingProfile("bench", "instant", dimension)
        rows = np.random.default_rng(20).normal(size=(self.batch_size, dimension))
        self._rows: Vectors = np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return unit vectors."""
        await trio.lowlevel.checkpoint()
        return self._rows[: len(texts)]


@frozen
class Measured:
    """What a run cost."""

    count: int
    seconds: float
    own_seconds: float
    """CPU time of this process."""
    stalls: Stalls

    def line(self, what: str) -> str:
        """Return a line for people."""
        return (
            f"{what}: {self.count / self.seconds:,.0f}/s; {1000 * self.own_seconds / self.count:.3f} ms of CPU each on this "
            f"side; loop held for {1000 * self.stalls.loop:.1f} ms at most, by others {1000 * self.stalls.others:.1f} ms"
        )


def batch(number: int) -> tuple[list[str], list[str], list[Payload]]:
    """Return ids, texts and payloads of one commit."""
    numbers = range(number * POINTS_PER_COMMIT, (number + 1) * POINTS_PER_COMMIT)
    texts = [f"{LINE * 70}{each}" for each in numbers]
    payloads = [
        chunk_payload(f"src/part{each % 20}/file{each // 15}.py", "0" * 64, Chunk(text, 1, 70, 700, str(each), "block"))
        for each, text in zip(numbers, texts, strict=True)
    ]
    return [point_id(str(each)) for each in numbers], texts, payloads


async def write(store: VectorStore, scheduler: EmbeddingScheduler, commits: int) -> None:
    """Embed and store so many commits, as workspaces do."""
    numbers = iter(range(commits))

    async def build() -> None:
        for number in numbers:
            ids, texts, payloads = batch(number)
            embedded = await scheduler.embed_documents(texts, Priority.BACKFILL)
            vectors = np.stack([embedded.vectors[index] for index in range(len(texts))])
            await store.upsert(COLLECTION, ids, vectors, payloads)

    async with trio.open_nursery() as nursery:
        for _ in range(COMMITS_AT_ONCE):
            nursery.start_soon(build)


async def measure_store(url: str, points: int, dimension: int) -> Measured:
    """Write points into a collection of its own."""
    embedder, commits = InstantEmbedder(dimension), -(-points // POINTS_PER_COMMIT)
    scheduler = EmbeddingScheduler(embedder, MemoryEmbeddingCache())
    async with open_qdrant_store(parse_url(url), None, call_timeout=60, concurrency=8) as store:
        await store.drop(COLLECTION)
        await store.create(COLLECTION, dimension)
        async with trio.open_nursery() as services, watched_stalls() as stalls:
            await services.start(scheduler.run)
            began, own = time.perf_counter(), time.process_time()
            await write(store, scheduler, commits)
            seconds, own = time.perf_counter() - began, time.process_time() - own
            services.cancel_scope.cancel(reason="all is written")
        info = await store.describe(COLLECTION)
        assert info is not None
        assert info.points == commits * POINTS_PER_COMMIT
        await store.drop(COLLECTION)
    return Measured(info.points, seconds, own, stalls)


async def measure_embedder(url: str, texts: int, dimension: int) -> Measured:
    """Embed texts through the endpoint's adapter."""
    profile = EmbeddingProfile("openai-compatible", "bench", dimension)
    async with open_endpoint_embedder(
        endpoint_of(f"{url}/v1", None), profile, batch_size=60, concurrency=4, request_timeout=60, tries=3
    ) as embedder:
        await embedder.embed(["first"], Role.DOCUMENT)
        numbers = iter(range(0, texts, embedder.batch_size))

        async def embed() -> None:
            for number in numbers:
                await embedder.embed([f"{LINE * 70}{number + each}" for each in range(60)], Role.DOCUMENT)

        async with watched_stalls() as stalls:
            began, own = time.perf_counter(), time.process_time()
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(embed)
            return Measured(texts, time.perf_counter() - began, time.process_time() - own, stalls)


@asynccontextmanager
async def double(module: str, *arguments: str) -> AsyncIterator[str]:
    """Run a double; starting and ending it may block, since nothing else is under way."""
    with DoubleProcess(f"semindex.testing.{module}", arguments) as process:
        yield process.url


async def main(points: int, dimension: int) -> bool:
    """Print everything; return whether it is within bounds."""
    quieten_collector()  # as a cell does
    async with double("qdrant_double") as url:
        stored = await measure_store(url, points, dimension)
    print(stored.line(f"points of dimension {dimension}, embedded in an instant and stored"))
    async with double("embedder_double", "--dimension", str(dimension)) as url:
        embedded = await measure_embedder(url, points // 4, dimension)
    print(embedded.line("texts embedded by the endpoint"))
    stalls = max(stored.stalls.loop, embedded.stalls.loop)
    return stored.count / stored.own_seconds >= LEAST_POINTS_PER_SECOND and stalls <= LONGEST_STALL


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--points", type=int, default=20_000)
    arguments.add_argument("--dimension", type=int, default=384)
    options = arguments.parse_args()
    sys.exit(0 if trio.run(main, options.points, options.dimension) else 1)
