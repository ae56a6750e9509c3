"""The watch of one workspace by inotify.

Owns which directories are followed, what their events hint at, and what happens when the kernel refuses: rescans are
asked for from time to time instead, which is told as trouble, and watching is tried again later.

What a watch believes of the kernel may be out of date at any moment, so that nothing is concluded from it: every
call of :meth:`InotifyWatch.follow` asks the kernel anew for every directory, which costs a few microseconds each, and
whatever is not as it was before is a reason for one more look at the tree.
"""

import errno
import logging
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Protocol

import trio

from semindex.files.git import enclosing_repository
from semindex.files.watching.hints import RULING_NAMES, Hint, Inbox, hint_of
from semindex.files.watching.kernel import DIRECTORY, ENTRY, ITSELF, Event, Instance, limit, words
from semindex.files.watching.polling import RESCAN, Pace
from semindex.ports import Changes

logger = logging.getLogger(__name__)

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES, errno.ESTALE})
"""Errors that say that a directory is not there any more, or not to be looked into."""

_OUTSIDE_NAMES = RULING_NAMES | {"exclude"}
"""What counts in a directory that is watched for its rules alone: ``.git/info``, and those above the root."""

_NOTHING: Mapping[int, str | None] = MappingProxyType({})


class Supply(Protocol):
    """What a watch needs of its source."""

    pace: Pace
    instance: Instance | None
    """None while there is none to be had."""
    trouble: str | None
    """Why."""

    def discard(self, watches: Iterable[int]) -> None:
        """Give watches of the present instance back soon, unless they are followed by then."""


class InotifyWatch:
    """The watch of one workspace; implements :class:`semindex.ports.Watch`."""

    def __init__(self, source: Supply, root: str) -> None:
        self.inbox = Inbox()
        self.watched: Mapping[int, str | None] = _NOTHING
        """Watch of the kernel's → directory below the root, or None for one outside whose rules apply.

        Of two paths to one directory (a bind mount) one is told. It is only ever replaced as a whole, since a
        thread may be reading it.
        """
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
        return reason and f"{reason} Meanwhile the tree is compared every {self._poll_seconds:.0f} seconds."

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
            self.watched, self._refusal = found, None
            source.discard(before.keys() - found.keys())
            return not found.items() <= before.items()
        finally:
            self.is_following = False
            if source.instance is instance and self.watched is not found:
                source.discard(found)

    async def changes(self) -> Changes:
        """Wait for a change and return all that is known by then; paths beyond a bound collapse into a rescan."""
        while True:
            is_polling = self.trouble is not None
            with trio.move_on_after(self._poll_seconds if is_polling else self._source.pace.root):
                return await self.inbox.take()
            if is_polling:
                return RESCAN
            await self._look_at_root()

    def hear(self, event: Event) -> None:
        """Take in an event of a directory that is watched."""
        directory = self.watched[event.watch]
        if event.mask & ITSELF or (directory is None and event.name in _OUTSIDE_NAMES):
            self.inbox.put_rescan()
        elif directory is not None:
            self._hear_of_entry(directory, event)

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

    async def _look_at_root(self) -> None:
        # The kernel tells when the root itself goes, but neither when it comes back nor when a directory above it is
        # renamed.
        if not await self.remember_root():
            self.let_go()
            self.inbox.put_rescan()

    def _hear_of_entry(self, directory: str, event: Event) -> None:
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
            self._refusal = f"This tree cannot be watched: {words(error)}."
        logger.warning("%s is not watched: %s", self._root, self._refusal)
        self.let_go()


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
