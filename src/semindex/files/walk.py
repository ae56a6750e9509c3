"""One walk through a working tree, and what is remembered of it for the next.

Owns the speed of a walk: a directory whose own signature and rules are what they were is neither listed nor matched
again, its known files are only looked at, one ``stat`` each. Which names count is decided in
:mod:`semindex.core.eligibility` and :mod:`semindex.core.ignore`. All of it blocks; it runs in a thread.
"""

import errno
import os
import stat
import time
from collections.abc import Callable, Collection

from attrs import define, field, frozen

from semindex.core.eligibility import REASONS, FileTypes, Standing, name_exclusion, shown_name
from semindex.core.ignore import IGNORE_FILES, IgnoreStack, RuleSet
from semindex.files.git import GIT, is_boundary
from semindex.files.reading import MAX_FILE_BYTES, signature_of
from semindex.files.rules import IgnoreRules, RulesUnreadable
from semindex.model.chunks import Signature
from semindex.model.errors import TooManyFiles, WorkspaceUnavailable
from semindex.ports import TreeScan

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""Errors that say that a directory, or a file, is not there any more."""

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@frozen(eq=False)
class Folder:
    """What one directory held when it was last listed."""

    stamp: Signature | None
    """None if it may have changed since without a trace."""
    above: IgnoreStack
    """The rules that applied to the directory from above."""
    own: dict[str, RuleSet]
    """Its ignore files."""
    rules: IgnoreStack
    """The rules that apply to its entries."""
    has_git: bool
    """Whether it has a ``.git`` entry."""
    boundary: bool
    """Whether that entry marks a working tree of its own, which is not entered."""
    files: list[str] = field(factory=list)
    """Names of files that are eligible but for their size."""
    folders: list[str] = field(factory=list)
    """Names of directories to enter."""
    skipped: dict[str, str] = field(factory=dict)
    """Path → why a file of an indexed type is not eligible."""
    unreadable: dict[str, str] = field(factory=dict)
    """Path → why a directory below is not entered although it should be."""


@define
class Memory:
    """What a walk leaves to the next one."""

    folders: dict[str, Folder] = field(factory=dict)
    """By path below the root, with a slash at the end; the root is empty."""
    files: dict[str, Signature] = field(factory=dict)


@frozen
class Settings:
    """What is to be walked, and by which rules."""

    root: str
    types: FileTypes
    rules: IgnoreRules
    boundaries: Callable[[], Collection[str]]
    """Absolute paths of directories that are not entered: the registered workspaces."""
    max_files: int


class Walk:
    """A walk from the root; used once."""

    def __init__(self, settings: Settings, memory: Memory, checkpoint: Callable[[], None]) -> None:
        """``checkpoint`` is called once per directory and may end the walk by raising."""
        self._settings = settings
        self._base = settings.root.rstrip("/") + "/"
        self._before = memory
        self._checkpoint = checkpoint
        self._after = Memory()
        self._boundaries = {
            path[len(self._base) :] + "/" for path in settings.boundaries() if path.startswith(self._base)
        }
        self._skipped: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}

    def run(self) -> tuple[TreeScan, Memory]:
        """Walk, and return what was found together with the memory for the next walk."""
        root = self._root_identity()
        try:
            waiting = [("", self._settings.rules.base())]
        except RulesUnreadable as error:
            raise WorkspaceUnavailable(f"{self._settings.root} cannot be scanned: {error}") from error
        while waiting:
            self._checkpoint()
            prefix, above = waiting.pop()
            folder = self._enter(prefix, above)
            if folder is not None:
                waiting.extend((f"{prefix}{name}/", folder.rules) for name in folder.folders)
        if "" in self._unreadable:
            raise WorkspaceUnavailable(f"{self._settings.root} cannot be scanned: {self._unreadable['']}")
        # A root that was removed or unmounted meanwhile must not be taken for a tree whose files were all deleted.
        if self._root_identity() != root:
            raise WorkspaceUnavailable(
                f"{self._settings.root} was replaced while it was scanned; it will be tried again."
            )
        files = self._after.files
        skipped = {path: reason for path, reason in self._skipped.items() if path not in files}
        return TreeScan(files, skipped, self._unreadable), self._after

    def _root_identity(self) -> tuple[int, int]:
        root = self._settings.root
        try:
            status = os.lstat(root)
        except OSError as error:
            raise WorkspaceUnavailable(f"{root} cannot be scanned: {_words(error)}") from error
        if not stat.S_ISDIR(status.st_mode):
            raise WorkspaceUnavailable(f"{root} is not a directory any more; restore it, or release the workspace.")
        return status.st_dev, status.st_ino

    def _enter(self, prefix: str, above: IgnoreStack) -> Folder | None:
        if prefix in self._boundaries:
            return None
        try:
            folder = self._current(prefix, above)
            if folder is not None:
                self._look_at_files(prefix, folder)
        except RulesUnreadable as error:
            self._unreadable[prefix.rstrip("/")] = str(error)
            return None
        except OSError as error:
            if error.errno not in _GONE or not prefix:
                self._unreadable[prefix.rstrip("/")] = _words(error)
            return None
        return folder

    def _current(self, prefix: str, above: IgnoreStack) -> Folder:
        """Return what a directory holds now."""
        path = self._base + prefix
        known = self._before.folders.get(prefix)
        unchanged = (
            known is not None
            and known.above is above
            and known.stamp == signature_of(os.lstat(path[:-1] or "/"))
            and known.own == self._settings.rules.of_directory(prefix, known.own)
            and known.boundary == (known.has_git and self._is_boundary(prefix))
        )
        folder = known if known is not None and unchanged else self._listed(prefix, above, known)
        self._after.folders[prefix] = folder
        return folder

    def _is_boundary(self, prefix: str) -> bool:
        return prefix != "" and is_boundary(f"{self._base}{prefix}{GIT}")

    def _listed(self, prefix: str, above: IgnoreStack, known: Folder | None) -> Folder:
        """List a directory and decide on each of its entries."""
        descriptor = os.open((self._base + prefix)[:-1] or "/", _DIRECTORY_FLAGS)
        try:
            began_ns = time.time_ns()
            stamp = signature_of(os.fstat(descriptor))
            with os.scandir(descriptor) as entries:
                by_name = {entry.name: entry for entry in entries}
            own = self._settings.rules.of_directory(prefix, [name for name in IGNORE_FILES if name in by_name])
            if known is not None and known.above is above and known.own == own:
                rules = known.rules
            else:
                rules = above.inside(own.values(), os.fsencode(prefix[:-1]))
            has_git = GIT in by_name
            folder = Folder(
                stamp if stamp.trusted_at(began_ns) else None,
                above,
                own,
                rules,
                has_git,
                has_git and self._is_boundary(prefix),
            )
            if not folder.boundary:
                for name in sorted(by_name):
                    self._sort_in(folder, prefix, name, by_name[name])
        finally:
            os.close(descriptor)
        return folder

    def _sort_in(self, folder: Folder, prefix: str, name: str, entry: "os.DirEntry[str]") -> None:
        """Put one entry of a directory where it belongs, if it belongs anywhere."""
        directory = entry.is_dir(follow_symlinks=False)
        path = prefix + name
        shown = shown_name(path)
        if name_exclusion(name, directory=directory) or not (directory or self._settings.types.includes(shown)):
            return
        if folder.rules.ignores(os.fsencode(path), directory=directory):
            return
        if directory:
            if shown == path:
                folder.folders.append(name)
            else:
                folder.unreadable[shown] = REASONS[Standing.NAME]
            return
        standing = _standing(entry, well_named=shown == path)
        if standing is Standing.ELIGIBLE:
            folder.files.append(name)
        else:
            folder.skipped[shown] = REASONS[standing]

    def _look_at_files(self, prefix: str, folder: Folder) -> None:
        """Take the signatures of a directory's files."""
        base, before = self._base + prefix, self._before.files
        files: dict[str, Signature] = {}
        skipped = dict(folder.skipped)
        for name in folder.files:
            path = prefix + name
            try:
                status = os.lstat(base + name)
            except OSError as error:
                if error.errno in _GONE:
                    continue
                raise
            if not stat.S_ISREG(status.st_mode):
                continue
            if status.st_size > MAX_FILE_BYTES:
                skipped[path] = REASONS[Standing.SIZE]
                continue
            known = before.get(path)
            files[path] = known if known is not None and _same(known, status) else signature_of(status)
        self._after.files.update(files)
        self._skipped.update(skipped)
        self._unreadable.update(folder.unreadable)
        if len(self._after.files) > self._settings.max_files:
            raise TooManyFiles(
                f"{self._settings.root} holds more than {self._settings.max_files:,} files for the index;"
                " exclude some with ignore files, register a smaller directory, or raise limits.maxFiles."
            )


def _standing(entry: "os.DirEntry[str]", *, well_named: bool) -> Standing:
    if not well_named:
        return Standing.NAME
    if entry.is_symlink():
        return Standing.LINK
    return Standing.ELIGIBLE if entry.is_file(follow_symlinks=False) else Standing.NOT_REGULAR


def _same(known: Signature, status: os.stat_result) -> bool:
    return (
        known.mtime_ns == status.st_mtime_ns
        and known.ctime_ns == status.st_ctime_ns
        and known.size == status.st_size
        and known.inode == status.st_ino
    )


def _words(error: OSError) -> str:
    return f"{os.strerror(error.errno or errno.EIO)}."
