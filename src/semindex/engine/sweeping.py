"""Comparing the working tree with the index: the truth about what changed, whatever the watcher saw.

One sweep runs at a time. Whoever asks for one is served by a sweep that begins after the asking, never by one that is
already under way, since that may have passed the file in question.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator

import trio
from attrs import define, field

from semindex.engine.filetable import FILES_PER_STEP
from semindex.engine.index import Index
from semindex.engine.pacing import paced
from semindex.engine.workqueue import Priority
from semindex.model.errors import NotReady, SemindexError
from semindex.ports import SourceTree, TreeScan

logger = logging.getLogger(__name__)


class Comparison:
    """Compares the working tree with the index, and lines up every file of which one is not what the other says.

    One comparison runs at a time, from looking at the disk to the last file: what was seen earlier never overrules what was
    seen later.
    """

    def __init__(self, tree: SourceTree, index: Index, chunking: str) -> None:
        """``chunking`` names the chunker whose results count."""
        self._tree = tree
        self._index = index
        self._chunking = chunking
        self._turn = trio.Lock()

    async def of_tree(self, priority: Priority, *, retry_failed: bool) -> TreeScan:
        """Compare every file; those that wait already keep their turn. Raises what the scan raises."""
        async with self._turn:
            scan = await self._tree.scan()
            await self._line_up(scan, self._index.table.paths(), priority, Priority.BACKFILL, retry_failed=retry_failed)
        return scan

    async def of_files(self, paths: Collection[str]) -> None:
        """Compare these files alone, at their first chance, since they may just have changed. Raises WorkspaceUnavailable."""
        async with self._turn:
            scan = await self._tree.look(sorted(paths))
            indexed = [path for path in paths if path in self._index.table]
            await self._line_up(scan, indexed, Priority.EDIT, Priority.EDIT, retry_failed=True)

    async def _line_up(
        self, scan: TreeScan, indexed: Iterable[str], priority: Priority, waiting: Priority, *, retry_failed: bool
    ) -> None:
        """``indexed`` are the paths that the scan tells of and the index knows; ``waiting`` is for those in the queue."""
        index = self._index
        async for path, signature in paced(scan.files.items(), FILES_PER_STEP):
            if index.readmit(path) or index.needs_work(path, signature, self._chunking, retry_failed=retry_failed):
                index.note_pending(path, waiting if path in index.queue else priority)
        for path, reason in scan.skipped.items():
            if index.has_points(path) or path in index.queue:
                index.expel(path, reason, priority)
            else:
                index.note_skipped(path, reason)
        async for path in paced(_vanished(scan, indexed), FILES_PER_STEP):
            index.expel(path, None, priority)


def _vanished(scan: TreeScan, indexed: Iterable[str]) -> Iterator[str]:
    unknown = tuple(f"{directory}/" if directory else "" for directory in scan.unreadable)
    for path in indexed:
        if path not in scan.files and path not in scan.skipped and not path.startswith(unknown):
            yield path


FIRST_RETRY = 1.0
"""Seconds before a sweep that failed is tried again, doubling up to the interval."""


@define
class _Request:
    full: bool = False
    done: trio.Event = field(factory=trio.Event)
    error: Exception | None = field(factory=lambda: NotReady("The workspace stopped before it was compared."))


class Sweeper:
    """Runs sweeps on demand and at least every ``interval`` seconds."""

    def __init__(self, sweep: Callable[[bool], Awaitable[None]], *, interval: float) -> None:
        """Make a sweeper; ``sweep(full)`` does one, where a full one also tries failed files again."""
        self._sweep = sweep
        self._interval = interval
        self._next = _Request()
        self._wanted = trio.Event()

    async def request(self, *, full: bool = False) -> None:
        """Return when a sweep that begins from now on has ended; raises what it raised."""
        request = self._next
        request.full |= full
        self._wanted.set()
        await request.done.wait()
        if request.error is not None:
            raise request.error

    async def run(self) -> None:
        """Serve requests until cancelled; the first sweep begins at once."""
        pause = FIRST_RETRY
        try:
            while True:
                request, self._next, self._wanted = self._next, _Request(), trio.Event()
                await self._serve(request)
                pause = FIRST_RETRY if request.error is None else min(2 * pause, self._interval)
                with trio.move_on_after(self._interval if request.error is None else pause) as waiting:
                    await self._wanted.wait()
                self._next.full |= waiting.cancelled_caught
        finally:
            self._next.done.set()
            self._next = _Request()

    async def _serve(self, request: _Request) -> None:
        try:
            await self._sweep(request.full)
        except SemindexError as error:
            request.error = error
        else:
            request.error = None
        finally:
            request.done.set()
