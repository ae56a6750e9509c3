"""Why one path is, or is not, for the index.

Owns the same decision as the walk, for paths given by name: from the root down, each directory on the way is judged,
then the path itself. Remembers directories, so that many paths of one call cost little; use it for one call only.
"""

import errno
import os
import stat
from collections.abc import Collection

from semindex.core.eligibility import REASONS, FileTypes, Standing, Verdict, name_exclusion, shown_name
from semindex.core.ignore import IgnoreStack
from semindex.files.git import GIT, is_boundary
from semindex.files.reading import MAX_FILE_BYTES, signature_of
from semindex.files.rules import IgnoreRules, RulesUnreadable


class Inspector:
    """Judges paths as they are now. Calls block."""

    def __init__(self, root: str, types: FileTypes, rules: IgnoreRules, boundaries: Collection[str]) -> None:
        """``boundaries`` are absolute paths of directories that belong to other workspaces."""
        self._root = root
        self._types = types
        self._rules = rules
        self._boundaries = boundaries
        self._entered: dict[str, IgnoreStack | Verdict] = {}

    def verdict(self, path: str) -> Verdict:
        """Return what the rules say of a path below the root."""
        parts = path.split("/")
        if not all(parts) or "." in parts or ".." in parts or "\0" in path:
            return Verdict(path, Standing.OUTSIDE, "It is not a plain path below the workspace's root.", path)
        stack = self._enter("")
        for end in range(1, len(parts)):
            if isinstance(stack, Verdict):
                break
            stack = self._enter("/".join(parts[:end]))
        if isinstance(stack, Verdict):
            return Verdict(path, stack.standing, stack.reason, stack.decided_by, stack.rule)
        return self._judge(path, stack)

    def _enter(self, directory: str) -> IgnoreStack | Verdict:
        """Return the rules that apply in a directory whose parents can be entered, or why it cannot be."""
        known = self._entered.get(directory)
        if known is None:
            try:
                known = self._entered[directory] = self._judge_directory(directory)
            except RulesUnreadable as error:
                known = Verdict(directory, Standing.UNREADABLE, str(error), directory)
        return known

    def _judge_directory(self, directory: str) -> IgnoreStack | Verdict:
        status = self._look(directory)
        if isinstance(status, Verdict):
            return status
        if stat.S_ISLNK(status.st_mode):
            return Verdict(directory, Standing.LINK, REASONS[Standing.LINK], directory)
        if not stat.S_ISDIR(status.st_mode):
            return Verdict(directory, Standing.MISSING, f"{directory or self._root} is not a directory.", directory)
        if directory == "":
            above = self._rules.base()
        else:
            above = self._parent(directory)
            refusal = self._named_or_ignored(directory, above, directory=True) or self._boundary(directory)
            if refusal is not None:
                return refusal
        return above.inside(self._rules.of_directory(directory).values(), os.fsencode(directory))

    def _parent(self, path: str) -> IgnoreStack:
        above = self._entered[path.rpartition("/")[0]]
        assert isinstance(above, IgnoreStack), "directories are entered from the root down"
        return above

    def _judge(self, path: str, above: IgnoreStack) -> Verdict:
        """Judge a path in a directory that can be entered."""
        status = self._look(path)
        if isinstance(status, Verdict):
            return status
        if stat.S_ISDIR(status.st_mode):
            entered = self._enter(path)
            if isinstance(entered, Verdict):
                return entered
            return Verdict(path, Standing.DIRECTORY, "It is a directory; its files are judged one by one.", path)
        refusal = self._named_or_ignored(path, above, directory=False)
        if refusal is not None:
            return refusal
        standing = _standing(path, status)
        rule = above.decide(os.fsencode(path), directory=False)
        if standing is not Standing.ELIGIBLE:
            return Verdict(path, standing, REASONS[standing], path, rule)
        return Verdict(path, standing, "It is a file for the index.", path, rule, signature_of(status))

    def _look(self, path: str) -> os.stat_result | Verdict:
        try:
            return os.lstat(os.path.join(self._root, path))
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return Verdict(path, Standing.MISSING, f"There is no {path or self._root}.", path)
            reason = f"{path or self._root} cannot be looked at: {os.strerror(error.errno or errno.EIO)}."
            return Verdict(path, Standing.UNREADABLE, reason, path)

    def _named_or_ignored(self, path: str, above: IgnoreStack, *, directory: bool) -> Verdict | None:
        """Return why the name or a rule keeps a path out."""
        name = path.rpartition("/")[2]
        excluded = name_exclusion(name, directory=directory)
        if excluded is not None:
            return Verdict(path, *excluded, path)
        if not directory and not self._types.includes(shown_name(name)):
            return Verdict(path, Standing.TYPE, "Files of this type are not indexed.", path)
        rule = above.decide(os.fsencode(path), directory=directory)
        if rule is not None and not rule.negated:
            reason = f"{rule.source}, line {rule.line}, ignores {path}: {rule.pattern}"
            return Verdict(path, Standing.IGNORED, reason, path, rule)
        if directory and shown_name(path) != path:
            return Verdict(path, Standing.NAME, REASONS[Standing.NAME], path)
        return None

    def _boundary(self, directory: str) -> Verdict | None:
        absolute = os.path.join(self._root, directory)
        if absolute in self._boundaries:
            return Verdict(
                directory, Standing.BOUNDARY, f"{directory} is registered as a workspace of its own.", directory
            )
        if is_boundary(os.path.join(absolute, GIT)):
            return Verdict(directory, Standing.BOUNDARY, f"{directory} is a git working tree of its own.", directory)
        return None


def _standing(path: str, status: os.stat_result) -> Standing:
    if shown_name(path) != path:
        return Standing.NAME
    if stat.S_ISLNK(status.st_mode):
        return Standing.LINK
    if not stat.S_ISREG(status.st_mode):
        return Standing.NOT_REGULAR
    return Standing.SIZE if status.st_size > MAX_FILE_BYTES else Standing.ELIGIBLE
