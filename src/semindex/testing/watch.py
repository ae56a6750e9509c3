"""Watching without an operating system: the twin of :mod:`semindex.files.watching`, and a delay for any event source.

The twin tells what a test, or a tree in memory that it listens to, says happened, by the rules of the real one: only
in directories that are followed, and not what is of no interest to an index. It can be made deaf or overflowing.
"""

from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from functools import partial

import trio

from semindex.files.watching.hints import Hint, Inbox, hint_of
from semindex.ports import Changes, EventSource, Watch
from semindex.testing.tree import MemoryTree


class MemorySource:
    """An event source under a test's control; implements :class:`semindex.ports.EventSource`."""

    def __init__(self, *, losing: bool = False) -> None:
        self.losing = losing
        """Whether changes from now on are lost without a trace."""
        self.trouble: str | None = None
        """What every watch gives as its trouble."""
        self.watches: list[MemoryWatch] = []
        """Those that are open."""

    @property
    def watched(self) -> int:
        """Return how many trees are watched now."""
        return 0 if self.trouble else len(self.watches)

    def listen(self, root: str, tree: MemoryTree) -> None:
        """Hear of every change of a tree, as the one below ``root``."""
        tree.observers.append(partial(self.changed, root))

    def changed(self, root: str, path: str) -> None:
        """Say that a file came, changed or went."""
        for watch in self.watches:
            if watch.root == root and not self.losing:
                watch.hear(path)

    def overflow(self) -> None:
        """Say that changes were lost, of any tree."""
        for watch in self.watches:
            watch.inbox.put_rescan()

    @asynccontextmanager
    async def watch(self, root: str) -> AsyncIterator["MemoryWatch"]:
        """Watch below a root for as long as the context lasts."""
        watch = MemoryWatch(self, root)
        self.watches.append(watch)
        try:
            yield watch
        finally:
            self.watches.remove(watch)


class MemoryWatch:
    """The watch of one tree; implements :class:`semindex.ports.Watch`."""

    def __init__(self, source: MemorySource, root: str) -> None:
        self.root = root
        self.followed: frozenset[str] = frozenset()
        self._known: frozenset[str] = frozenset()
        """Directories that exist, as far as is known: all that were ever followed."""
        self.inbox = Inbox()
        self._source = source

    @property
    def trouble(self) -> str | None:
        """Return what the source was given."""
        return self._source.trouble

    async def follow(self, directories: Collection[str]) -> bool:
        """Hear of exactly these directories; return whether any is new."""
        await trio.lowlevel.checkpoint()
        before, self.followed = self.followed, frozenset(directories)
        self._known |= self.followed
        return not self.followed <= before

    async def changes(self) -> Changes:
        """Wait for a change and return all that is known by then."""
        return await self.inbox.take()

    def hear(self, path: str) -> None:
        """Take in the change of a file: as an entry of its directory or, if that is new, of the one above it."""
        for directory, entry, is_directory in _entries(path):
            if directory in self.followed:
                match hint_of(entry, directory=is_directory, entry=True):
                    case Hint.FILE:
                        self.inbox.put(path)
                    case Hint.TREE:
                        self.inbox.put_rescan()
                    case Hint.NOTHING:
                        pass
            if directory in self._known:
                return


def _entries(path: str) -> Iterator[tuple[str, str, bool]]:
    """Yield (directory, entry of it, whether the entry is a directory) for a file, from its own directory upwards."""
    is_directory = False
    while path:
        directory, _, entry = path.rpartition("/")
        yield directory, entry, is_directory
        path, is_directory = directory, True


class DelayedSource:
    """Tells what another source tells, but late."""

    def __init__(self, source: EventSource, seconds: float) -> None:
        """Changes are told at least so many seconds after they are known, and at most twice as many."""
        self._source = source
        self._seconds = seconds

    @property
    def watched(self) -> int:
        """Return how many trees the other watches."""
        return self._source.watched

    @asynccontextmanager
    async def watch(self, root: str) -> AsyncIterator["DelayedWatch"]:
        """Watch below a root for as long as the context lasts."""
        async with self._source.watch(root) as watch:
            yield DelayedWatch(watch, self._seconds)


class DelayedWatch:
    """Tells what another watch tells, but late; implements :class:`semindex.ports.Watch`."""

    def __init__(self, watch: Watch, seconds: float) -> None:
        self._watch = watch
        self._seconds = seconds
        self._held: tuple[float, Changes] | None = None

    @property
    def trouble(self) -> str | None:
        """Return the other's trouble."""
        return self._watch.trouble

    async def follow(self, directories: Collection[str]) -> bool:
        """Have the other follow, at once."""
        return await self._watch.follow(directories)

    async def changes(self) -> Changes:
        """Return the other's changes when they are old enough. A cancelled call takes nothing."""
        if self._held is None:
            changes = await self._watch.changes()
            self._held = trio.current_time() + self._seconds, changes
        due, changes = self._held
        await trio.sleep_until(due)
        self._held = None
        return changes
