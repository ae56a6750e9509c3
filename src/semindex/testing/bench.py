"""A cell on twins in this process: no thread, no file, no socket, so that it runs under a virtual clock.

A :class:`Bench` is what outlives a process: working trees, collections, ledgers, the embedding cache. A
:class:`Process` is one life of the service above it; when it ends without having been told, that is a kill.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import trio
from attrs import define, field, frozen

from semindex.embedders.hashing import HashingEmbedder
from semindex.engine.scheduler import EmbeddingScheduler
from semindex.engine.search import SearchAnswer, SearchRequest
from semindex.engine.tools import Tools
from semindex.engine.turns import BuildTurns
from semindex.engine.workspace import Limits, Workspace
from semindex.model.profiles import ChunkingProfile, Role
from semindex.model.status import FileRecord
from semindex.ports import EmbeddingCache, EventSource, VectorStore
from semindex.state.memory import MemoryEmbeddingCache, MemoryLedger
from semindex.stores.memory import MemoryVectorStore
from semindex.testing.chunker import MemoryChunkerPool
from semindex.testing.intercept import Around, intercept
from semindex.testing.tree import MemoryTree

P = TypeVar("P")


def words(*tokens: str, units: int = 60) -> str:
    """Return a text of nothing but these tokens that is long enough for a chunk: a query for them scores high."""
    line = " ".join(tokens)
    return "\n".join([line] * (units // (len(line) + 1) + 1)) + "\n"


@define
class Bench:
    """What outlives a process."""

    embedder: HashingEmbedder = field(factory=lambda: HashingEmbedder(dimension=512))
    store: VectorStore = field(factory=MemoryVectorStore)
    cache: EmbeddingCache = field(factory=MemoryEmbeddingCache)
    chunking: ChunkingProfile = ChunkingProfile.EXTENDED
    trees: dict[str, MemoryTree] = field(factory=dict)
    ledgers: dict[str, dict[str, FileRecord]] = field(factory=dict)
    cell_id: str = "bench"
    events: EventSource | None = None
    reference_hashes: dict[str, dict[str, str]] = field(factory=dict)
    """By root: what the reference engine's cache file says."""

    def tree(self, root: str, **files: str) -> MemoryTree:
        """Return the working tree at a root, made on first use; ``files`` are written as ``<name>.py``."""
        tree = self.trees.setdefault(root, MemoryTree())
        for name, text in files.items():
            tree.write(f"{name}.py", text)
        tree.advance(10)
        return tree

    async def reference_hashes_of(self, root: str) -> dict[str, str]:
        """Read the cache file of a root."""
        await trio.lowlevel.checkpoint()
        return self.reference_hashes.get(root, {})

    def sent(self, role: Role = Role.DOCUMENT) -> list[str]:
        """Return every text that was ever sent to the embedder."""
        return [text for call in self.embedder.calls if call.role is role for text in call.texts]

    @asynccontextmanager
    async def process(self, *arounds: Around, concurrency: int = 4) -> AsyncIterator["Process"]:
        """Run a process over this bench, its port calls led through ``arounds``; stop it in order at the end."""
        async with trio.open_nursery() as nursery:
            process = Process(self, nursery, tuple(arounds), concurrency)
            await nursery.start(process.scheduler.run)
            async with trio.open_nursery() as workspaces:
                process.nursery = workspaces
                yield process
                for root in reversed(list(process.workspaces)):
                    await process.stop(root)
            nursery.cancel_scope.cancel(reason="the process ended")


class Process:
    """One life of a cell."""

    def __init__(self, bench: Bench, nursery: trio.Nursery, arounds: Sequence[Around], concurrency: int) -> None:
        """Make the parts that all workspaces share; workspaces run in ``nursery``."""
        self.nursery = nursery
        self._bench = bench
        self._arounds = arounds
        embedder, cache = self._through(bench.embedder, "embedder"), self._through(bench.cache, "cache")
        self.scheduler = EmbeddingScheduler(embedder, cache, concurrency=concurrency)
        self._pool = self._through(MemoryChunkerPool(bench.trees), "pool")
        self._store = self._through(bench.store, "store")
        self._turns = BuildTurns()
        self.workspaces: dict[str, Workspace] = {}

    async def start(self, root: str, *, baseline: str | None = None, limits: Limits | None = None) -> Workspace:
        """Start the workspace at a root, as an overlay if its baseline's root is given."""
        ledger = self._through(MemoryLedger(self._bench.ledgers.setdefault(root, {})), "ledger")
        workspace = Workspace(
            root,
            self._through(self._bench.tree(root), "tree"),
            Tools(self._pool, self.scheduler, self._store, ledger, self._turns),
            chunking=self._bench.chunking,
            cell_id=self._bench.cell_id,
            baseline=None if baseline is None else self.workspaces[baseline],
            limits=limits,
            events=self._bench.events,
            reference_hashes=partial(self._bench.reference_hashes_of, root),
        )
        self.workspaces[root] = workspace
        await self.nursery.start(workspace.run)
        return workspace

    async def stop(self, root: str, *, purge: bool = False) -> Workspace:
        """Stop a workspace and wait until it is closed."""
        workspace = self.workspaces.pop(root)
        workspace.stop(purge=purge)
        await workspace.closed.wait()
        return workspace

    async def found(self, root: str, query: str, *, min_score: float = 0.2, max_results: int = 20) -> "Found":
        """Search a workspace after everything on disk was taken in."""
        request = SearchRequest(query, min_score=min_score, max_results=max_results, fresh_seconds=3600)
        return Found.of(await self.workspaces[root].search(request))

    def _through(self, port: P, name: str) -> P:
        return intercept(port, name, self._arounds)


@frozen
class Found:
    """What a search found, in short."""

    paths: tuple[str, ...]
    answer: SearchAnswer

    @classmethod
    def of(cls, answer: SearchAnswer) -> "Found":
        """Shorten an answer."""
        return cls(tuple(hit.file_path for hit in answer.results), answer)
