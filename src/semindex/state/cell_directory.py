"""The state directory of a cell: private to its owner, and held by one process at a time.

The lock is the system's lock on ``cell.lock``, which goes with its holder however that ends. What the file says about
the holder is for people, and for a successor that decides whether to wait.
"""

import fcntl
import json
import os
import shlex
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import trio
from attrs import asdict, frozen

from semindex.model.errors import CellLocked, ConfigurationError, StateUnwritable

LOCK_FILE = "cell.lock"
DATABASE_FILE = "cell.sqlite"

T = TypeVar("T")

_OUR_FILES = "cell."
"""What the names of our own files begin with."""
_OTHERS = 0o077
"""Permissions of everybody but the owner."""

_POLL = 0.1
"""Seconds between two tries for a lock whose holder is about to end."""
_TIME_TO_WRITE = 0.5
"""Seconds for a holder that has the lock to say who it is."""
_RECORD = 4096
"""Bytes of the lock file, always written as a whole: it is never longer or shorter than what a reader expects."""


class Phase(StrEnum):
    """What the holder of a state directory is doing."""

    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


@frozen
class Holder:
    """What a lock file says of the process that holds, or last held, the directory."""

    pid: int
    phase: Phase
    url: str | None

    def __str__(self) -> str:
        return f"process {self.pid} ({self.phase}{f', {self.url}' if self.url else ''})"


class CellDirectory:
    """A state directory that belongs to this process."""

    def __init__(self, path: Path, descriptor: int, limiter: trio.CapacityLimiter) -> None:
        self.path = path
        self._descriptor = descriptor
        self._limiter = limiter

    @property
    def database_path(self) -> Path:
        """Return where the cell's database lies."""
        return self.path / DATABASE_FILE

    async def lock(self, wait_for_stopping: float) -> None:
        """Take the lock. Raises CellLocked."""
        began = trio.current_time()
        while not await self._in_thread(_try_lock, self._descriptor):
            holder = await self._in_thread(_read_holder, self._descriptor)
            if holder is None:
                patience = _TIME_TO_WRITE
            else:
                patience = wait_for_stopping if holder.phase is Phase.STOPPING else 0.0
            if trio.current_time() - began >= patience:
                raise CellLocked(
                    f"{self.path} is in use by {holder or 'another process'}: stop it, or choose another state directory."
                )
            await trio.sleep(_POLL)

    async def announce(self, phase: Phase, url: str | None = None) -> None:
        """Tell other processes what this one is doing, and where it listens."""
        await self._in_thread(_write_holder, self._descriptor, Holder(os.getpid(), phase, url))

    async def _in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        with _unwritable(self.path):
            return await trio.to_thread.run_sync(function, *arguments, limiter=self._limiter)


@asynccontextmanager
async def open_cell_directory(path: Path, wait_for_stopping: float = 0.0) -> AsyncIterator[CellDirectory]:
    """Make a directory private and hold it until the block is left.

    A holder that says it is stopping is waited for, at most ``wait_for_stopping`` seconds; any other is
    CellLocked within a second. Raises ConfigurationError where the directory is not ours to use, StateUnwritable
    where it cannot be written.
    """
    limiter = trio.CapacityLimiter(1)
    with _unwritable(path):
        descriptor = await trio.to_thread.run_sync(_open_lock_file, path, limiter=limiter)
    directory = CellDirectory(path, descriptor, limiter)
    try:
        await directory.lock(wait_for_stopping)
        await directory.announce(Phase.STARTING)
        yield directory
    finally:
        os.close(descriptor)  # nothing is left to write, so this cannot wait for the disk


def holder_of(path: Path) -> Holder | None:
    """Return who holds a directory, as its lock file tells; None if that process is gone. Blocks.

    The lock itself is not tried: that could turn away a cell that is starting at the same moment.
    """
    try:
        descriptor = os.open(path / LOCK_FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        holder = _read_holder(descriptor)
    finally:
        os.close(descriptor)
    return holder if holder is not None and _is_alive(holder.pid) else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # there is such a process, of another user
    return True


def _open_lock_file(path: Path) -> int:
    _make_private(path)
    return os.open(path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)


def require_ours(path: Path) -> None:
    """Check a directory that exists: it is this user's, and private, a cell's or empty, so that it can be made private.

    Blocks. Raises ConfigurationError, which says what to do, and OSError.
    """
    if (owner := path.stat().st_uid) != os.geteuid():
        raise ConfigurationError(
            f"{path} belongs to another user (uid {owner}): choose a state directory of your own, or run as its owner."
        )
    names = os.listdir(path)
    if _is_open(path) and names and LOCK_FILE not in names:
        raise ConfigurationError(
            f"{path} is open to others and holds something else than a cell: choose another state directory, "
            f"or allow it with: chmod 700 {shlex.quote(str(path))}"
        )


def _is_open(path: Path) -> bool:
    return bool(stat.S_IMODE(path.stat().st_mode) & _OTHERS)


def _make_private(path: Path) -> None:
    """Make the directory and what we keep in it private; never touch what may have another purpose."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_ours(path)
    if _is_open(path):
        path.chmod(0o700)
    for file in (path / name for name in os.listdir(path) if name.startswith(_OUR_FILES)):
        status = file.lstat()
        if stat.S_ISREG(status.st_mode) and stat.S_IMODE(status.st_mode) & _OTHERS:
            file.chmod(0o600)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_holder(descriptor: int) -> Holder | None:
    """Return what the holder says of itself; None while it has not said anything that makes sense."""
    try:
        said = json.loads(os.pread(descriptor, _RECORD, 0))
        return Holder(int(said["pid"]), Phase(said["phase"]), said["url"])
    except (ValueError, KeyError, TypeError):
        return None


def _write_holder(descriptor: int, holder: Holder) -> None:
    os.pwrite(descriptor, json.dumps(asdict(holder)).encode().ljust(_RECORD), 0)


@contextmanager
def _unwritable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StateUnwritable(
            f"{path} cannot be used as state directory ({error}): make it writable, or choose another one."
        ) from error
