"""Whole trees with ignore files at every level, with git as the oracle; and what git has no word for."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from semindex.core.ignore import IgnoreStack, RuleSet
from tests.core.ignore_trees import Repository, Tree, disagreements, trees


@pytest.fixture
def repository(git_repository: Path) -> Repository:
    return Repository(git_repository)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(tree=trees())
def test_the_same_rule_decides_on_every_path_as_in_git(repository: Repository, tree: Tree) -> None:
    assert disagreements(repository, tree) == []


def decided(stack: IgnoreStack, path: str, *, directory: bool = False) -> str | None:
    rule = stack.decide(path.encode(), directory=directory)
    return None if rule is None else f"{rule.source}:{rule.line}:{rule.pattern}"


def test_a_deeper_file_wins_over_a_higher_one_and_a_later_line_over_an_earlier_one() -> None:
    top = RuleSet(b"*.py\n!b.py\n", "top")
    deep = RuleSet(b"!a.py\n", "deep")
    stack = IgnoreStack().inside([top], b"").inside([deep], b"src")

    assert decided(stack, "src/a.py") == "deep:1:!a.py"
    assert decided(stack, "src/b.py") == "top:2:!b.py"
    assert decided(stack, "src/c.py") == "top:1:*.py"
    assert not stack.ignores(b"src/a.py", directory=False)
    assert stack.ignores(b"src/c.py", directory=False)


def test_of_two_files_in_one_directory_the_later_one_wins() -> None:
    stack = IgnoreStack().inside([RuleSet(b"a.py\nb.py", "git"), RuleSet(b"!a.py", "kilo")], b"")

    assert decided(stack, "a.py") == "kilo:1:!a.py"
    assert decided(stack, "b.py") == "git:2:b.py"


def test_a_pinned_rule_set_wins_at_every_depth() -> None:
    stack = IgnoreStack().pinned(RuleSet(b"secret/\n*.gen.ts", "configuration")).inside([RuleSet(b"!*", "top")], b"")
    deep = stack.inside([RuleSet(b"!a.gen.ts", "deep")], b"src")

    assert decided(deep, "src/a.gen.ts") == "configuration:2:*.gen.ts"
    assert decided(deep, "src/secret", directory=True) == "configuration:1:secret/"
    assert decided(deep, "src/secret") == "top:1:!*"


def test_rules_of_an_enclosing_tree_keep_their_anchors_below_another_root() -> None:
    stack = IgnoreStack().inside([RuleSet(b"/lib\n/app/out\n*.log", "top")], b"")
    stack = stack.inside([RuleSet(b"/out2\n", "app")], b"app").rooted_at(b"app")

    assert decided(stack, "out", directory=True) == "top:2:/app/out"
    assert decided(stack, "out2", directory=True) == "app:1:/out2"
    assert decided(stack, "deep/a.log") == "top:3:*.log"
    assert decided(stack, "lib", directory=True) is None
    assert decided(stack.inside([RuleSet(b"!*.log", "deep")], b"deep"), "deep/a.log") == "deep:1:!*.log"


def test_a_stack_without_new_rules_stays_the_same_object() -> None:
    stack = IgnoreStack().inside([RuleSet(b"a", "top")], b"")

    assert stack.inside([], b"src") is stack
    assert stack.inside([RuleSet(b"# nothing\n\n", "src")], b"src") is stack
    assert stack.pinned(RuleSet(b"", "configuration")) is stack


def test_patterns_and_names_need_not_be_utf_8() -> None:
    stack = IgnoreStack().inside([RuleSet(b"\xff*.py\n", "top")], b"")

    assert stack.ignores(b"\xff\xfe.py", directory=False)
    assert not stack.ignores("ÿ.py".encode(), directory=False)
    assert decided(stack, "a") is None


def test_more_rules_than_fit_into_one_expression_are_all_asked_and_the_last_wins() -> None:
    lines = [f"*{number}?.py" for number in range(1000)]
    stack = IgnoreStack().inside([RuleSet("\n".join([*lines, "!*7?.py"]).encode(), "top")], b"")

    assert decided(stack, "x123y.py") == "top:124:*123?.py"
    assert decided(stack, "x3y.py") == "top:4:*3?.py"
    assert decided(stack, "x7y.py") == "top:1001:!*7?.py"
