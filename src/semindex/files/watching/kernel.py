"""One inotify instance of the kernel, typed: the only module that knows the library behind it.

Owns the mask: one for all, because watching an inode twice with two masks would replace the first. No call waits for
events; :meth:`Instance.add` may block as long as the file system does.
"""

import errno
import os
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from inotify_simple import INotify, flags, parse_events

READ_BYTES = 8 * 1024
"""Read at once: some 250 events, which take a few milliseconds to dispatch."""

_LONGEST_EVENT = 16 + 256
"""Bytes of an event with the longest name."""

# A file is told when it is closed, for editors, and while it is written, for those who keep theirs open.
_CONTENT = flags.MODIFY | flags.CLOSE_WRITE | flags.ATTRIB
ENTRY = int(flags.CREATE | flags.DELETE | flags.MOVED_FROM | flags.MOVED_TO)
"""An entry of the directory came, went or was renamed."""
ITSELF = int(flags.DELETE_SELF | flags.MOVE_SELF | flags.UNMOUNT | flags.IGNORED)
"""The watched directory itself is elsewhere now, or gone."""
ENDED = int(flags.IGNORED)
"""The kernel gave the watch up."""
DIRECTORY = int(flags.ISDIR)
"""The entry is a directory."""
OVERFLOW = int(flags.Q_OVERFLOW)
"""Events were lost, of any watch."""

_MASK = int(
    _CONTENT | ENTRY | flags.DELETE_SELF | flags.MOVE_SELF | flags.ONLYDIR | flags.DONT_FOLLOW | flags.EXCL_UNLINK
)


class Event(NamedTuple):
    """What happened in, or to, one watched directory."""

    watch: int
    """As :meth:`Instance.add` returned it; never used again for another directory."""
    mask: int
    cookie: int
    name: str
    """Of the entry, empty for the directory itself; undecodable bytes are surrogates, as everywhere in ``os``."""


class Instance:
    """Watched directories, and the queue of their events. Raises OSError where the kernel refuses."""

    def __init__(self) -> None:
        self._inotify = INotify(nonblocking=True)

    def __enter__(self) -> "Instance":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._inotify.close()

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when there are events."""
        return int(self._inotify.fileno())

    def add(self, directory: str) -> int:
        """Watch a directory and return its watch: the same as before if it is watched already, by whatever path."""
        try:
            return int(self._inotify.add_watch(directory, _MASK))
        except ValueError as error:
            raise OSError(errno.EBADF, "The instance was closed") from error

    def remove(self, watch: int) -> None:
        """Stop watching a directory."""
        self._inotify.rm_watch(watch)

    def read(self) -> tuple[list[Event], bool]:
        """Return the next events, and whether there are more."""
        try:
            data = os.read(self.fileno(), READ_BYTES)
        except BlockingIOError:
            return [], False
        return [Event(*event) for event in parse_events(data)], len(data) + _LONGEST_EVENT > READ_BYTES


def limit(name: str) -> str:
    """Return the value of one of the kernel's limits, ``fs.inotify.<name>``, as it is shown to people."""
    try:
        return f"{int(Path('/proc/sys/fs/inotify', name).read_bytes()):,}"
    except (OSError, ValueError):
        return "unknown"


def words(error: OSError) -> str:
    """Return the system's words for an error."""
    return os.strerror(error.errno or errno.EIO)
