"""Where nothing can be watched: asking for a look at the whole tree, again and again.

Owns how often. It serves platforms for which there is no source of events (macOS has one that reports what it likes
when it likes, so that it would have to be polled besides), and is what a watch falls back to.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import trio
from attrs import frozen

from semindex.ports import Changes

RESCAN = Changes(frozenset(), rescan=True)


@frozen
class Pace:
    """How often a watch looks by itself, in seconds."""

    poll: float = 2.0
    """Between two looks at a small tree that cannot be watched."""
    poll_per_directory: float = 0.005
    """As much longer for each directory: a look costs a ``stat`` per file, and shall stay a few per cent of a core."""
    root: float = 20.0
    """Between two looks at whether a watched root is still the directory that it was.

    A look every five seconds at the roots of fifty workspaces was most of what an idle cell took of a core.
    """
    retry: float = 300.0
    """Until watching is tried again where it was impossible."""

    def between_polls(self, directories: int) -> float:
        """Return the seconds between two looks at a tree of so many directories."""
        return max(self.poll, self.poll_per_directory * directories)


class PollingSource:
    """An event source that never hears of anything; implements :class:`semindex.ports.EventSource`."""

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace or Pace()

    @property
    def watched(self) -> int:
        """Return how many trees are watched now: none."""
        return 0

    @asynccontextmanager
    async def watch(self, root: str) -> AsyncIterator["PollingWatch"]:
        """Watch below a canonical root for as long as the context lasts."""
        yield PollingWatch(self._pace)


class PollingWatch:
    """Asks for a rescan from time to time; implements :class:`semindex.ports.Watch`."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._directories = 0

    @property
    def trouble(self) -> str:
        """Return what people should know of it."""
        return f"This platform's file events are not used; the tree is compared every {self._seconds:.0f} seconds."

    @property
    def _seconds(self) -> float:
        return self._pace.between_polls(self._directories)

    async def follow(self, directories: Collection[str]) -> bool:
        """Learn how large the tree is. Nothing is watched, so that nothing is newly watched either."""
        self._directories = len(directories)
        await trio.lowlevel.checkpoint()
        return False

    async def changes(self) -> Changes:
        """Wait until it is time for another look."""
        await trio.sleep(self._seconds)
        return RESCAN
