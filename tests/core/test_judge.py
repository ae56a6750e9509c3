"""Verdicts on single paths; what all trees have in common is in tests/files/conformance.py."""

from attrs import define, field

from semindex.core.eligibility import FileTypes, Standing
from semindex.core.ignore import IgnoreStack, RuleSet
from semindex.core.judge import Entry, Judge, Kind, Unreadable
from semindex.model.chunks import Signature


@define
class Sight:
    """A tree of what a test puts there; it notes what it is asked."""

    kinds: dict[str, Kind]
    rules: dict[str, bytes] = field(factory=dict)
    hidden: set[str] = field(factory=set)
    asked: list[str] = field(factory=list)

    def entry(self, path: str) -> Entry | None:
        self.asked.append(path)
        if path in self.hidden:
            raise Unreadable(f"{path} is hidden.")
        kind = Kind.DIRECTORY if path == "" else self.kinds.get(path)
        return None if kind is None else Entry(kind, Signature(1, 2, 3, 4))

    def rules_above(self) -> IgnoreStack:
        return IgnoreStack().inside([RuleSet(self.rules.get("above", b""), "above")], b"")

    def rules_in(self, directory: str) -> list[RuleSet]:
        return [RuleSet(self.rules.get(directory, b""), f"{directory}/.gitignore")]

    def boundary(self, directory: str) -> str | None:
        return "It is another's." if directory.endswith("other") else None


def judge(sight: Sight) -> Judge:
    return Judge(sight, FileTypes(), max_bytes=10)


DEEP = {"src": Kind.DIRECTORY, "src/deep": Kind.DIRECTORY, "src/deep/a.py": Kind.FILE, "src/deep/b.py": Kind.FILE}


def test_a_directory_is_looked_at_once_for_all_paths_in_it() -> None:
    sight = Sight(DEEP)
    judged = judge(sight)

    assert judged.verdict("src/deep/a.py").eligible
    assert judged.verdict("src/deep/b.py").eligible
    assert sight.asked == ["", "src", "src/deep", "src/deep/a.py", "src/deep/b.py"]


def test_nothing_is_looked_at_below_what_is_not_entered() -> None:
    sight = Sight({**DEEP, "src/build": Kind.DIRECTORY, "link": Kind.LINK, "src/other": Kind.DIRECTORY})
    judged = judge(sight)
    verdicts = [judged.verdict(path) for path in ("src/build/x/a.py", "link/x/a.py", "src/other/x/a.py", "../x/a.py")]

    assert [(verdict.standing, verdict.decided_by) for verdict in verdicts] == [
        (Standing.EXCLUDED_NAME, "src/build"),
        (Standing.LINK, "link"),
        (Standing.BOUNDARY, "src/other"),
        (Standing.OUTSIDE, "../x/a.py"),
    ]
    assert not [path for path in sight.asked if path.endswith(("/x", "a.py"))]


def test_what_a_directory_forbids_makes_it_unreadable() -> None:
    judged = judge(Sight(DEEP, hidden={"src/deep/a.py"}))
    verdict = judged.verdict("src/deep/a.py")

    assert (verdict.standing, verdict.decided_by) == (Standing.UNREADABLE, "src/deep")
    assert verdict.reason == "src/deep/a.py is hidden."


def test_a_broken_directory_is_unreadable_and_a_broken_file_is_skipped() -> None:
    judged = judge(Sight({**DEEP, "src": Kind.BROKEN, "a.py": Kind.BROKEN}))
    below, file = judged.verdict("src/deep/a.py"), judged.verdict("a.py")

    assert (below.standing, below.decided_by) == (Standing.UNREADABLE, "src")
    assert (file.standing, file.decided_by) == (Standing.BROKEN, "a.py")


def test_rules_from_above_the_root_are_weaker_than_those_in_it() -> None:
    judged = judge(Sight(DEEP, rules={"above": b"*.py", "src": b"!b.py"}))
    ignored, kept = judged.verdict("src/deep/a.py"), judged.verdict("src/deep/b.py")

    assert ignored.standing is Standing.IGNORED
    assert ignored.reason == "above, line 1, ignores it: *.py"
    assert kept.eligible
    assert kept.rule is not None
    assert kept.rule.source == "src/.gitignore"


def test_an_ignored_file_is_called_ignored_whatever_else_it_is() -> None:
    kinds = {"a.py": Kind.LINK, "b.py": Kind.OTHER, "c.txt": Kind.FILE}
    judged = judge(Sight(kinds, rules={"": b"a.py\nc.txt\n"}))

    assert [judged.verdict(path).standing for path in kinds] == [Standing.IGNORED, Standing.NOT_REGULAR, Standing.TYPE]
