"""Which files of one workspace are to be worked on: marked, taken, settled.

A path is marked when its file may have changed, taken by one worker at a time, and settled when what it held is stored.
A path that is marked again while it is being worked on is worked on once more, so that the last content always wins.
The queue holds paths, never contents: its memory is bounded by the number of files. Apart from waiting, nothing yields.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

import trio
from attrs import define, field, frozen

from semindex.engine.priority import Priority


@frozen
class Taken:
    """Paths handed to one worker; none when the queue is closed."""

    priority: Priority
    paths: list[str]


@define
class _Entry:
    priority: Priority
    marked: int
    """Number of the latest mark."""
    since: float
    """When the oldest change of the file that is not settled was noted, in seconds of the run's clock."""
    taken: int = 0
    """``marked`` as it was when the path was last taken; 0 while it waits."""
    again: float = 0.0
    """When the oldest change since then was noted."""


@define(eq=False)
class _Waiter:
    targets: dict[str, int]
    """Path → number of the mark that has to be settled."""
    done: trio.Event = field(factory=trio.Event)


class WorkQueue:
    """The outstanding paths of a workspace."""

    def __init__(self, edit_settled: Callable[[float], None] = lambda _: None) -> None:
        """``edit_settled`` is told of every edit that is settled, with the seconds since it was noted."""
        self._entries: dict[str, _Entry] = {}
        self._lanes: dict[Priority, dict[str, None]] = {Priority.EDIT: {}, Priority.BACKFILL: {}}
        self._arrivals = trio.lowlevel.ParkingLot()
        self._idle = trio.Event()
        self._idle.set()
        self._waiters: list[_Waiter] = []
        self._marks = 0
        self._closed = trio.Event()
        self.marked_in_run = 0
        """Paths marked since the queue was last empty: the total of the progress bar."""
        self.settled_in_run = 0
        self._edit_settled = edit_settled

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    def outstanding(self) -> list[str]:
        """Return every path that is marked and not settled."""
        return list(self._entries)

    def priority_of(self, path: str) -> Priority:
        """Return how urgent an outstanding path is."""
        return self._entries[path].priority

    def mark(self, path: str, priority: Priority) -> None:
        """Note that a file may have changed. Marks of one path collapse; the more urgent priority wins."""
        if self._closed.is_set():
            return
        self._marks += 1
        entry = self._entries.get(path)
        if entry is None:
            if not self._entries:
                self._idle = trio.Event()
                self.marked_in_run = self.settled_in_run = 0
            self.marked_in_run += 1
            self._entries[path] = _Entry(priority, self._marks, trio.current_time())
            self._line_up(path, priority)
            return
        if entry.marked == entry.taken:
            entry.again = trio.current_time()
        entry.marked = self._marks
        self._arrivals.unpark_all()
        if priority < entry.priority:
            if not entry.taken:
                del self._lanes[entry.priority][path]
                self._line_up(path, priority)
            entry.priority = priority

    async def take(self, limit: int, lanes: Sequence[Priority] = (Priority.EDIT, Priority.BACKFILL)) -> Taken:
        """Wait for work in these lanes, the first one first, and return at most ``limit`` paths of one priority."""
        while True:
            await trio.lowlevel.checkpoint()
            if self._closed.is_set():
                return Taken(lanes[0], [])
            for lane in lanes:
                if waiting := self._lanes[lane]:
                    taken = list(islice(waiting, limit))
                    for path in taken:
                        del waiting[path]
                        self._entries[path].taken = self._entries[path].marked
                    return Taken(lane, taken)
            await self._arrivals.park()

    def settle(self, path: str) -> bool:
        """Note that a taken path is done; True unless it was marked meanwhile and waits again."""
        entry = self._entries[path]
        self._release_waiters(path, entry.taken)
        if entry.priority is Priority.EDIT:
            self._edit_settled(trio.current_time() - entry.since)
        del self._entries[path]
        if entry.marked > entry.taken:
            self._entries[path] = _Entry(entry.priority, entry.marked, entry.again)
            self._line_up(path, entry.priority)
            return False
        self.settled_in_run += 1
        if not self._entries:
            self._idle.set()
        return True

    def give_back(self, path: str) -> None:
        """Let a taken path wait again, behind the others, because it could not be worked on now."""
        entry = self._entries[path]
        entry.taken = 0
        self._line_up(path, entry.priority)

    async def settled(self, paths: Iterable[str]) -> bool:
        """Wait until each path, as marked by now, has been settled, or the queue is closed; return whether they were.

        Later marks are not waited for, so that a file that never stops changing keeps nobody waiting for ever.
        """
        waiter = _Waiter({path: self._entries[path].marked for path in paths if path in self._entries})
        if self._closed.is_set() or not waiter.targets:
            await trio.lowlevel.checkpoint()
            return not waiter.targets
        self._waiters.append(waiter)
        try:
            await waiter.done.wait()
        finally:
            self._waiters.remove(waiter)
        return not waiter.targets

    async def idle(self) -> None:
        """Wait for a moment at which nothing is outstanding."""
        await trio.lowlevel.checkpoint()
        while self._entries:
            await self._idle.wait()

    def lag(self) -> float:
        """Return about how old the oldest change is that is not settled, in seconds; 0 if there is none."""
        oldest = next(iter(self._entries.values()), None)
        return 0.0 if oldest is None else trio.current_time() - oldest.since

    @property
    def marks(self) -> int:
        """Return how often anything was marked."""
        return self._marks

    async def marked_beyond(self, marks: int) -> None:
        """Wait until there were more marks than this number."""
        while self._marks <= marks:
            await self._arrivals.park()

    async def closed(self) -> None:
        """Wait until the queue is closed."""
        await self._closed.wait()

    def close(self) -> None:
        """Hand out nothing more and keep nobody waiting; what was taken may still be settled."""
        self._closed.set()
        self._arrivals.unpark_all()
        for waiter in self._waiters:
            waiter.done.set()

    def _line_up(self, path: str, priority: Priority) -> None:
        self._lanes[priority][path] = None
        self._arrivals.unpark_all()

    def _release_waiters(self, path: str, mark: int) -> None:
        for waiter in self._waiters:
            target = waiter.targets.get(path)
            if target is not None and target <= mark:
                del waiter.targets[path]
                if not waiter.targets:
                    waiter.done.set()
