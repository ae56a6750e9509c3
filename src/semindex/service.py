"""The composition root: opens what a cell is made of in order, nests the nurseries, closes it all in reverse.

Only this module knows adapters and engine both. What must outlive something is opened before it: state,
vector store and chunker pool, then the embedding scheduler, then the workspaces, which drain while all of that
still works, then the doors.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import trio
from attrs import frozen

from semindex.cell.cell import Cell
from semindex.cell.inspection import Inspection
from semindex.cell.leases import Leases, lies_in
from semindex.cell.operations import Operations
from semindex.cell.searches import SearchDefaults, Searches
from semindex.cell.tokens import SearchTokens
from semindex.config import CellConfig, IndexingConfig
from semindex.core.eligibility import FileTypes
from semindex.embedders.factory import concurrency_of, open_embedder
from semindex.engine.collection import purge_collection
from semindex.engine.revision import Revision
from semindex.engine.scheduler import EmbeddingScheduler
from semindex.engine.tools import Tools
from semindex.engine.turns import BuildTurns, Turns
from semindex.engine.workspace import Limits, Workspace
from semindex.files.roots import LocalPlaces
from semindex.files.tree import WorkingTree
from semindex.files.watching.source import open_event_source
from semindex.janitor import Janitor
from semindex.leasing import Policy
from semindex.model.errors import (
    ChunkingFailed,
    EmbedderUnavailable,
    PathRefused,
    StateUnwritable,
    StoreUnavailable,
)
from semindex.model.ids import collection_name
from semindex.model.profiles import ChunkingProfile, Role
from semindex.observe.calls import observed
from semindex.observe.health import DependencyHealth
from semindex.observe.metrics import Metrics
from semindex.parsing.pool import ProcessChunkerPool, open_chunker_pool
from semindex.ports import CellState, ChunkerPool, Embedder, EventSource, TryFailed, VectorStore
from semindex.registry import Registry
from semindex.state.cell_directory import CellDirectory
from semindex.state.cell_state import open_cell_state
from semindex.state.embedding_cache import open_embedding_cache
from semindex.state.reference_cache import read_reference_cache
from semindex.stores.factory import open_vector_store

logger = logging.getLogger(__name__)

VECTORS = "vectors"
"""Directory of the embedded vector store, in the state directory."""
FILE_THREADS = 4
"""Threads of the whole cell that walk, read and hash."""
SHUTDOWN_MARGIN = 0.5
"""Seconds beyond its graces after which an orderly end is cut."""


OpenEmbedder = Callable[[IndexingConfig, TryFailed], AbstractAsyncContextManager[Embedder]]
"""Opens the embedder of a cell, which tells of tries that failed."""


class OpenEventSource(Protocol):
    """Opens the event source of a cell."""

    def __call__(self, *, overflowed: Callable[[], object]) -> AbstractAsyncContextManager[EventSource]:
        """``overflowed`` is called whenever events were lost."""


@frozen
class WorkspaceMaker:
    """Starts the workspaces of a cell, and purges those that do not run."""

    config: CellConfig
    state: CellState
    store: VectorStore
    pool: ChunkerPool
    scheduler: EmbeddingScheduler
    events: EventSource
    changes: Revision
    file_threads: trio.CapacityLimiter
    nursery: trio.Nursery
    """Where they live."""
    boundaries: Callable[[], list[str]]
    """Returns the paths of all registered workspaces."""
    edit_settled: Callable[[float], None]
    """Told of every edit that became searchable, with the seconds that it took."""
    turns: BuildTurns

    async def start(self, root: str, baseline: Workspace | None) -> Workspace:
        """Start the workspace of a canonical path; it runs until it is stopped or the cell ends."""
        indexing = self.config.indexing
        extensions = indexing.file_extensions
        tree = WorkingTree(
            root,
            self.file_threads,
            types=FileTypes(indexing.profile, None if extensions is None else frozenset(extensions)),
            exclude=indexing.exclude,
            boundaries=self.boundaries,
            max_files=self.config.limits.max_files,
        )
        workspace = Workspace(
            root,
            tree,
            Tools(self.pool, self.scheduler, self.store, self.state.ledger(root), self.turns),
            chunking=indexing.profile,
            cell_id=self.state.cell_id,
            baseline=baseline,
            limits=Limits(drain_grace=self.config.shutdown.drain_grace_ms / 1000, quiet=indexing.debounce_ms / 1000),
            events=self.events,
            changes=self.changes,
            reference_hashes=partial(
                read_reference_cache,
                indexing.adopt_cache_directory or self.config.cache_directory,
                root,
                self.file_threads,
            ),
            edit_settled=self.edit_settled,
        )
        await self.nursery.start(workspace.run)
        return workspace

    async def purge(self, root: str) -> None:
        """Delete what is stored for a canonical path. Raises StoreUnavailable if that cannot be done now."""
        await purge_collection(self.store, self.state.ledger(root), collection_name(root), self.state.cell_id)


@asynccontextmanager
async def open_cell(
    config: CellConfig,
    directory: CellDirectory,
    *,
    embedder: OpenEmbedder = open_embedder,
    events: OpenEventSource = open_event_source,
) -> AsyncIterator[Cell]:
    """Open a cell in a directory that this process holds; its registrations are not restored yet.

    ``embedder`` and ``events`` open what makes its vectors and what tells it of edits.
    On leaving, workspaces drain within the grace, then everything is closed. Raises ConfigurationError, StateDamaged,
    StateUnwritable. As with any nursery, errors of the body come out in an ExceptionGroup.
    """
    _make_private(config.cache_directory)
    changes, file_threads = Revision(), trio.CapacityLimiter(FILE_THREADS)
    places = LocalPlaces(file_threads)
    allowed_roots = tuple([await _canonical(places, root) for root in config.allowed_roots])
    metrics = Metrics()
    embedder_health = DependencyHealth(EmbedderUnavailable, changes.bump)
    store_health = DependencyHealth(StoreUnavailable, changes.bump)
    async with AsyncExitStack() as stack:
        state = await stack.enter_async_context(open_cell_state(directory.database_path))
        cache = await stack.enter_async_context(
            open_embedding_cache(config.cache_directory / "embeddings.sqlite", config.indexing.cache_max_bytes)
        )
        vectors = await stack.enter_async_context(
            open_vector_store(config.indexing, config.state_directory / VECTORS, store_health.try_failed)
        )
        store = observed(vectors, store_health, metrics.storing)
        pool = await stack.enter_async_context(open_chunker_pool(config.workers))
        watching = await stack.enter_async_context(events(overflowed=metrics.overflowed))
        model = await stack.enter_async_context(embedder(config.indexing, embedder_health.try_failed))
        embedding = observed(model, embedder_health, metrics.embedding)
        scheduler = EmbeddingScheduler(embedding, cache, concurrency=concurrency_of(config.indexing))
        async with trio.open_nursery() as services:
            await services.start(scheduler.run)
            probe = partial(embedding.embed, ["probe"], Role.QUERY)
            services.start_soon(partial(embedder_health.probe_while_failing, probe, at_first=True))
            services.start_soon(store_health.probe_while_failing, store.collections)
            async with trio.open_nursery() as workspaces:
                maker = WorkspaceMaker(
                    config,
                    state,
                    store,
                    pool,
                    scheduler,
                    watching,
                    changes,
                    file_threads,
                    workspaces,
                    boundaries=lambda: registry.paths(),
                    edit_settled=metrics.settled,
                    turns=BuildTurns(chunking=Turns(config.workers)),
                )
                policy = Policy(
                    config.retention.worktree == "purge", config.retention.ttl, config.limits.max_registrations
                )
                hindrance = partial(_hindrance, config, allowed_roots)
                registry = Registry(state, maker.start, maker.purge, policy, workspaces, changes, hindrance=hindrance)
                threshold = config.indexing.search_min_score
                defaults = SearchDefaults(
                    scheduler.profile.default_min_score if threshold is None else threshold,
                    config.indexing.search_max_results,
                    fold=config.indexing.profile is ChunkingProfile.EXTENDED,
                )
                cell = Cell(
                    leases=Leases(registry, places, allowed_roots),
                    searches=Searches(registry, places, defaults, metrics.searched),
                    operations=Operations(state, registry, changes, workspaces),
                    inspection=Inspection(registry, file_threads),
                    search_tokens=SearchTokens(state, registry),
                    janitor=Janitor(state, store, registry, places),
                    changes=changes,
                    scheduler=scheduler,
                    cache=cache,
                    embedder_health=lambda: embedder_health.status,
                    store_health=lambda: store_health.status,
                    watchers=lambda: watching.watched,
                    metrics=metrics.text,
                )
                async with trio.open_nursery() as housekeeping:
                    await housekeeping.start(cell.janitor.run)
                    housekeeping.start_soon(_look_for_grammars, cell, pool)
                    for dependency in (embedder_health, store_health):
                        housekeeping.start_soon(cell.janitor.wake_after_each, dependency.recoveries)
                    yield cell
                    housekeeping.cancel_scope.cancel(reason="the cell is closed")
                cell.begin_stopping()
                registry.stop_all()
                limit = config.shutdown.drain_grace_ms / 1000 + SHUTDOWN_MARGIN
                workspaces.cancel_scope.deadline = trio.current_time() + limit
            services.cancel_scope.cancel(reason="the cell is closed")


async def restore(cell: Cell) -> None:
    """Open what was registered in earlier runs."""
    await cell.operations.load()
    await cell.leases.registry.restore()
    await cell.search_tokens.load()
    cell.is_restored = True
    cell.changes.bump()


def _hindrance(config: CellConfig, allowed_roots: tuple[str, ...], path: str) -> str | None:
    """Return why the workspace of a path, registered now or in an earlier run, may not run."""
    if not config.indexing.enabled:
        return "Indexing is disabled in the configuration (indexing.enabled)."
    if not any(lies_in(path, root) for root in allowed_roots):
        return "It lies outside of the directories that may be indexed now; serve it again, or release it."
    return None


async def _look_for_grammars(cell: Cell, pool: ProcessChunkerPool) -> None:
    """Note which grammars cannot be loaded on this machine; that degrades the chunking of their files, and no more."""
    try:
        cell.missing_grammars = tuple(sorted(await pool.probe_grammars()))
    except ChunkingFailed as error:
        logger.warning("which grammars can be loaded is not known: %s", error)
    if cell.missing_grammars:
        cell.changes.bump()


async def _canonical(places: LocalPlaces, root: Path) -> str:
    """Return the canonical path of an allowed root; a missing one may come back, and is no reason not to start."""
    try:
        return (await places.directory(str(root))).path
    except PathRefused as error:
        logger.warning("an allowed root cannot be used now: %s", error)
        return str(root)


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StateUnwritable(f"{directory} cannot be made: {error.strerror}.") from error
