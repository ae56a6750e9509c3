"""What may be put on a terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semindex.terminal import SHOWN_LINES, WIDTH, excerpt, printable


@given(st.text())
def test_nothing_that_is_printed_moves_the_cursor_but_a_tab(text: str) -> None:
    shown = printable(text)

    assert len(shown) == len(text)
    assert all(char == "\t" or unicodedata.category(char)[0] not in "CZ" or char == " " for char in shown)


def test_what_can_be_shown_stays_as_it_is() -> None:
    assert printable("größer\t中文 ✓") == "größer\t中文 ✓"
    assert printable("a\x1b[2Jb\r\n\x9b\u202ec") == "a\ufffd[2Jb\ufffd\ufffd\ufffd\ufffdc"


@given(st.text())
def test_an_excerpt_is_small_whatever_the_chunk_is(chunk: str) -> None:
    lines = list(excerpt(chunk))

    assert len(lines) <= SHOWN_LINES
    assert all(line.startswith("    ") and line.strip() and len(line) <= WIDTH + 4 for line in lines)


@pytest.mark.parametrize(
    ("chunk", "shown"),
    [
        pytest.param(
            "def deep(self):\n\n        if self:\n            return 1\n        return 2\n",
            ["def deep(self):", "    if self:", "        return 1"],
            id="a body stays within its head",
        ),
        pytest.param(
            "deep(self) {\n        return 1;\n    }\n",
            ["deep(self) {", "    return 1;", "}"],
            id="what closes is as deep as what it closes",
        ),
        pytest.param(
            "@cached\n    def deep(self):\n        return 1\n",
            ["@cached", "def deep(self):", "    return 1"],
            id="a decorator is as deep as what it decorates",
        ),
        pytest.param("    a = 1\n    b = 2\n", ["a = 1", "b = 2"], id="lines have their depth in common"),
        pytest.param("# Title\n\nA text.\n", ["# Title", "A text."], id="prose is flat"),
    ],
)
def test_an_excerpt_leaves_out_blank_lines_and_the_common_depth(chunk: str, shown: list[str]) -> None:
    assert list(excerpt(chunk)) == [f"    {line}" for line in shown]
