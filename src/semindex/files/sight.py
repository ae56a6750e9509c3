"""A working tree on disk, as it is when somebody looks: what paths are judged by. All of it blocks."""

import errno
import os
import stat
from collections.abc import Collection, Iterable

from semindex.core.ignore import IgnoreStack, RuleSet
from semindex.core.judge import Entry, Kind, Unreadable
from semindex.files.git import GIT, is_boundary
from semindex.files.reading import signature_of
from semindex.files.rules import IgnoreRules
from semindex.model.chunks import Signature

FORBIDDEN = frozenset({errno.EACCES, errno.EPERM})
"""Errors of a look at a file that are its directory's doing; others are its own."""


class DiskSight:
    """Implements :class:`semindex.core.judge.Sight` below a canonical root."""

    def __init__(self, root: str, rules: IgnoreRules, boundaries: Collection[str]) -> None:
        """``boundaries`` are the absolute paths of the registered workspaces."""
        self._base = root.rstrip("/") + "/"
        self._rules = rules
        self._boundaries = boundaries

    def entry(self, path: str) -> Entry | None:
        """Return what lies at a path, None if nothing does."""
        try:
            status = os.lstat(self._base + path if path else self._base.rstrip("/") or "/")
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            if error.errno in FORBIDDEN:
                raise Unreadable(f"{os.strerror(error.errno)}.") from error
            return Entry(Kind.BROKEN, Signature(0, 0, 0, 0))
        return Entry(_kind(status.st_mode), signature_of(status))

    def rules_above(self) -> IgnoreStack:
        """Return the ignore rules that apply at the root besides those that lie there."""
        return self._rules.base()

    def rules_in(self, directory: str) -> Iterable[RuleSet]:
        """Return the ignore files of a directory, weakest first."""
        return self._rules.of_directory(directory).values()

    def boundary(self, directory: str) -> str | None:
        """Return a sentence that says why a directory below the root is no part of the tree, None if it is."""
        if self._base + directory in self._boundaries:
            return "It is registered as a workspace of its own."
        if is_boundary(f"{self._base}{directory}/{GIT}"):
            return "It is a git working tree of its own."
        return None


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return Kind.FILE
    if stat.S_ISDIR(mode):
        return Kind.DIRECTORY
    return Kind.LINK if stat.S_ISLNK(mode) else Kind.OTHER
