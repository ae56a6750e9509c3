"""Watching by inotify: one instance of the kernel's for the whole cell, read on the event loop, no thread waiting.

Owns who hears of which event, and what happens when the kernel refuses: the watch concerned asks for rescans from time
to time instead, says so, and tries again later. What a watch believes of the kernel may be out of date at any moment,
so that nothing is concluded from it: every call of :meth:`InotifyWatch.follow` asks the kernel anew for every directory,
which costs a few microseconds each, and whatever is not as it was before is a reason for one more look at the tree.
"""

import errno
import logging
import math
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from types import MappingProxyType

import trio

from semindex.files.git import enclosing_repository
from semindex.files.watching.hints import RULING_NAMES, Hint, Inbox, hint_of
from semindex.files.watching.kernel import DIRECTORY, ENDED, ENTRY, ITSELF, OVERFLOW, Event, Instance, limit
from semindex.files.watching.polling import RESCAN, Pace
from semindex.model.errors import leaves
from semindex.ports import Changes

logger = logging.getLogger(__name__)

READ_PAUSE = 0.02
"""Seconds after the queue was emptied before it is read again: what is written without end becomes one event."""
REMOVED_PER_STEP = 500
"""Watches that are given back between two checkpoints: a millisecond or two."""

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES, errno.ESTALE})
"""Errors that say that a directory is not there any more, or not to be looked into."""

_OUTSIDE_NAMES = RULING_NAMES | {"exclude"}
"""What counts in a directory that is watched for its rules alone: ``.git/info``, and those above the root."""

_NOTHING: Mapping[int, str | None] = MappingProxyType({})


@asynccontextmanager
async def open_inotify_source(
    pace: Pace | None = None, overflowed: Callable[[], object] = lambda: None
) -> AsyncIterator["InotifySource"]:
    """Open the event source of a cell. It never fails: what the kernel refuses is told as the watches' trouble."""
    source = InotifySource(pace, overflowed)
    async with trio.open_nursery() as nursery:
        await nursery.start(source.run)
        yield source
        nursery.cancel_scope.cancel(reason="the event source is closed")


class InotifySource:
    """One instance and all that watch by it; implements :class:`semindex.ports.EventSource` while :meth:`run` runs."""

    def __init__(
        self,
        pace: Pace | None = None,
        overflowed: Callable[[], object] = lambda: None,
        open_instance: Callable[[], Instance] = Instance,
    ) -> None:
        """``overflowed`` is called whenever the kernel says that events were lost."""
        self.pace = pace or Pace()
        self.instance: Instance | None = None
        self.trouble: str | None = None
        """Why there is no instance."""
        self._overflowed = overflowed
        self._open_instance = open_instance
        self._watches: list[InotifyWatch] = []
        self._discarded: list[int] = []
        self._discards = trio.lowlevel.ParkingLot()
        self._threads = trio.CapacityLimiter(1)

    @property
    def watched(self) -> int:
        """Return how many trees are watched now; those that are compared from time to time instead do not count."""
        return sum(watch.trouble is None for watch in self._watches)

    @asynccontextmanager
    async def watch(self, root: str) -> AsyncIterator["InotifyWatch"]:
        """Watch below a canonical root for as long as the context lasts."""
        watch = InotifyWatch(self, root)
        await watch.remember_root()
        self._watches.append(watch)
        try:
            yield watch
        finally:
            self._watches.remove(watch)
            watch.let_go()

    def discard(self, watches: Iterable[int]) -> None:
        """Give watches of the present instance back soon, unless they are followed by then."""
        self._discarded.extend(watches)
        self._discards.unpark_all()

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Hear and tell until cancelled. A failure becomes the watches' trouble, and a new instance is tried later."""
        instance = await self._open()
        task_status.started()
        while True:
            if instance is not None:
                await self._serve(instance)
            await trio.sleep(self.pace.retry)
            instance = await self._open()

    async def _open(self) -> Instance | None:
        try:
            # In a thread, because finding the C library for the first time may run a program.
            return await trio.to_thread.run_sync(self._open_instance, limiter=self._threads)
        except OSError as error:
            self._fail(
                f"No inotify instance can be had ({_words(error)}; the sysctl fs.inotify.max_user_instances is"
                f" {limit('max_user_instances')})."
            )
            return None

    async def _serve(self, instance: Instance) -> None:
        with instance:
            self.instance, self.trouble = instance, None
            self._discarded.clear()
            self._tell_all()
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._read, instance)
                    nursery.start_soon(self._remove, instance)
            except* Exception as group:
                logger.exception("the inotify source failed")
                self._fail(f"An unexpected {type(next(leaves(group))).__name__} ended the watching; see the log.")
            finally:
                self.instance = None
                for watch in self._watches:
                    watch.let_go()

    async def _read(self, instance: Instance) -> None:
        while True:
            await trio.lowlevel.wait_readable(instance.fileno())
            more = True
            while more:
                events, more = instance.read()
                for event in events:
                    self._dispatch(event)
                await trio.lowlevel.checkpoint()
            await trio.sleep(READ_PAUSE)

    def _dispatch(self, event: Event) -> None:
        if event.mask & OVERFLOW:
            self._overflowed()
            self._tell_all()
            return
        # A directory is told of to all who watch it: a tree may have become a workspace of its own a moment ago.
        heard = [watch.hear(event) for watch in self._watches]
        if not any(heard) and not event.mask & ENDED and not any(watch.is_following for watch in self._watches):
            # Left behind by a call that was cancelled inside of the kernel.
            self.discard([event.watch])

    def _tell_all(self) -> None:
        for watch in self._watches:
            watch.inbox.put_rescan()

    def _fail(self, reason: str) -> None:
        self.trouble = reason
        logger.warning("files are not watched: %s", reason)
        self._tell_all()

    async def _remove(self, instance: Instance) -> None:
        # Each removal puts an event into the queue: in small steps, so that the queue is read in between.
        while True:
            if not self._discarded:
                await self._discards.park()
            step, self._discarded = self._discarded[:REMOVED_PER_STEP], self._discarded[REMOVED_PER_STEP:]
            for number in step:
                if not any(number in watch.watched for watch in self._watches):
                    with suppress(OSError):
                        instance.remove(number)
            await trio.lowlevel.checkpoint()


class InotifyWatch:
    """The watch of one workspace; implements :class:`semindex.ports.Watch`."""

    def __init__(self, source: InotifySource, root: str) -> None:
        self.inbox = Inbox()
        self.watched: Mapping[int, str | None] = _NOTHING
        """Watch of the kernel's → directory below the root, or None for one outside whose rules apply. Of two paths to
        one directory (a bind mount) one is told. It is only ever replaced as a whole, since a thread may be reading it."""
        self.is_following = False
        self._source = source
        self._root = root
        self._base = root.rstrip("/") + "/"
        self._directories = 0
        self._refusal: str | None = None
        self._retry_at = -math.inf
        self._identity: tuple[int, int] | None = None
        # Its own, so that a file system that hangs holds up nobody else.
        self._threads = trio.CapacityLimiter(1)

    @property
    def trouble(self) -> str | None:
        """Return why the tree is compared from time to time instead of being watched."""
        reason = self._source.trouble or self._refusal
        return reason and f"{reason} Until then the tree is compared every {self._poll_seconds:.0f} seconds."

    async def follow(self, directories: Collection[str]) -> bool:
        """Watch exactly these directories (relative; the root is ""); return whether any was not watched before."""
        self._directories = len(directories)
        source, instance, before = self._source, self._source.instance, self.watched
        if instance is None or trio.current_time() < self._retry_at:
            await trio.lowlevel.checkpoint()
            return False
        found: dict[int, str | None] = {}
        self.is_following = True
        try:
            await trio.to_thread.run_sync(
                self._add, instance, directories, found, abandon_on_cancel=True, limiter=self._threads
            )
        except OSError as error:
            if source.instance is instance:
                self._refuse(error)
            return False
        else:
            if source.instance is not instance:
                return False
            # A root that was lost meanwhile leaves nothing behind of what was watched before.
            known, self.watched, self._refusal = self.watched, found, None
            source.discard(before.keys() - found.keys())
            return not found.items() <= known.items()
        finally:
            self.is_following = False
            if source.instance is instance and self.watched is not found:
                source.discard(found)

    async def changes(self) -> Changes:
        """Wait for a change and return all that is known by then; paths beyond a bound collapse into a rescan."""
        while True:
            with trio.move_on_after(self._patience):
                return await self.inbox.take()
            if self.trouble is not None:
                return RESCAN
            await self._look_at_root()

    def hear(self, event: Event) -> bool:
        """Take in an event; return whether it is about a directory of this watch."""
        if event.watch not in self.watched:
            if self.is_following and event.mask & ENDED:
                # It may be about a directory that is being added at this moment.
                self.inbox.put_rescan()
            return False
        if event.mask & ITSELF:
            self.inbox.put_rescan()
        elif not self.inbox.collapsed:
            self._hear_of_entry(self.watched[event.watch], event)
        return True

    def let_go(self) -> None:
        """Follow nothing any more."""
        dropped, self.watched = self.watched, _NOTHING
        self._source.discard(dropped)

    async def remember_root(self) -> bool:
        """Look at the root; return whether it is the directory that it was at the last look."""
        before = self._identity
        self._identity = await trio.to_thread.run_sync(
            _identity_of, self._root, abandon_on_cancel=True, limiter=self._threads
        )
        return self._identity == before

    @property
    def _poll_seconds(self) -> float:
        return self._source.pace.between_polls(self._directories)

    @property
    def _patience(self) -> float:
        """Seconds to wait for events before looking instead."""
        if self.trouble is not None:
            return self._poll_seconds
        return self._source.pace.poll if self._identity is None else self._source.pace.root

    async def _look_at_root(self) -> None:
        # The kernel tells when the root itself goes, but neither when it comes back nor when a directory above it is
        # renamed.
        if not await self.remember_root():
            self.let_go()
            self.inbox.put_rescan()

    def _hear_of_entry(self, directory: str | None, event: Event) -> None:
        if directory is None:
            if event.name in _OUTSIDE_NAMES:
                self.inbox.put_rescan()
            return
        match hint_of(event.name, directory=bool(event.mask & DIRECTORY), entry=bool(event.mask & ENTRY)):
            case Hint.TREE:
                self.inbox.put_rescan()
            case Hint.FILE:
                self.inbox.put(f"{directory}/{event.name}" if directory else event.name)
            case Hint.NOTHING:
                pass

    def _add(self, instance: Instance, directories: Iterable[str], found: dict[int, str | None]) -> None:
        """Watch directories, in a thread; ``found`` takes in each as soon as it is watched."""
        for path, directory in self._wanted(directories):
            trio.from_thread.check_cancelled()
            try:
                found[instance.add(path)] = directory
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise

    def _wanted(self, directories: Iterable[str]) -> Iterator[tuple[str, str | None]]:
        """Yield path and name of each directory to watch."""
        repository = enclosing_repository(self._root)
        if repository is not None:
            yield os.path.join(repository.common_dir, "info"), None
            above = self._root
            while above != repository.top:
                above = os.path.dirname(above)
                yield above, None
        for directory in directories:
            yield self._base + directory if directory else self._root, directory

    def _refuse(self, error: OSError) -> None:
        """Leave what watches there are to others, smaller trees, until it is time to try again."""
        self._retry_at = trio.current_time() + self._source.pace.retry
        if error.errno == errno.ENOSPC:
            self._refusal = (
                f"This tree needs {self._directories:,} inotify watches, more than are left of the"
                f" {limit('max_user_watches')} that the sysctl fs.inotify.max_user_watches allows; raise it."
            )
        else:
            self._refusal = f"This tree cannot be watched: {_words(error)}."
        logger.warning("%s is not watched: %s", self._root, self._refusal)
        self.let_go()


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _words(error: OSError) -> str:
    return os.strerror(error.errno or errno.EIO)
