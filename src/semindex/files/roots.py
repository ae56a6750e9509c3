"""Directories as people and agents name them: their canonical paths, and whether they may be indexed.

Owns the refusals of a path, each with what to do about it. Whether a path lies below an
allowed root is the service's to decide.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import TypeVar

import trio

from semindex.core.eligibility import shown_name
from semindex.files.git import GIT, repository_at
from semindex.model.errors import PathRefused, WorkspaceUnavailable
from semindex.model.ids import well_formed
from semindex.model.places import Place, Presence, Sighting

MAX_PATH_BYTES = 4095
"""Longest path that Linux takes."""


def resolve_workspace_root(path: str, *, force: bool = False) -> str:
    """Return the canonical absolute path of a directory that is to be indexed; blocks.

    Raises PathRefused unless the path is absolute and an existing directory; also for ``/`` and for the home directory,
    unless ``force``.
    """
    root = _resolved(path)
    if root == "/" and not force:
        raise PathRefused("/ is the whole file system; name the project's directory, or say --force.")
    if root == os.path.realpath(os.path.expanduser("~")) and not force:
        raise PathRefused(f"{root} is the home directory; name a project in it, or say --force.")
    return root


def root_identity(root: str) -> tuple[int, int]:
    """Return (device, inode) of a workspace's root; blocks.

    Raises WorkspaceUnavailable if it is no directory now, or if a link above it leads elsewhere: whether that place may
    be indexed was never decided.
    """
    try:
        status = os.lstat(root)
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        raise WorkspaceUnavailable(f"{root} cannot be read: {reason}; restore it, or release the workspace.") from error
    if not stat.S_ISDIR(status.st_mode):
        raise WorkspaceUnavailable(f"{root} is not a directory any more; restore it, or release the workspace.")
    if (leads_to := os.path.realpath(root)) != root:
        raise WorkspaceUnavailable(
            f"{root} leads to {shown_name(leads_to)} by a link now; register that directory, or restore what was there."
        )
    return status.st_dev, status.st_ino


T = TypeVar("T")


class LocalPlaces:
    """Directories of this machine; implements :class:`semindex.ports.Places`. Works in threads under a limiter."""

    def __init__(self, limiter: trio.CapacityLimiter) -> None:
        """``limiter`` bounds the threads; all that look at files share it."""
        self._limiter = limiter

    async def directory(self, path: str) -> Place:
        """Resolve a path. Raises PathRefused unless it is absolute and an existing directory."""
        return await self._in_thread(lambda: _place(_resolved(path)))

    async def registrable(self, path: str, *, force: bool) -> Place:
        """Resolve a path that is to be indexed; ``/`` and the home directory are refused unless forced."""
        return await self._in_thread(lambda: _place(resolve_workspace_root(path, force=force)))

    async def look(self, path: str) -> Sighting:
        """Say whether a canonical path is still a directory."""
        return await self._in_thread(lambda: _sighting(path))

    async def _in_thread(self, find: Callable[[], T]) -> T:
        # A directory on a dead network mount must not hold up whoever gives up waiting for it.
        return await trio.to_thread.run_sync(find, abandon_on_cancel=True, limiter=self._limiter)


def _resolved(path: str) -> str:
    """Return the canonical path of a directory that exists and can be listed. Raises PathRefused."""
    _require_plain(path)
    try:
        root = os.path.realpath(path, strict=True)
        os.scandir(root).close()
    except FileNotFoundError as error:
        raise PathRefused(f"There is no directory {path}; create it, or correct the path.") from error
    except NotADirectoryError as error:
        raise PathRefused(f"{path} is not a directory; name the directory that holds it.") from error
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        raise PathRefused(f"{path} cannot be read: {reason}; correct that, or choose another directory.") from error
    if shown_name(root) != root:
        raise PathRefused(f"The path {shown_name(root)} is not valid UTF-8; rename the directory.")
    return root


def _require_plain(path: str) -> None:
    if "\0" in path or well_formed(path) != path:
        raise PathRefused("The path holds a character that no path can have; give the path of a directory.")
    if len(path.encode()) > MAX_PATH_BYTES:
        raise PathRefused(f"The path is longer than {MAX_PATH_BYTES} bytes; give a shorter one.")
    if not path.startswith("/"):
        raise PathRefused(f"{path or 'An empty path'} is not absolute; give the path from / on.")
    if ".." in path.split("/"):
        raise PathRefused(f"{path} holds a '..'; give the path without it.")


def _place(root: str) -> Place:
    repository = repository_at(root)
    return Place(
        root,
        repository.primary if repository is not None and repository.is_worktree else None,
        None if repository is None else repository.branch,
        tuple(directory for directory in _upwards(root) if os.path.lexists(os.path.join(directory, GIT))),
    )


def _sighting(path: str) -> Sighting:
    try:
        device = os.stat(os.path.dirname(path)).st_dev
    except OSError:
        return Sighting(Presence.UNKNOWN, None)
    try:
        is_directory = stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return Sighting(Presence.ABSENT, device)
    except OSError:
        return Sighting(Presence.UNKNOWN, device)
    return Sighting(Presence.PRESENT if is_directory else Presence.UNKNOWN, device)


def _upwards(directory: str) -> Iterator[str]:
    yield directory
    while (parent := os.path.dirname(directory)) != directory:
        directory = parent
        yield directory
