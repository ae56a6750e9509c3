"""Directories as people and agents name them: their canonical paths, and whether they may be indexed.

Owns the refusals of a path (service page, section 9), each with what to do about it. Whether a path lies below an
allowed root is the service's to decide.
"""

import errno
import os
import stat

import trio

from semindex.files.git import GIT, repository_at
from semindex.model.errors import PathRefused, WorkspaceUnavailable
from semindex.ports import Place

MAX_PATH_BYTES = 4095
"""Longest path that Linux takes."""


def resolve_workspace_root(path: str, *, force: bool = False) -> str:
    """Return the canonical absolute path of a directory that is to be indexed; blocks.

    A relative path is taken from the current directory. Raises PathRefused, also for ``/`` and for the home directory
    unless ``force``.
    """
    root = _resolved(path)
    if root == "/" and not force:
        raise PathRefused("/ is the whole file system; name the project's directory, or force it.")
    if root == os.path.realpath(os.path.expanduser("~")) and not force:
        raise PathRefused(f"{root} is the home directory; name a project in it, or force it.")
    return root


def root_identity(root: str) -> tuple[int, int]:
    """Return (device, inode) of a workspace's root; blocks. Raises WorkspaceUnavailable if it is no directory now."""
    try:
        status = os.lstat(root)
    except OSError as error:
        reason = os.strerror(error.errno or errno.EIO)
        raise WorkspaceUnavailable(f"{root} cannot be read: {reason}; restore it, or release the workspace.") from error
    if not stat.S_ISDIR(status.st_mode):
        raise WorkspaceUnavailable(f"{root} is not a directory any more; restore it, or release the workspace.")
    return status.st_dev, status.st_ino


class LocalPlaces:
    """Directories of this machine; implements :class:`semindex.ports.Places`. Works in threads under the limiter."""

    def __init__(self, limiter: trio.CapacityLimiter) -> None:
        self._limiter = limiter

    async def directory(self, path: str) -> Place:
        """Resolve a path. Raises PathRefused unless it is absolute and an existing directory."""
        return await self._in_thread(_place, path)

    async def registrable(self, path: str, *, force: bool) -> Place:
        """Resolve a path that is to be indexed; ``/`` and the home directory are refused unless forced."""
