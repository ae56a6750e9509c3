"""Ignore files of a working tree as they are on the disk, each parsed once per change.

Owns where rules come from: the two ignore files of each directory, those of the directories above the root up to the
top of the repository, ``.git/info/exclude``, git's global excludes file, and what the configuration excludes. A file
of rules that exists and cannot be read is an error, not an absence: without it, files that were kept out on purpose
would enter the index.
"""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from semindex.core.ignore import IGNORE_FILES, IgnoreStack, RuleSet
from semindex.core.judge import Unreadable
from semindex.files.git import Repository, enclosing_repository
from semindex.files.gitconfig import global_excludes_file
from semindex.files.reading import read_regular, signature_of
from semindex.model.chunks import FileProblem, ProblemKind, Signature


@frozen
class _Loaded:
    signature: Signature | None
    """None if the file may have changed since without a trace."""
    data: bytes
    rules: RuleSet


class IgnoreRules:
    """The rules that apply in one working tree. Calls block; several threads may make them at the same time."""

    def __init__(self, root: str, exclude: Sequence[str], environ: Mapping[str, str]) -> None:
        """``root`` is canonical; ``exclude`` are patterns that the configuration adds at the root."""
        self._root = root
        self._environ = environ
        self._excluded = RuleSet("\n".join(exclude).encode("utf-8", "replace"), "indexing.exclude")
        self._loaded: dict[str, _Loaded] = {}
        self._base: tuple[object, IgnoreStack] = (None, IgnoreStack())

    def base(self) -> IgnoreStack:
        """Return what applies at the root besides its own ignore files; the same object while nothing changes.

        Raises Unreadable.
        """
        repository = enclosing_repository(self._root)
        everywhere = self._everywhere(repository)
        levels = [] if repository is None else self._levels(repository)
        known, stack = self._base
        if known != (everywhere, levels):
            stack = _combined(everywhere, levels).pinned(self._excluded)
            self._base = (everywhere, levels), stack
        return stack

    def of_directory(self, directory: str, names: Iterable[str] = IGNORE_FILES) -> dict[str, RuleSet]:
        """Return name → rules of the ignore files of a directory (a path below the root, or empty), weakest first.

        As long as a file has not changed its rules are the same object. Raises Unreadable.
        """
        absolute = os.path.join(self._root, directory)
        found = {name: self._load(absolute, name) for name in names}
        return {name: rules for name, rules in found.items() if rules is not None}

    def _everywhere(self, repository: Repository | None) -> RuleSet | None:
        path = global_excludes_file(repository, self._environ)
        # Git follows links to this file, and takes one that it may not even look for as absent.
        if path is None or not os.path.isfile(path):
            return None
        directory, name = os.path.split(os.path.realpath(path))
        return self._load(directory, name)

    def _levels(self, repository: Repository) -> list[tuple[str, tuple[RuleSet, ...]]]:
        """Return (directory below the top of the repository, its rules) from the top down, the root not included."""
        shared = os.path.realpath(os.path.join(repository.common_dir, "info", "exclude"))
        info = self._load(*os.path.split(shared))
        levels: list[tuple[str, tuple[RuleSet, ...]]] = [("", () if info is None else (info,))]
        directory = ""
        for name in _parts(os.path.relpath(self._root, repository.top)):
            absolute = os.path.join(repository.top, directory)
            found = (self._load(absolute, each) for each in IGNORE_FILES)
            levels.append((directory, tuple(rules for rules in found if rules is not None)))
            directory = os.path.join(directory, name)
        levels.append((directory, ()))
        return levels

    def _load(self, directory: str, name: str) -> RuleSet | None:
        path = os.path.join(directory, name)
        source = path.removeprefix(self._root.rstrip("/") + "/")
        try:
            signature = signature_of(os.lstat(path))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                self._loaded.pop(path, None)
                return None
            raise Unreadable(f"{source} cannot be read: {os.strerror(error.errno or errno.EIO)}.") from error
        known = self._loaded.get(path)
        if known is not None and known.signature == signature:
            return known.rules
        read = read_regular(directory, name)
        if isinstance(read, FileProblem):
            if read.kind is ProblemKind.GONE:
                return None
            raise Unreadable(f"{source} cannot be read: {read.reason}")
        same = known is not None and known.data == read.data
        rules = known.rules if known is not None and same else RuleSet(read.data, source)
        self._loaded[path] = _Loaded(read.signature if read.trusted else None, read.data, rules)
        return rules


def _combined(everywhere: RuleSet | None, levels: Sequence[tuple[str, tuple[RuleSet, ...]]]) -> IgnoreStack:
    """Return the rules of a repository as they apply below the root, which is the last level.

    A root that the repository itself ignores, or that lies in a directory that it ignores, is none of its business:
    whoever indexes such a tree wants its files.
    """
    anywhere = IgnoreStack().inside([] if everywhere is None else [everywhere], b"")
    stack, root = anywhere, b""
    for directory, rule_sets in levels:
        root = os.fsencode(directory)
        if root and stack.ignores(root, directory=True):
            return anywhere
        stack = stack.inside(rule_sets, root)
    return stack.rooted_at(root) if root else stack


def _parts(path: str) -> list[str]:
    return [] if path == "." else path.split("/")
