"""One workspace at work: its tasks, its state, and the order in which they end.

A workspace lives in a nursery of its own. To stop it is to cancel the sources of work, to let what was accepted drain into
the store within a grace, to close the collection and, when that was asked, to purge it. A failure ends the present life,
never the siblings: the workspace says what is wrong and tries again after a pause.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import trio
from attrs import frozen

from semindex.engine.answering import Answerer
from semindex.engine.collection import CollectionKeeper, purge_collection
from semindex.engine.condition import Condition, Phase, build_verdict, utc_now
from semindex.engine.filetable import table_of
from semindex.engine.index import Index
from semindex.engine.indexer import Indexer, Tools
from semindex.engine.revision import Revision
from semindex.engine.search import SearchAnswer, SearchRequest, Source, overlay_sources
from semindex.engine.sweeping import Comparison, Sweeper
from semindex.engine.watcher import Watcher
from semindex.engine.workqueue import Priority
from semindex.model.answers import Explanation
from semindex.model.chunks import ChunkedFile
from semindex.model.errors import NotReady, SemindexError, leaves
from semindex.model.ids import collection_name
from semindex.model.profiles import ChunkingProfile
from semindex.model.status import FileState, State, WorkspaceStatus
from semindex.ports import EventSource, SourceTree

logger = logging.getLogger(__name__)

FIRST_RETRY, LONGEST_RETRY = 0.5, 300.0
"""Seconds before a failed workspace tries again: doubling from the first to the longest (service page, section 7)."""
SHOWN_FAILURES = 10
RELEASED = "The workspace is being released."
CLOSE_GRACE = 5.0
"""Seconds for closing a collection while the workspace is being cancelled."""


@frozen
class Limits:
    """Time limits of a workspace, in seconds."""

    drain_grace: float = 10.0
    """For accepted work to reach the store once the workspace is stopped."""
    purge_grace: float = 10.0
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
        clock: Callable[[], datetime] = utc_now,
        events: EventSource | None = None,
    ) -> None:
        """``changes`` counts the changes of the whole cell, ``clock`` tells people when things happened.

        Without ``events``, only sweeps notice edits.
        """
        self.root = root
        self.baseline = baseline
        self.changes = Revision(changes)
        self.closed = trio.Event()
        self.index = Index()
        self._tree = tree
        self._tools = tools
        self._chunking = chunking
        self._cell_id = cell_id
        self._limits = limits or Limits()
        self._keeper = CollectionKeeper(tools.store, collection_name(root), tools.scheduler.profile, chunking, cell_id)
        self._comparison = Comparison(tree, self.index, chunking.version)
        self._sweeper = Sweeper(self._sweep, interval=self._limits.sweep_interval)
        self._answerer = Answerer(tree, tools, self.index, self._sweeper, self._sources)
        self._condition = Condition(self.changes, clock)
        look, sweep, report = self._comparison.of_files, self._sweeper.request, self._condition.report_watch
        self._watcher = Watcher(events, root, look, sweep, report, quiet=self._limits.quiet)
        self._first_sweep = trio.Event()
        self._stopping = trio.Event()
        self._ends_at_stop: set[trio.CancelScope] = set()
        self._sinks = trio.CancelScope()
        self._purge = False
        self.purged = False

    # What others may ask for

    def stop(self, *, purge: bool) -> None:
        """Ask for the end; ``closed`` says when it came. Once a purge was asked for, it stays asked for."""
        self._purge |= purge
        self._stopping.set()
        for scope in self._ends_at_stop:
            scope.cancel(reason="the workspace is stopped")
        if purge:
            self._sinks.cancel(reason="the workspace is purged")

    def status(self) -> WorkspaceStatus:
        """Return a snapshot."""
        index, condition = self.index, self._condition
        return WorkspaceStatus(
            path=self.root,
            state=condition.state(index.queue),
            message=condition.message(index.queue),
            files=index.table.counts(),
            processed=index.queue.settled_in_run,
            total=index.queue.marked_in_run,
            chunks=index.table.chunks,
            embedded_chunks=index.embedded_chunks,
            reused_chunks=index.reused_chunks,
            last_error=condition.worst,
            failed_files=index.table.failures(SHOWN_FAILURES),
            lag=index.queue.lag(),
            updated_at=condition.updated_at,
            completed_at=condition.completed_at,
        )

    def stored_bytes(self) -> int:
        """Return about how many bytes are stored for the workspace: its texts and its vectors."""
        texts = sum(record.signature.size for record in self.index.table if record.chunks and record.signature)
        return texts + self.index.table.chunks * 4 * self._tools.scheduler.profile.dimension

    async def settled(self) -> WorkspaceStatus:
        """Wait until the index is complete or cannot be completed now, or the workspace is closed."""
        while (status := self.status()).state not in (State.INDEXED, State.ERROR) and not self.closed.is_set():
            await self.changes.beyond(self.changes.value)
        return status

    async def sweep(self, *, full: bool = True) -> None:
        """Compare the whole tree with the index now. Raises what hindered it, NotReady if that is a stop."""
        with self._until_stop():
            return await self._sweeper.request(full=full)
        raise NotReady(RELEASED)

    async def completed(self) -> None:
        """Wait until a build is finished: at once, unless none ever was."""
        while self._condition.phase is not Phase.READY:
            await self.changes.beyond(self.changes.value)

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """Answer a query. Raises NotReady, and what the embedder and the store raise."""
        with self._until_stop():
            self._condition.require_searchable(self.index.queue, is_overlay=self.baseline is not None)
            return await self._answerer.answer(request, is_built=self._condition.is_built)
        raise NotReady(RELEASED)

    async def reindex(self) -> None:
        """Line up every file to be chunked anew. Raises what hindered the comparison with the disk."""
        await self.index.doubt_everything()
        await self.sweep()

    async def explain(self, path: str) -> Explanation:
        """Say why a path is or is not searchable."""
        verdict = await self._tree.explain(path)
        record = self.index.table.get(path)
        chunks: tuple[tuple[int, int], ...] = ()
        if verdict.eligible:
            (result,) = await self._tools.pool.chunk(self.root, [path], self._chunking, {})
            if isinstance(result, ChunkedFile):
                chunks = tuple((chunk.start_line, chunk.end_line) for chunk in result.chunks)
        is_indexed = record is not None and record.state is FileState.INDEXED
        reason = verdict.reason if record is None or record.reason is None else record.reason
        rule = verdict.rule
        return Explanation(
            path,
            verdict.eligible and is_indexed,
            reason,
            None if rule is None else rule.pattern,
            None if rule is None else f"{rule.source}:{rule.line}",
            record,
            chunks,
        )

    # The life of the workspace

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until stopped. Failures stay inside; only cancellation ends it otherwise."""
        pause = FIRST_RETRY
        task_status.started()
        try:
            while not self._stopping.is_set():
                began = trio.current_time()
                await self._live()
                if trio.current_time() - began > LONGEST_RETRY:
                    pause = FIRST_RETRY
                with trio.move_on_after(pause):
                    await self._stopping.wait()
                pause = min(2 * pause, LONGEST_RETRY)
        finally:
            with trio.move_on_after(self._limits.purge_grace, shield=True) as scope:
                if self._purge:
                    await self._purge_data()
            if scope.cancelled_caught:
                self._condition.fail(f"Deleting the data took longer than {self._limits.purge_grace:g} seconds.")
            self.closed.set()
            self._condition.touch()

    async def _live(self) -> None:
        """Open, index and watch over the tree until stopped or until something fails."""
        try:
            await self._work()
        except* SemindexError as group:
            self._condition.fail(str(next(leaves(group))))
            logger.warning("workspace failed: %s", self._condition.error)
        except* Exception as group:
            self._condition.fail(f"An unexpected {type(next(leaves(group))).__name__} ended the indexing; see the log.")
            logger.exception("workspace failed")

    async def _work(self) -> None:
        try:
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
                    sources.start_soon(self._watcher.run)
                    with self._until_stop():
                        await trio.sleep_forever()
                    sources.cancel_scope.cancel(reason="the workspace is stopped")
                self.index.queue.close()
                sinks.cancel_scope.deadline = trio.current_time() + self._limits.drain_grace
        finally:
            self.index.queue.close()
            if self.baseline is not None:
                self.baseline.index.detach(self.index)
            with trio.move_on_after(CLOSE_GRACE, shield=True):
                await self._close_collection()

    def _indexer(self) -> Indexer:
        return Indexer(
            self.root,
            self._keeper.name,
            self._chunking,
            self.index,
            self._tools,
            prepare=self._keeper.ensure,
            report=self._condition.report,
        )

    async def _open(self) -> None:
        self._condition.enter(Phase.OPENING)
        if self.baseline is not None:
            self._condition.enter(Phase.STANDBY)
            await self.baseline.completed()
            self._condition.enter(Phase.OPENING)
        table = await table_of((await self._tools.ledger.load()).values())
        opened = await self._keeper.open(table)
        if opened.is_new:
            # Nothing is stored, so that only records without points of their own still mean anything.
            await self._tools.ledger.apply([], [record.path for record in table if not record.inherited])
            table = await table_of([record for record in table if record.inherited])
        if self.baseline is None:
            await self._keeper.ensure()
        self.index.start_over(table)
        self.index.take_over(opened.repairs)
        if self.baseline is not None:
            self.baseline.index.attach(self.index)
            await self.index.find_shadows()
        self._condition.is_built = opened.is_complete and self.baseline is None
        self._condition.error, self._first_sweep = None, trio.Event()
        self._condition.enter(Phase.INDEXING)

    async def _sweep(self, full: bool) -> None:
        is_first = not self._first_sweep.is_set()
        priority = Priority.BACKFILL if is_first else Priority.EDIT
        try:
            scan = await self._comparison.of_tree(priority, retry_failed=full or is_first)
        except SemindexError as error:
            self._condition.fail(str(error))
            raise
        self._first_sweep.set()
        self._condition.recover()
        self._watcher.saw(scan.directories)

    async def _finish_builds(self) -> None:
        """Note in the collection that a build is complete, and let the store build its search structures."""
        await self._first_sweep.wait()
        while True:
            await self.index.queue.idle()
            marks = self.index.queue.marks
            if not self._condition.is_built:
                self._condition.judge(build_verdict(self.index.table))
            if not self._condition.verdict:
                if self._keeper.exists and not self._keeper.is_complete:
                    await self._keeper.describe(complete=True)
                self._condition.complete()
            if self._keeper.exists:
                await self._tools.store.flush(self._keeper.name)
                await self._tools.store.optimize(self._keeper.name)
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

    async def _close_collection(self) -> None:
        try:
            await self._keeper.close()
        except SemindexError as error:
            logger.warning("a collection was not closed: %s", error)

    async def _purge_data(self) -> None:
        """Delete collection and ledger, and say so if that failed."""
        try:
            await purge_collection(self._tools.store, self._tools.ledger, self._keeper.name, self._cell_id)
            self.purged = True
        except SemindexError as error:
            self._condition.fail(str(error))
        except Exception:
            self._condition.fail("The data could not be deleted; see the log.")
            logger.exception("purge failed")

    def _sources(self) -> list[Source]:
        if self.baseline is None:
            return [Source(self._keeper.name, lambda _hit: True)]
        delta = self._keeper.name if self._keeper.exists else None
        return overlay_sources(self.index, delta, collection_name(self.baseline.root))
