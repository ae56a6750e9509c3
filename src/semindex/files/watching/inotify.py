"""Watching by inotify: one instance of the kernel's for the whole cell, read on the event loop, no thread waiting.

Owns the instance: who hears of which event, giving directories back, and beginning anew after a failure. The watches of
the workspaces are next door.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress

import trio

from semindex.files.watching.inotify_watch import InotifyWatch
from semindex.files.watching.kernel import ENDED, OVERFLOW, Event, Instance, limit, words
from semindex.files.watching.polling import Pace
from semindex.model.errors import first_of

logger = logging.getLogger(__name__)

READ_PAUSE = 0.02
"""Seconds after the queue was emptied before it is read again: what is written without end becomes one event."""
REMOVED_PER_STEP = 500
"""Watches that are given back between two checkpoints: a millisecond or two."""


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
                f"No inotify instance can be had ({words(error)}; the sysctl fs.inotify.max_user_instances is"
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
                self._fail(f"An unexpected {type(first_of(group)).__name__} ended the watching; see the log.")
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
        # Several may watch a directory: a tree may have become a workspace of its own a moment ago.
        concerned = [watch for watch in self._watches if event.watch in watch.watched]
        for watch in concerned:
            watch.hear(event)
        if not concerned:
            self._dispatch_stray(event)

    def _dispatch_stray(self, event: Event) -> None:
        following = [watch for watch in self._watches if watch.is_following]
        if event.mask & ENDED:
            # It may be about a directory that is being added at this moment.
            for watch in following:
                watch.inbox.put_rescan()
        elif not following:
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
