"""Why one path is, or is not, for the index.

Owns the order in which the rules of docs/configuration.md (What is indexed) are asked for a path given by name:
from the root down each directory on the way is judged, then the path itself. What the tree looks like it asks of a
:class:`Sight`. A walk through a whole tree decides the same, faster; a test holds the two together.
"""

from collections.abc import Iterable
from enum import Enum, auto
from typing import Protocol

from attrs import frozen

from semindex.core.eligibility import REASONS, FileTypes, Standing, Verdict, name_exclusion, shown_name
from semindex.core.ignore import IgnoreStack, RuleSet
from semindex.model.chunks import Signature


class Unreadable(Exception):
    """A part of a tree, or a file of rules for it, cannot be looked at; the message says which and why."""


class Kind(Enum):
    """What lies at a path; links are not followed."""

    FILE = auto()
    DIRECTORY = auto()
    LINK = auto()
    OTHER = auto()
    BROKEN = auto()
    """It is there, and that is all that can be said."""


@frozen
class Entry:
    """What lies at a path."""

    kind: Kind
    signature: Signature


class Sight(Protocol):
    """A tree as one can see it at a moment. Paths are relative, the root is empty. Any method may raise Unreadable."""

    def entry(self, path: str) -> Entry | None:
        """Return what lies at a path, None if nothing does; Unreadable speaks of the directory that it lies in."""

    def rules_above(self) -> IgnoreStack:
        """Return the ignore rules that apply at the root besides those that lie there."""

    def rules_in(self, directory: str) -> Iterable[RuleSet]:
        """Return the ignore files of a directory, weakest first."""

    def boundary(self, directory: str) -> str | None:
        """Return a sentence that says why a directory below the root is no part of the tree, None if it is."""


class Judge:
    """Judges paths. It remembers the directories that it saw: make a new one to see the tree anew."""

    def __init__(self, sight: Sight, types: FileTypes, max_bytes: int) -> None:
        """Files larger than ``max_bytes`` are not for the index."""
        self._sight = sight
        self._types = types
        self._max_bytes = max_bytes
        self._entered: dict[str, IgnoreStack | Verdict] = {}

    def verdict(self, path: str) -> Verdict:
        """Return what the rules say of a path below the root."""
        parts = path.split("/")
        if not _is_plain(path, parts):
            return Verdict(path, Standing.OUTSIDE, "It is not a plain path below the workspace's root.", path)
        above = self._enter("", None)
        for end in range(1, len(parts)):
            if isinstance(above, Verdict):
                break
            above = self._enter("/".join(parts[:end]), above)
        if isinstance(above, Verdict):
            return Verdict(path, above.standing, above.reason, above.decided_by, above.rule)
        try:
            return self._judge(path, above)
        except Unreadable as error:
            return Verdict(path, Standing.UNREADABLE, str(error), path.rpartition("/")[0])

    def _enter(self, directory: str, above: IgnoreStack | None) -> IgnoreStack | Verdict:
        """Return the rules that apply in a directory whose parent was entered, or why it is not entered."""
        known = self._entered.get(directory)
        if known is None:
            try:
                known = self._judge_directory(directory, above)
            except Unreadable as error:
                known = Verdict(directory, Standing.UNREADABLE, str(error), directory)
            self._entered[directory] = known
        return known

    def _judge_directory(self, directory: str, above: IgnoreStack | None) -> IgnoreStack | Verdict:
        entry = self._sight.entry(directory)
        if entry is None:
            return Verdict(directory, Standing.MISSING, f"There is no {directory or 'root'}.", directory)
        if entry.kind is Kind.LINK:
            return Verdict(directory, Standing.LINK, REASONS[Standing.LINK], directory)
        if entry.kind is Kind.BROKEN:
            raise Unreadable("The directory cannot be looked at.")
        if entry.kind is not Kind.DIRECTORY:
            return Verdict(directory, Standing.MISSING, f"The {directory or 'root'} is no directory.", directory)
        if above is None:
            above = self._sight.rules_above()
        elif (refusal := self._refusal(directory, above, directory=True)) is not None:
            return refusal
        elif (reason := self._sight.boundary(directory)) is not None:
            return Verdict(directory, Standing.BOUNDARY, reason, directory)
        return above.inside(self._sight.rules_in(directory), _bytes(directory))

    def _judge(self, path: str, above: IgnoreStack) -> Verdict:
        """Judge a path in a directory that was entered."""
        entry = self._sight.entry(path)
        if entry is None:
            return Verdict(path, Standing.MISSING, f"There is no {path}.", path)
        if entry.kind is Kind.DIRECTORY:
            entered = self._enter(path, above)
            if isinstance(entered, Verdict):
                return entered
            return Verdict(path, Standing.DIRECTORY, "It is a directory; its files are judged one by one.", path)
        refusal = self._refusal(path, above, directory=False)
        if refusal is not None:
            return refusal
        rule = above.decide(_bytes(path), directory=False)
        standing = self._standing(path, entry)
        if standing is not Standing.ELIGIBLE:
            return Verdict(path, standing, REASONS[standing], path, rule)
        return Verdict(path, standing, "It is a file for the index.", path, rule, entry.signature)

    def _refusal(self, path: str, above: IgnoreStack, *, directory: bool) -> Verdict | None:
        """Return why a name or an ignore rule keeps a path out, None if neither does."""
        name = path.rpartition("/")[2]
        excluded = name_exclusion(name, directory=directory)
        if excluded is not None:
            return Verdict(path, *excluded, path)
        if not directory and not self._types.includes(shown_name(name)):
            return Verdict(path, Standing.TYPE, "Files of this type are not indexed.", path)
        rule = above.decide(_bytes(path), directory=directory)
        if rule is not None and not rule.negated:
            reason = f"{rule.source}, line {rule.line}, ignores it: {rule.pattern}"
            return Verdict(path, Standing.IGNORED, reason, path, rule)
        if directory and shown_name(name) != name:
            return Verdict(path, Standing.NAME, REASONS[Standing.NAME], path)
        return None

    def _standing(self, path: str, entry: Entry) -> Standing:
        if shown_name(path) != path:
            return Standing.NAME
        if entry.kind is not Kind.FILE:
            return _NO_FILE.get(entry.kind, Standing.NOT_REGULAR)
        return Standing.SIZE if entry.signature.size > self._max_bytes else Standing.ELIGIBLE


_NO_FILE = {Kind.LINK: Standing.LINK, Kind.BROKEN: Standing.BROKEN}


def _is_plain(path: str, parts: list[str]) -> bool:
    if not all(parts) or "." in parts or ".." in parts or "\0" in path:
        return False
    try:
        _bytes(path)
    except UnicodeEncodeError:
        return False
    return True


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
