"""One workspace at work: its tasks, its state, and the order in which they end.

A workspace lives in a nursery of its own. To stop it is to cancel the sources of work, to let what was accepted drain
into the store within a grace, to close the collection and, when that was asked, to purge it. A failure ends the present
life, never the siblings: the workspace says what is wrong and tries again after a pause.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager

import trio
from attrs import frozen

from semindex.engine.adoption import ReferenceHashes, adopt, no_hashes
from semindex.engine.answering import Answerer
from semindex.engine.backoff import Backoff
from semindex.engine.collection import PURGE_GRACE, CollectionKeeper, purge_collection
from semindex.engine.comparing import Comparison
from semindex.engine.condition import Condition, Phase, build_verdict
from semindex.engine.durability import keep_durable
from semindex.engine.explaining import explain
from semindex.engine.filetable import put_all, table_of
from semindex.engine.index import Index
from semindex.engine.indexer import Indexer
from semindex.engine.priority import Priority
from semindex.engine.remembering import remember_if_forgotten
from semindex.engine.revision import Revision
from semindex.engine.search import SearchAnswer, SearchRequest, Source, overlay_sources
from semindex.engine.sweeping import Sweeper
from semindex.engine.tools import Tools
from semindex.engine.watcher import Watcher
from semindex.model.answers import Explanation
from semindex.model.errors import Closing, CollectionMissing, NotReady, SemindexError, first_of
from semindex.model.ids import collection_name
from semindex.model.profiles import ChunkingProfile
from semindex.model.status import State, WorkspaceStatus
from semindex.ports import EventSource, SourceTree
from semindex.shielding import shielded

logger = logging.getLogger(__name__)

FIRST_RETRY, LONGEST_RETRY = 0.5, 300.0
"""Seconds before a failed workspace tries again: doubling from the first to the longest."""
LOST = "The collection is gone from the vector store and is built anew."
CLOSE_GRACE = 5.0
"""Seconds for closing a collection while the workspace is being cancelled."""


@frozen
class Limits:
    """Time limits of a workspace, in seconds."""

    drain_grace: float = 10.0
    """For accepted work to reach the store once the workspace is stopped."""
    purge_grace: float = PURGE_GRACE
    """For deleting the workspace's data, whatever else is going on."""
    sweep_interval: float = 300.0
    """Between two comparisons of the whole tree with the index that nobody asked for."""
    quiet: float = 0.15
    """After an edit, before it is looked at."""


class Workspace:
    """Manager of one canonical path."""

    def __init__(
        self,
        root: str,
        tree: SourceTree,
        tools: Tools,
        *,
        chunking: ChunkingProfile,
        cell_id: str,
        baseline: "Workspace | None" = None,
        limits: Limits | None = None,
        changes: Revision | None = None,
        events: EventSource | None = None,
        reference_hashes: ReferenceHashes = no_hashes,
        edit_settled: Callable[[float], None] = lambda _: None,
    ) -> None:
        """``changes`` counts the changes of the whole cell; without ``events``, only sweeps notice edits.

        ``edit_settled`` is told of every edit that became searchable, with the seconds that it took.
        """
        self.root = root
        self.baseline = baseline
        self.changes = Revision(changes)
        self.closed = trio.Event()
        self.index = Index(edit_settled=edit_settled)
        self._tree = tree
        self._tools = tools
        self._chunking = chunking
        self._cell_id = cell_id
        self._limits = limits or Limits()
        self._keeper = CollectionKeeper(tools.store, collection_name(root), tools.scheduler.profile, chunking, cell_id)
        self._comparison = Comparison(tree, self.index, chunking.version)
        self._sweeper = Sweeper(self._sweep, interval=self._limits.sweep_interval)
        self._answerer = Answerer(tree, tools, self.index, self._sweeper, self._sources)
        self._condition = Condition(root, self.changes)
        look, sweep, report = self._comparison.of_files, self._sweeper.request, self._condition.report_watch
        self._watcher = Watcher(events, root, look, sweep, report, quiet=self._limits.quiet)
        self._reference_hashes = reference_hashes
        self._adopts = False
        self._life = trio.CancelScope()
        self._retry = trio.Event()
        self._first_sweep = trio.Event()
        self._stopping = trio.Event()
        self._ends_at_stop: set[trio.CancelScope] = set()
        self._sinks = trio.CancelScope()
        self._purge = False
        self.purged = False
        self.purge_failure: SemindexError | None = None

    # What others may ask for

    def stop(self, *, purge: bool) -> None:
        """Ask for the end; ``closed`` says when it came. Once a purge was asked for, it stays asked for."""
        self._purge |= purge
        self._stopping.set()
        self._retry.set()
        for scope in self._ends_at_stop:
            scope.cancel(reason="the workspace is stopped")
        if purge:
            self._sinks.cancel(reason="the workspace is purged")

    def retry(self) -> None:
        """If the workspace has failed, try again now rather than after the pause."""
        self._retry.set()

    def adopt(self) -> None:
        """Take over a collection that another cell or the reference engine has made, now or whenever it is opened."""
        self._adopts = True
        self.retry()

    def status(self) -> WorkspaceStatus:
        """Return a snapshot."""
        return self._condition.snapshot(self.index)

    def stored_bytes(self) -> int:
        """Return about how many bytes are stored for the workspace: its texts and its vectors."""
        return self.index.table.text_bytes + self.index.table.chunks * 4 * self._tools.scheduler.profile.dimension

    async def settled(self) -> WorkspaceStatus:
        """Wait until the index is complete or cannot be completed now, or the workspace is closed."""
        while (status := self.status()).state not in (State.INDEXED, State.ERROR) and not self.closed.is_set():
            await self.changes.beyond(self.changes.value)
        return status

    async def sweep(self, *, full: bool = True) -> None:
        """Compare the whole tree with the index now. Raises what hindered it, Closing if that is a stop."""
        with self._until_stop():
            return await self._sweeper.request(full=full)
        raise Closing

    async def completed(self) -> None:
        """Wait until the present life has finished its first build."""
        while self._condition.phase is not Phase.READY:
            await self.changes.beyond(self.changes.value)

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """Answer a query. Raises NotReady, and what the embedder and the store raise."""
        with self._until_stop():
            self._condition.require_searchable(self.index.queue, is_overlay=self.baseline is not None)
            try:
                return await self._answerer.answer(request, is_built=self._condition.is_built)
            except CollectionMissing:
                self._reopen()
                raise NotReady(LOST) from None
        raise Closing

    def _reopen(self) -> None:
        """Begin a new life, which finds out what the store holds; a collection that was searched is gone."""
        self._condition.enter(Phase.OPENING)
        self._life.cancel(reason=LOST)
        if self.baseline is not None:
            self.baseline._reopen()

    async def reindex(self) -> None:
        """Line up every file to be chunked anew. Raises what hindered the comparison with the disk."""
        self.retry()
        await self.index.doubt_everything()
        await self.sweep()

    async def explain(self, path: str) -> Explanation:
        """Say why a path is or is not searchable."""
        return await explain(self.root, path, self._tree, self.index, self._tools.pool, self._chunking)

    # The life of the workspace

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until stopped. Failures stay inside; only cancellation ends it otherwise."""
        backoff = Backoff(FIRST_RETRY, LONGEST_RETRY)
        task_status.started()
        async with AsyncExitStack() as at_the_end:
            at_the_end.push_async_callback(self._end)
            while not self._stopping.is_set():
                began = trio.current_time()
                await self._live()
                if trio.current_time() - began > LONGEST_RETRY:
                    backoff.reset()
                with trio.move_on_after(backoff.next()):
                    await self._retry.wait()
                self._retry = trio.Event()

    async def _end(self) -> None:
        if self._purge:
            with shielded(self._limits.purge_grace + CLOSE_GRACE, "deleting the data of a workspace"):
                await self._purge_data()
        self.closed.set()
        self._condition.touch()

    async def _live(self) -> None:
        """Open, index and watch over the tree until stopped or until something fails."""
        try:
            with trio.CancelScope() as self._life:
                await self._work()
        except* SemindexError as group:
            self._condition.fail(first_of(group))
        except* Exception as group:
            kind = type(first_of(group)).__name__
            self._condition.fail(SemindexError(f"An unexpected {kind} ended the indexing; see the log."))
            logger.exception("workspace failed")

    async def _work(self) -> None:
        async with AsyncExitStack() as at_the_end:
            at_the_end.push_async_callback(self._close)
            with self._until_stop():
                await self._open()
            if self._stopping.is_set():
                return
            async with trio.open_nursery() as sinks:
                self._sinks = sinks.cancel_scope
                sinks.start_soon(self._indexer().run)
                async with trio.open_nursery() as sources:
                    sources.start_soon(self._sweeper.run)
                    sources.start_soon(self._finish_builds)
                    queue, store = self.index.queue, self._tools.store
                    sources.start_soon(keep_durable, queue, self._keeper, store, self._first_sweep)
                    sources.start_soon(self._watcher.run)
                    with self._until_stop():
                        await trio.sleep_forever()
                    sources.cancel_scope.cancel(reason="the workspace is stopped")
                self.index.queue.close()
                sinks.cancel_scope.deadline = trio.current_time() + self._limits.drain_grace

    async def _close(self) -> None:
        self.index.queue.close()
        if self.baseline is not None:
            self.baseline.index.detach(self.index)
        with shielded(CLOSE_GRACE, "closing a collection"):
            await self._keeper.close()

    def _indexer(self) -> Indexer:
        keeper, index, tools = self._keeper, self.index, self._tools
        return Indexer(self.root, keeper.name, self._chunking, index, tools, self._condition, prepare=keeper.ensure)

    async def _open(self) -> None:
        self._condition.enter(Phase.OPENING)
        if self.baseline is not None:
            self._condition.enter(Phase.STANDBY)
            await self.baseline.completed()
            self._condition.enter(Phase.OPENING)
        if self._adopts:
            hashes, is_overlay = self._reference_hashes, self.baseline is not None
            await adopt(self._keeper.name, self._tools, self._cell_id, hashes, is_overlay=is_overlay)
            self._adopts = False
        table = await table_of((await self._tools.ledger.load()).values())
        opened = await self._keeper.open(table)
        if self._keeper.exists:
            await remember_if_forgotten(self._keeper.name, self._tools)
        if opened.is_new:
            # Nothing is stored, so that only records without points of their own still mean anything.
            await self._tools.ledger.apply([], [record.path for record in table if not record.inherited])
            table = await table_of([record for record in table if record.inherited])
        await put_all(table, opened.repairs)
        await self.index.start_over(table)
        if self.index.is_doubted:
            await self.index.doubt_everything()
        if self.baseline is not None:
            self.baseline.index.attach(self.index)
            await self.index.find_shadows()
        self._first_sweep = trio.Event()
        self._condition.begin(is_built=opened.is_complete and self.baseline is None, change=opened.change)

    async def _sweep(self, full: bool) -> None:
        is_first = not self._first_sweep.is_set()
        priority = Priority.BACKFILL if is_first else Priority.EDIT
        try:
            async with self._tools.turns.scanning.turn(priority):
                scan = await self._comparison.of_tree(priority, retry_failed=full or is_first)
        except SemindexError as error:
            self._condition.fail(error)
            raise
        self._first_sweep.set()
        self.index.is_doubted = False
        self._condition.recover()
        self._watcher.saw(scan.directories)

    async def _finish_builds(self) -> None:
        """Note in the collection that a build is complete."""
        await self._first_sweep.wait()
        while True:
            await self.index.queue.idle()
            self._condition.rest()
            marks = self.index.queue.marks
            if not self._condition.is_built:
                self._condition.judge(build_verdict(self.index))
            if not self._condition.verdict:
                if self.baseline is None or self._keeper.is_outdated:
                    await self._keeper.ensure()
                if self._keeper.exists and not self._keeper.is_complete:
                    await self._keeper.describe(complete=True)
                self._condition.complete()
            await self.index.queue.marked_beyond(marks)
            self._condition.judge(None)

    # How it ends

    @contextmanager
    def _until_stop(self) -> Iterator[None]:
        """Cancel what is inside as soon as the workspace is stopped."""
        with trio.CancelScope() as scope:
            if self._stopping.is_set():
                scope.cancel(reason="the workspace is stopped")
            self._ends_at_stop.add(scope)
            try:
                yield
            finally:
                self._ends_at_stop.remove(scope)

    async def _purge_data(self) -> None:
        """Delete collection and ledger, and say so if that failed."""
        tools, grace = self._tools, self._limits.purge_grace
        try:
            await purge_collection(tools.store, tools.ledger, self._keeper.name, self._cell_id, grace=grace)
            self.purged = True
        except SemindexError as error:
            self.purge_failure = error
        except Exception:
            self.purge_failure = SemindexError("The data could not be deleted; see the log.")
            logger.exception("purge failed")
        if self.purge_failure is not None:
            self._condition.fail(self.purge_failure)

    def _sources(self) -> list[Source]:
        own = self._keeper.name if self._keeper.exists else None
        if self.baseline is None:
            return [] if own is None else [Source(own, lambda _hit: True)]
        return overlay_sources(self.index, own, collection_name(self.baseline.root))
