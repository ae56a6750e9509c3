"""Single patterns against git, and against patterns that are meant to hang a matcher."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from semindex.core.wildmatch import literal_length, translate
from tests.core.ignore_trees import Repository, pattern_disagreements, random_patterns, short_patterns


def matches(pattern: bytes, subject: bytes, *, pathname: bool = True) -> bool:
    expression = translate(pattern, pathname=pathname)
    return expression is not None and re.fullmatch(expression, subject, re.DOTALL) is not None


def test_every_pattern_of_two_pieces_matches_what_it_matches_in_git(git_repository: Path) -> None:
    assert pattern_disagreements(Repository(git_repository), short_patterns()) == []


def test_longer_patterns_match_what_they_match_in_git(git_repository: Path) -> None:
    """A sample; ``qualification.fuzz_ignore`` takes others for as long as one likes."""
    assert pattern_disagreements(Repository(git_repository), random_patterns(500, seed=7)) == []


@pytest.fixture
def patience() -> Iterator[None]:
    """Interrupt a match that takes exponential time, which no task could."""

    def give_up(signum: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize(
    ("pattern", "subject"),
    [
        (b"*a" * 60 + b"b", b"a" * 250),
        (b"*[a-c]?" * 40 + b"d", b"abc" * 80),
        (b"**/" + b"*a*a/**/" * 20 + b"b", b"/".join([b"aaaa"] * 500)),
        (b"**\\/a/" * 30 + b"b", b"/".join([b"a"] * 1000)),
        (b"**/*/" * 30 + b"b", b"/".join([b"a"] * 1000)),
        (b"*/" * 200 + b"*b*b*b", b"/".join([b"bb"] * 200) + b"/" + b"b" * 200 + b"a"),
    ],
)
def test_no_pattern_takes_exponential_time(pattern: bytes, subject: bytes) -> None:
    assert not matches(pattern, subject)


def test_a_question_mark_is_one_byte_of_a_name() -> None:
    name = "ü.ts".encode()

    assert matches(b"??.ts", name)
    assert not matches(b"?.ts", name)


def test_a_name_may_hold_a_line_feed() -> None:
    assert matches(b"a*b", b"a\n\nb")
    assert matches(b"**/b", b"a\n/b")


@pytest.mark.parametrize("pattern", [b"a\\", b"[a", b"[[:nope:]]", b"x[/]y"])
def test_a_pattern_that_can_match_nothing_has_no_expression(pattern: bytes) -> None:
    assert translate(pattern, pathname=True) is None


def test_the_literal_part_of_a_pattern_ends_at_the_first_special_byte() -> None:
    assert [literal_length(pattern) for pattern in (b"", b"a/b", b"ab*", b"a\\b", b"?", b"a[")] == [0, 3, 2, 1, 0, 1]
