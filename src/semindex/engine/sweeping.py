"""Comparing the working tree with the index: the truth about what changed, whatever the watcher saw.

One sweep runs at a time. Whoever asks for one is served by a sweep that begins after the asking, never by one that is
already under way, since that may have passed the file in question.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator

import trio
from attrs import define, field

from semindex.engine.filetable import FILES_PER_STEP
from semindex.engine.index import Index
from semindex.engine.pacing import paced
from semindex.engine.workqueue import Priority
from semindex.model.errors import NotReady, SemindexError
from semindex.ports import TreeScan

logger = logging.getLogger(__name__)


async def compare(scan: TreeScan, index: Index, chunking: str, priority: Priority, *, retry_failed: bool) -> None:
    """Line up every file of the index or the tree that is not what the other says."""
    async for path, signature in paced(scan.files.items(), FILES_PER_STEP):
        was_leaving = path in index.verdicts
        index.verdicts.pop(path, None)
        if was_leaving or index.needs_work(path, signature, chunking, retry_failed=retry_failed):
            index.note_pending(path, priority)
    for path, reason in scan.skipped.items():
        if index.has_points(path) or path in index.queue:
            _expel(index, path, reason, priority)
        else:
            index.note_skipped(path, reason)
    async for path in paced(_vanished(scan, index), FILES_PER_STEP):
        _expel(index, path, None, priority)


def _vanished(scan: TreeScan, index: Index) -> Iterator[str]:
    unknown = tuple(f"{directory}/" if directory else "" for directory in scan.unreadable)
    for path in index.table.paths():
        if path not in scan.files and path not in scan.skipped and not path.startswith(unknown):
            yield path


def _expel(index: Index, path: str, reason: str | None, priority: Priority) -> None:
    index.verdicts[path] = reason
    index.queue.mark(path, priority)


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
