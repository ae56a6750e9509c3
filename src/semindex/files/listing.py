"""What one directory of a working tree holds for the index, listed once per change.

Owns the decision whether a directory must be listed again: not while its own signature and the rules that apply to it
are what they were. Listing and matching is most of what a walk costs. All of it blocks.
"""

import os
import time
from collections.abc import Collection

from attrs import field, frozen

from semindex.core.eligibility import REASONS, FileTypes, Standing, name_exclusion, shown_name
from semindex.core.ignore import IGNORE_FILES, IgnoreStack, RuleSet
from semindex.files.git import GIT, is_boundary
from semindex.files.reading import signature_of
from semindex.files.rules import IgnoreRules
from semindex.model.chunks import Signature

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@frozen(eq=False)
class Folder:
    """What one directory held when it was listed."""

    stamp: Signature | None
    """Of the directory; None if it may have changed since without a trace."""
    above: IgnoreStack
    """The rules that applied to the directory itself."""
    own: dict[str, RuleSet]
    """Its ignore files."""
    rules: IgnoreStack
    """The rules that apply to its entries."""
    has_git: bool
    """Whether it has a ``.git`` entry."""
    boundary: bool
    """Whether that entry marks a working tree of its own, which is not entered: nothing in it was judged."""
    files: list[str] = field(factory=list)
    """Names of files that are eligible but for their size."""
    folders: list[str] = field(factory=list)
    """Names of directories to enter."""
    skipped: dict[str, str] = field(factory=dict)
    """Path → why a file of an indexed type is not eligible."""
    unreadable: dict[str, str] = field(factory=dict)
    """Path → why a directory is not entered although no rule keeps it out."""


@frozen
class Lister:
    """Lists the directories of one tree. A prefix is a relative path with a slash at its end; the root's is empty."""

    root: str
    """Canonical, with a slash at its end."""
    types: FileTypes
    rules: IgnoreRules

    def current(self, prefix: str, above: IgnoreStack, known: Folder | None) -> Folder:
        """Return what a directory holds now: ``known``, as long as that is true. Raises OSError, Unreadable."""
        if known is not None and self._is_unchanged(prefix, above, known):
            return known
        descriptor = os.open(self._path(prefix), _DIRECTORY_FLAGS)
        try:
            began_ns = time.time_ns()
            stamp = signature_of(os.fstat(descriptor))
            with os.scandir(descriptor) as entries:
                by_name = {entry.name: entry for entry in entries}
            folder = self._described(stamp if stamp.trusted_at(began_ns) else None, prefix, above, known, by_name)
            if not folder.boundary:
                for name, entry in by_name.items():
                    self._sort_in(folder, prefix, name, entry)
        finally:
            os.close(descriptor)
        return folder

    def _path(self, prefix: str) -> str:
        # A slash at the end would make the system follow a link.
        return (self.root + prefix)[:-1] or "/"

    def _is_unchanged(self, prefix: str, above: IgnoreStack, known: Folder) -> bool:
        # A file that is changed in place leaves its directory's signature alone: what the decision was read from is
        # looked at by itself.
        return (
            known.above is above
            and known.stamp == signature_of(os.lstat(self._path(prefix)))
            and known.own == self.rules.of_directory(prefix, known.own)
            and known.boundary == (known.has_git and self._is_boundary(prefix))
        )

    def _is_boundary(self, prefix: str) -> bool:
        return prefix != "" and is_boundary(f"{self.root}{prefix}{GIT}")

    def _described(
        self, stamp: Signature | None, prefix: str, above: IgnoreStack, known: Folder | None, names: Collection[str]
    ) -> Folder:
        has_git = GIT in names
        if has_git and self._is_boundary(prefix):
            return Folder(stamp, above, {}, above, has_git, boundary=True)
        own = self.rules.of_directory(prefix, [name for name in IGNORE_FILES if name in names])
        # The same rules stay the same object, so that the directories below need not be listed again.
        still = known is not None and known.above is above and known.own == own
        rules = known.rules if known is not None and still else above.inside(own.values(), os.fsencode(prefix[:-1]))
        return Folder(stamp, above, own, rules, has_git, boundary=False)

    def _sort_in(self, folder: Folder, prefix: str, name: str, entry: "os.DirEntry[str]") -> None:
        """Put an entry where it belongs, if it belongs anywhere."""
        directory = entry.is_dir(follow_symlinks=False)
        path = prefix + name
        shown = shown_name(path)
        if name_exclusion(name, directory=directory) or not (directory or self.types.includes(shown)):
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


def _standing(entry: "os.DirEntry[str]", *, well_named: bool) -> Standing:
    if not well_named:
        return Standing.NAME
    if entry.is_symlink():
        return Standing.LINK
    return Standing.ELIGIBLE if entry.is_file(follow_symlinks=False) else Standing.NOT_REGULAR
