"""What may be put on a terminal."""

import unicodedata

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


def test_an_excerpt_leaves_out_blank_lines_and_the_common_depth() -> None:
    chunk = "def deep(self):\n\n        if self:\n            return 1\n        return 2\n"

    assert list(excerpt(chunk)) == ["    def deep(self):", "    if self:", "        return 1"]
