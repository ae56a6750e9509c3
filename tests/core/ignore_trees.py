"""Trees with ignore files, drawn at random, and what git says of them: the oracle of the ignore rules."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen
from hypothesis import strategies as st

from semindex.core.ignore import IgnoreStack, Rule, RuleSet

INFO = b".git/info/exclude"

PIECES = [
    *[
        b"a",
        b"b",
        b"/",
        b"*",
        b"**",
        b"***",
        b"?",
        b"\\",
        b"[a-b]",
        b"[!a]",
        b"[^b/]",
        b"[]a]",
        b"[!]a]",
        b"[a-",
        b"[\\]b]",
    ],
    *[b"[\\a-\\b]", b"[b-a]", b"[a/]", b"[*-.]", b"[[:alpha:]]", b"[![:upper:]b]", b"[[:space:]!]", b"[[:nope:]]"],
    *[
        b"[[:alpha]",
        b"[[::]a]",
        b"[[:",
        b"[--a]",
        b"[a-]",
        b"[-a]",
        b"[]-a]",
        b"[[:digit:]-a]",
        b"[a[]",
        b" ",
        b"\t",
        b"\r",
    ],
    *[
        b"#",
        b"!",
        b".",
        b"]",
        b"\xc3\xbc",
        b"\xc3",
        b"\xff",
        b"\0",
        b"$",
        b"(",
        b"|",
        b"{a,b}",
        b"+",
        b"^",
        b"~",
        b"A",
        b"-",
    ],
]
"""What patterns are made of."""

_PATH_PIECES = [b"a", b"b", b"a/", b"/b", b"/", b"*", b"**", b"**/", b"/**", b"?", b"\\", b"\\/", b"[!a]", b" "]
"""What longer patterns are made of: pieces that have a bearing on each other."""

_TRICKY = [
    *[
        b"a**/b",
        b"/a**/b",
        b"a/b**/a",
        b"/a**",
        b"a**b/",
        b"?a**/b",
        b"*a**/b",
        b"**a/b",
        b"a/***/b",
        b"***/b",
        b"/**/",
        b"//",
        b"a//b",
    ],
    *[
        b"**\\/a",
        b"**\\/b",
        b"a/**\\/a",
        b"a/**\\/b",
        b"a\\/**/b",
        b"**/**/b",
        b"a/**/**",
        b"**\\/**/b",
        b"**\\/**\\/b",
        b"*\\/b",
        b"a/*\\/a",
    ],
    *[
        b"a\\\\ ",
        b"a\\\\\\ ",
        b"a\\  ",
        b"a \\",
        b"\\ ",
        b"\\\\ ",
        b"a/ ",
        b"a\\ /",
        b"!a\\ ",
        b" !a",
        b"\\\\a",
        b"a\\\\",
        b"a\t ",
        b"a \r",
        b"\r\r",
    ],
]
"""Patterns of which git makes something that one would not guess."""

SUBJECTS = [
    *[
        b"a",
        b"b",
        b"ab",
        b"ba",
        b"aa",
        b"aab",
        b"A",
        b"a.",
        b".a",
        b"-",
        b"--",
        b"a-",
        b"!",
        b"!a",
        b"#",
        b"#a",
        b"^",
        b"~a",
    ],
    *[
        b" ",
        b"a ",
        b" a",
        b"a  ",
        b"\t",
        b"a\t",
        b"\ra",
        b"a\r",
        b"\v",
        b"\n",
        b"\x7f",
        b"*",
        b"**",
        b"a*",
        b"?",
        b"[",
        b"]",
        b"[a",
        b"[a]",
    ],
    *[
        b"a]",
        b"\\",
        b"a\\",
        b"\\a",
        b"[[:nope:]]",
        b":",
        b"a:",
        b"[",
        b"0",
        b"_",
        b"\xc3\xbc",
        b"\xc3",
        b"\xbc",
        b"\xff",
        b"$",
        b"(",
        b"|",
    ],
    *[
        b"{a,b}",
        b"+",
        b"a/b",
        b"a/a",
        b"b/a",
        b"ab/b",
        b"a/b/a",
        b"a/a/b",
        b"b/a/b",
        b"a/b/b/a",
        b"aa/b/ab",
        b"a /b",
        b"\\/a",
        b"*/a",
        b"[/]",
    ],
]
"""Paths that tell such patterns apart."""

_ATOMS = [
    b"a",
    b"b",
    b"ab",
    b"c",
    b".",
    b"-",
    b"A",
    b"\xc3\xbc",
    b"\xff",
    b" ",
    b"#",
    b"!",
    b"\\",
    b"[",
    b"]",
    b"*",
    b"?",
]
_NAMES = st.lists(st.sampled_from(_ATOMS), min_size=1, max_size=3).map(b"".join)


def _patterns(names: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Draw lines that have a chance to match some of the names."""
    piece = st.one_of(st.sampled_from([*names, *_ATOMS]), st.sampled_from(PIECES))
    free = st.lists(piece, min_size=1, max_size=6).map(b"".join)
    path = st.lists(
        st.one_of(st.sampled_from([*names, b"*", b"**", b"?", b"*a", b"a*", b"a**"]), free), min_size=1, max_size=4
    )
    body = st.one_of(free, path.map(b"/".join))
    start = st.sampled_from([b"", b"", b"", b"!", b"/", b"!/", b"#", b" "])
    end = st.sampled_from([b"", b"", b"", b"/", b" ", b"  ", b"\r", b"/\r", b"\\ ", b"\\", b"/**"])
    return st.tuples(start, body, end).map(lambda parts: b"".join(parts).replace(b"\n", b""))


@frozen
class Tree:
    """A tree to be made on disk; all paths are relative, as bytes."""

    files: frozenset[bytes]
    ignore: dict[bytes, bytes]
    """Ignore file → content."""

    @property
    def directories(self) -> frozenset[bytes]:
        return frozenset(parent for path in self.files for parent in parents(path))


def parents(path: bytes) -> list[bytes]:
    """Return the directories above a path, from the top, the root left out."""
    parts = path.split(b"/")
    return [b"/".join(parts[:end]) for end in range(1, len(parts))]


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Draw a tree of up to a dozen files with ignore files at any level."""
    names = draw(st.lists(_NAMES.filter(lambda name: name not in (b".", b"..")), min_size=2, max_size=5, unique=True))
    paths = st.lists(st.sampled_from(names), min_size=1, max_size=4).map(b"/".join)
    drawn = draw(st.lists(paths, min_size=1, max_size=12, unique=True))
    directories = {parent for path in drawn for parent in parents(path)}
    files = frozenset(path for path in drawn if path not in directories)
    places = [INFO, b".gitignore", *(parent + b"/.gitignore" for parent in sorted(directories))]
    ignore = {}
    for place in places:
        if place == b".gitignore" or draw(st.booleans()):
            lines = draw(st.lists(_patterns(names), min_size=1, max_size=6))
            mark = draw(st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf"]))
            ignore[place] = (
                mark + draw(st.sampled_from([b"\n", b"\n", b"\r\n"])).join(lines) + draw(st.sampled_from([b"", b"\n"]))
            )
    return Tree(files, ignore)


@frozen
class Decision:
    """The rule that decides on a path."""

    source: str
    line: int
    pattern: str


class Repository:
    """A git repository on disk that takes the form of one tree after another."""

    def __init__(self, root: Path) -> None:
        """``root`` is the top of a repository, in an environment that keeps the user's configuration away."""
        self.root = root

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run git; an exit with 1 means "none" for the commands that are used here."""
        done = subprocess.run(["git", *arguments], cwd=self.root, input=stdin, capture_output=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def become(self, tree: Tree) -> None:
        """Replace the files of the working tree."""
        root = os.fsencode(self.root)
        for entry in os.scandir(root):
            if entry.name != b".git":
                shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
        for path in tree.files:
            _write(os.path.join(root, path), b"text\n")
        _write(os.path.join(root, INFO), b"")
        for path, content in tree.ignore.items():
            _write(os.path.join(root, path), content)

    def decisions(self, paths: Sequence[bytes]) -> dict[bytes, Decision | None]:
        """Return which rule decides on each path, by git's word."""
        out = self.git(
            "check-ignore", "-v", "-n", "-z", "--no-index", "--stdin", stdin=b"".join(path + b"\0" for path in paths)
        )
        fields = out.split(b"\0")[:-1]
        found: dict[bytes, Decision | None] = {}
        for source, line, pattern, path in zip(*(iter(fields),) * 4, strict=True):
            shown = Decision(source.decode("utf-8", "replace"), int(line or 0), pattern.decode("utf-8", "replace"))
            found[path] = shown if line else None
        return found


def short_patterns() -> list[bytes]:
    """Return all patterns of one and two pieces, and the tricky ones."""
    return [*PIECES, *(first + second for first in PIECES for second in PIECES), *_TRICKY]


def random_patterns(count: int, *, seed: int) -> list[bytes]:
    """Return patterns of three to seven pieces."""
    drawn = random.Random(seed)
    kinds = (PIECES, _PATH_PIECES)
    return [b"".join(drawn.choices(drawn.choice(kinds), k=drawn.randint(3, 7))) for _ in range(count)]


def pattern_disagreements(repository: Repository, patterns: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Return (pattern, path) where a pattern alone in an ignore file does not do what git makes of it."""
    folders = {b"%d" % number: pattern for number, pattern in enumerate(patterns)}
    repository.become(Tree(frozenset(), {folder + b"/.gitignore": pattern for folder, pattern in folders.items()}))
    decided = repository.decisions([folder + b"/" + subject for folder in folders for subject in SUBJECTS])
    wrong = []
    for folder, pattern in folders.items():
        rules = OurRules(Tree(frozenset(), {b".gitignore": pattern}))
        for subject in SUBJECTS:
            gits = decided[folder + b"/" + subject]
            ours = rules.decision(subject, directory=False)
            if (gits and gits.pattern) != (ours and ours.pattern):
                wrong.append((pattern, subject))
    return wrong


def _write(path: bytes, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)


class OurRules:
    """What the ignore rules of a tree say, by the project's own reading of them."""

    def __init__(self, tree: Tree) -> None:
        self._sets = {path: RuleSet(content, path.decode("utf-8", "replace")) for path, content in tree.ignore.items()}

    def decision(self, path: bytes, *, directory: bool) -> Decision | None:
        """Return which rule decides on a path: one that ignores a directory above it, else its own."""
        stack = IgnoreStack().inside(self._in(INFO), b"").inside(self._in(b".gitignore"), b"")
        for parent in parents(path):
            rule = stack.decide(parent, directory=True)
            if rule is not None and not rule.negated:
                return _shown(rule)
            stack = stack.inside(self._in(parent + b"/.gitignore"), parent)
        return _shown(stack.decide(path, directory=directory))

    def _in(self, place: bytes) -> Iterator[RuleSet]:
        if place in self._sets:
            yield self._sets[place]


def _shown(rule: Rule | None) -> Decision | None:
    return None if rule is None else Decision(rule.source, rule.line, rule.pattern)


def disagreements(repository: Repository, tree: Tree) -> list[tuple[bytes, Decision | None, Decision | None]]:
    """Return (path, git's decision, ours) of each file and directory on which we do not agree with git."""
    repository.become(tree)
    ours = OurRules(tree)
    decided = repository.decisions([*sorted(tree.files), *sorted(tree.directories)])
    found = {path: ours.decision(path, directory=path in tree.directories) for path in decided}
    return [(path, decided[path], found[path]) for path in decided if decided[path] != found[path]]
