"""git's ignore rules: what one ignore file says, and which of several files decides.

Owns the meaning of patterns and their precedence; knows neither files nor directories on disk. Everything is bytes,
because git compares bytes: ``?`` is one byte of a name, and neither names nor patterns need be valid UTF-8. The rule
that decided is part of every answer, so that a person can be told its file and line.

Source of the rules: gitignore(5), and for what it leaves open the behaviour of ``git check-ignore``, which is the
oracle of the tests.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve, frozen

from semindex.core.wildmatch import literal_length, translate

IGNORE_FILES = (".gitignore", ".kilocodeignore")
"""Read in every directory, in this order; a later file's rules win over an earlier one's."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@frozen
class Rule:
    """One line of an ignore file."""

    source: str
    """The file, as it is shown to people; undecodable bytes are replaced."""
    line: int
    """1-based."""
    pattern: str
    """As written, without the blanks that do not count; undecodable bytes are replaced."""
    negated: bool
    """Whether a path that it matches is kept."""


@frozen
class _Pattern:
    """A rule's pattern, taken apart as git does."""

    text: bytes
    """Without ``!``, without the slash that made it anchored and without the one that asks for a directory."""
    negated: bool
    directories_only: bool
    anchored: bool
    """Whether it is compared with the whole path below the ignore file, rather than with the last name."""


class RuleSet:
    """The rules of one ignore file; immutable."""

    def __init__(self, data: bytes, source: str) -> None:
        """Read the content of an ignore file; ``source`` is what a rule gives as its file."""
        self.rules: list[Rule] = []
        patterns: list[_Pattern] = []
        for number, line in _lines(data):
            pattern = _parse(line)
            self.rules.append(Rule(source, number, line.decode("utf-8", "replace"), pattern.negated))
            patterns.append(pattern)
        self._for_directories = _Table(enumerate(patterns))
        self._for_files = _Table((index, each) for index, each in enumerate(patterns) if not each.directories_only)

    def __bool__(self) -> bool:
        """Say whether there is any rule at all."""
        return bool(self.rules)

    def match(self, path: bytes, *, directory: bool) -> Rule | None:
        """Return the last rule that matches a path relative to the ignore file's directory."""
        index = (self._for_directories if directory else self._for_files).last_match(path)
        return None if index < 0 else self.rules[index]


class _Table:
    """Patterns arranged so that most need no regular expression: the highest index that matches is found at once."""

    def __init__(self, patterns: Iterable[tuple[int, _Pattern]]) -> None:
        self._names: dict[bytes, int] = {}
        self._suffixes: dict[bytes, int] = {}
        self._paths: dict[bytes, int] = {}
        names: list[tuple[int, bytes]] = []
        paths: list[tuple[int, bytes]] = []
        for index, pattern in patterns:
            text = pattern.text
            if literal_length(text) == len(text):
                (self._paths if pattern.anchored else self._names)[text] = index
            elif not pattern.anchored and _is_suffix(text):
                self._suffixes[text[1:]] = index
            elif (expression := translate(text, pathname=pattern.anchored)) is not None:
                (paths if pattern.anchored else names).append((index, expression))
        self._name_alternatives = _Alternatives(names)
        self._path_alternatives = _Alternatives(paths)

    def last_match(self, path: bytes) -> int:
        """Return the index of the last pattern that matches, or -1."""
        name = path[path.rfind(b"/") + 1 :]
        best = self._names.get(name, -1)
        if self._suffixes and (dot := name.rfind(b".")) >= 0:
            best = max(best, self._suffixes.get(name[dot:], -1))
        if self._paths:
            best = max(best, self._paths.get(path, -1))
        return max(best, self._name_alternatives.last_match(name), self._path_alternatives.last_match(path))


class _Alternatives:
    """Expressions tried from the last to the first, many in one call of the regular expression engine."""

    _GROUPS = 200
    """At most so many in one expression: a bound for what a single call can cost."""

    def __init__(self, expressions: Sequence[tuple[int, bytes]]) -> None:
        self._compiled: list[tuple[re.Pattern[bytes], list[int]]] = []
        latest_first = expressions[::-1]
        for start in range(0, len(latest_first), self._GROUPS):
            part = latest_first[start : start + self._GROUPS]
            alternatives = b"|".join(b"(" + expression + b")" for _, expression in part)
            self._compiled.append((re.compile(alternatives, re.DOTALL), [index for index, _ in part]))

    def last_match(self, subject: bytes) -> int:
        for compiled, indexes in self._compiled:
            found = compiled.fullmatch(subject)
            if found is not None and found.lastindex is not None:
                return indexes[found.lastindex - 1]
        return -1


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that hold a pattern with their numbers, as git cuts them."""
    for number, line in enumerate(data.removeprefix(_BYTE_ORDER_MARK).split(b"\n"), 1):
        if line and not line.startswith(b"#"):
            # Git's lines are C strings: they end at a NUL.
            text = _without_trailing_spaces(line.removesuffix(b"\r").partition(b"\0")[0])
            if text:
                yield number, text


def _without_trailing_spaces(line: bytes) -> bytes:
    """Remove spaces at the end, save one that a backslash escapes."""
    bare = line.rstrip(b" ")
    backslashes = len(bare) - len(bare.rstrip(b"\\"))
    return line[: len(bare) + 1] if backslashes % 2 and len(bare) < len(line) else bare


def _parse(line: bytes) -> _Pattern:
    negated = line.startswith(b"!")
    text = line[negated:]
    directories_only = text.endswith(b"/")
    if directories_only:
        text = text[:-1]
    return _Pattern(text.removeprefix(b"/"), negated, directories_only, anchored=b"/" in text)


def _is_suffix(pattern: bytes) -> bool:
    """Say whether a pattern is ``*.ext``: it then matches exactly the names with that text from their last dot on."""
    rest = pattern[1:]
    return pattern.startswith(b"*.") and b"." not in rest[1:] and literal_length(rest) == len(rest)


@frozen
class _Layer:
    """A rule set in its place: paths below the root become paths below the ignore file's directory."""

    rules: RuleSet
    cut: int = 0
    """Bytes to drop from the front: the path of the directory below the root, its slash included."""
    prefix: bytes = b""
    """Bytes to put in front: the path of the root below the directory, if the root is the deeper one."""


@frozen(eq=False)
class IgnoreStack:
    """All rule sets that apply to the entries of one directory, the strongest first; compared by identity.

    The order, from the weakest: git's global excludes, ``.git/info/exclude``, the ignore files of each directory from
    the top of the repository down, what the configuration excludes.
    """

    _layers: tuple[_Layer, ...] = ()
    _pinned: tuple[_Layer, ...] = ()
    """Stronger than any layer, at every depth."""

    def inside(self, rule_sets: Iterable[RuleSet], directory: bytes) -> "IgnoreStack":
        """Add rule sets, the later ones stronger, that apply below a directory (a path below the root, or empty)."""
        cut = len(directory) + 1 if directory else 0
        added = tuple(_Layer(rules, cut) for rules in rule_sets if rules)
        return evolve(self, layers=added[::-1] + self._layers) if added else self

    def pinned(self, rules: RuleSet) -> "IgnoreStack":
        """Add a rule set that is stronger than whatever will be added for deeper directories."""
        return evolve(self, pinned=(_Layer(rules), *self._pinned)) if rules else self

    def rooted_at(self, directory: bytes) -> "IgnoreStack":
        """Return the same rules for paths that begin at a directory below this root, all of whose layers lie above."""
        whole = directory + b"/"
        return evolve(self, layers=tuple(_Layer(each.rules, 0, whole[each.cut :]) for each in self._layers))

    def decide(self, path: bytes, *, directory: bool) -> Rule | None:
        """Return the rule that decides on a path below the root, None if no rule speaks of it.

        A rule that is not ``negated`` ignores the path, and with a directory all that lies below it: the caller does
        not descend, hence nothing below can be brought back.
        """
        for layers in (self._pinned, self._layers):
            for layer in layers:
                rule = layer.rules.match(layer.prefix + path[layer.cut :], directory=directory)
                if rule is not None:
                    return rule
        return None

    def ignores(self, path: bytes, *, directory: bool) -> bool:
        """Say whether a path below the root is ignored."""
        rule = self.decide(path, directory=directory)
        return rule is not None and not rule.negated
