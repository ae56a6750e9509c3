"""The composition root: opens what a cell is made of in order, nests the nurseries, closes it all in reverse.

Only this module knows adapters and engine both. What must outlive something is opened before it: databases, vector store
and chunker pool, then the embedding scheduler, then the workspaces, which drain while all of that still works.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import trio
from attrs import define

from semindex.config import CellConfig
from semindex.core.eligibility import FileTypes
from semindex.embedders.static import StaticEmbedder
from semindex.engine.indexer import Tools
from semindex.engine.scheduler import EmbeddingScheduler
from semindex.engine.workspace import Limits, Workspace
from semindex.files.tree import WorkingTree
from semindex.model.errors import StateUnwritable
from semindex.parsing.pool import ProcessChunkerPool, open_chunker_pool
from semindex.ports import VectorStore
from semindex.state.database import Database, open_database
from semindex.state.embedding_cache import SqliteEmbeddingCache, open_embedding_cache
from semindex.state.ledger import SqliteLedger
from semindex.stores.edge import open_edge_store

logger = logging.getLogger(__name__)

FILE_THREADS = 4
"""Threads of the whole cell that walk, read and hash."""
SHUTDOWN_MARGIN = 1.0
"""Seconds beyond the drain grace after which an orderly end is cut."""


@define
class Cell:
    """The open parts of a cell, and the nursery that its workspaces live in."""

    config: CellConfig
    cell_id: str
    database: Database
    cache: SqliteEmbeddingCache
    store: VectorStore
    pool: ProcessChunkerPool
    scheduler: EmbeddingScheduler
    _file_threads: trio.CapacityLimiter
    _workspaces: trio.Nursery

    async def start_workspace(self, root: str, baseline: Workspace | None = None) -> Workspace:
        """Start the workspace of a canonical path; it runs until it is stopped or the cell ends."""
        indexing, extensions = self.config.indexing, self.config.indexing.file_extensions
        tree = WorkingTree(
            root,
            self._file_threads,
            types=FileTypes(indexing.profile, None if extensions is None else frozenset(extensions)),
            exclude=indexing.exclude,
            max_files=self.config.limits.max_files,
        )
        workspace = Workspace(
            root,
            tree,
            Tools(self.pool, self.scheduler, self.store, SqliteLedger(self.database, root)),
            chunking=indexing.profile,
            cell_id=self.cell_id,
            baseline=baseline,
            limits=Limits(drain_grace=self.config.shutdown.drain_grace_ms / 1000),
        )
        await self._workspaces.start(workspace.run)
        return workspace

    @property
    def min_score(self) -> float:
        """Return the cosine below which nothing is returned: as configured, else the model's own threshold."""
        configured = self.config.indexing.search_min_score
        return self.scheduler.profile.default_min_score if configured is None else configured


@asynccontextmanager
async def open_cell(config: CellConfig) -> AsyncIterator[Cell]:
    """Open a cell; on leaving, its workspaces drain within the grace, then everything is closed.

    Raises ConfigurationError, CellLocked, StateDamaged, StateUnwritable. As with any nursery, errors of the body come out
    in an ExceptionGroup.
    """
    for directory in (config.state_directory, config.cache_directory):
        _make_private(directory)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(config.state_directory / "cell.sqlite"))
        cache = await stack.enter_async_context(
            open_embedding_cache(config.cache_directory / "embeddings.sqlite", config.indexing.cache_max_bytes)
        )
        store = await stack.enter_async_context(open_edge_store(config.state_directory / "vectors"))
        pool = await stack.enter_async_context(open_chunker_pool(config.workers))
        scheduler = EmbeddingScheduler(await StaticEmbedder.load(), cache)
        async with trio.open_nursery() as services:
            await services.start(scheduler.run)
            async with trio.open_nursery() as workspaces:
                cell = Cell(
                    config,
                    "cell",
                    database,
                    cache,
                    store,
                    pool,
                    scheduler,
                    trio.CapacityLimiter(FILE_THREADS),
                    workspaces,
                )
                yield cell
            services.cancel_scope.cancel(reason="the cell is closed")


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StateUnwritable(f"{directory} cannot be made: {error.strerror}.") from error
