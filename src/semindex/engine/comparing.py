"""Comparing the working tree with the index: the truth about what changed, whatever the watcher saw."""

from collections.abc import Collection, Iterable, Iterator

import trio

from semindex.engine.filetable import FILES_PER_STEP
from semindex.engine.index import Index
from semindex.engine.pacing import paced
from semindex.engine.priority import Priority
from semindex.ports import SourceTree, TreeScan


class Comparison:
    """Compares the working tree with the index, and lines up every file of which one is not what the other says.

    One comparison runs at a time, from looking at the disk to the last file: what was seen earlier never
    overrules what was seen later.
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
        """Compare these files alone, at the first chance: they may just have changed. Raises WorkspaceUnavailable."""
        async with self._turn:
            scan = await self._tree.look(sorted(paths))
            indexed = [path for path in paths if path in self._index.table]
            await self._line_up(scan, indexed, Priority.EDIT, Priority.EDIT, retry_failed=True)

    async def _line_up(
        self, scan: TreeScan, indexed: Iterable[str], priority: Priority, waiting: Priority, *, retry_failed: bool
    ) -> None:
        """``indexed`` are the scan's paths that the index knows; ``waiting`` is for those in the queue."""
        index = self._index
        async for path, signature in paced(scan.files.items(), FILES_PER_STEP):
            if index.readmit(path) or index.needs_work(path, signature, self._chunking, retry_failed=retry_failed):
                index.note_pending(path, waiting if path in index.queue else priority)
        async for path, reason in paced(scan.skipped.items(), FILES_PER_STEP):
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
