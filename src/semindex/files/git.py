"""What git's own files tell of a directory, without running git.

Owns the meaning of a ``.git`` entry: whose working tree it marks, where the repository's common directory is, which
branch is checked out. Nothing here raises for a repository that is damaged: what cannot be read is not there.
"""

import os
import stat

from attrs import frozen

GIT = ".git"

_MAX_BYTES = 4096 + 16
"""Files that hold one path are no longer than a path."""


@frozen
class Repository:
    """The repository that a directory is the top of."""

    top: str
    """The directory with the ``.git`` entry."""
    git_dir: str
    """Where ``HEAD`` lies: private to each working tree."""
    common_dir: str
    """Where ``config``, ``info`` and the branches lie: shared by all working trees."""

    @property
    def is_worktree(self) -> bool:
        """Say whether this is a linked working tree, not the primary checkout."""
        return self.git_dir != self.common_dir

    @property
    def primary(self) -> str | None:
        """Return the primary checkout, None if the repository is bare or keeps its files elsewhere."""
        parent, name = os.path.split(self.common_dir)
        return parent if name == GIT else None

    @property
    def branch(self) -> str | None:
        """Return the branch that is checked out, None for a detached head or an unreadable one."""
        head = read_line(os.path.join(self.git_dir, "HEAD"))
        prefix = "ref: refs/heads/"
        return head.removeprefix(prefix) if head is not None and head.startswith(prefix) else None


def repository_at(directory: str) -> Repository | None:
    """Return the repository whose working tree has its top at a directory; looks at that directory only."""
    entry = os.path.join(directory, GIT)
    git_dir = _git_dir(entry)
    if git_dir is None or not os.path.isfile(os.path.join(git_dir, "HEAD")):
        return None
    common = read_line(os.path.join(git_dir, "commondir"))
    common_dir = git_dir if common is None else os.path.realpath(os.path.join(git_dir, common))
    return Repository(directory, git_dir, common_dir)


def enclosing_repository(directory: str) -> Repository | None:
    """Return the repository whose working tree a directory lies in: the nearest at it or above it."""
    while True:
        found = repository_at(directory)
        if found is not None:
            return found
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent


def is_boundary(entry: str) -> bool:
    """Say whether the ``.git`` at this path marks a working tree of its own: a clone, or a linked worktree.

    The ``.git`` of a submodule does not: submodules belong to the tree that they are in.
    """
    try:
        mode = os.lstat(entry).st_mode
    except OSError:
        return False
    if not stat.S_ISREG(mode):
        # Git, too, takes a .git directory without this file for an ordinary one. A link to one is how some tools share
        # a repository among working trees.
        return os.path.lexists(os.path.join(entry, "HEAD"))
    leads_to = _gitdir_of(entry)
    return leads_to is not None and os.path.basename(os.path.dirname(leads_to)) == "worktrees"


def read_line(path: str) -> str | None:
    """Return the only line of a small regular file (links are followed), None if there is none such."""
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            line = os.fsdecode(file.read(_MAX_BYTES)).rstrip("\r\n")
    except OSError:
        return None
    return None if "\0" in line else line


def _git_dir(entry: str) -> str | None:
    if os.path.isdir(entry):
        return os.path.realpath(entry)
    leads_to = _gitdir_of(entry)
    return None if leads_to is None else os.path.realpath(leads_to)


def _gitdir_of(entry: str) -> str | None:
    """Return the path that a ``.git`` file leads to."""
    line = read_line(entry)
    if line is None or not line.startswith("gitdir: "):
        return None
    return os.path.normpath(os.path.join(os.path.dirname(entry), line.removeprefix("gitdir: ")))


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
