"""What of repositories and answers is put on a terminal: nothing that would move its cursor, and no more than fits."""

import re
import textwrap
from collections.abc import Iterator

SHOWN_LINES = 3
"""Lines of each match that are shown."""
WIDTH = 110
"""Characters of each line that are shown."""
INDENT = "    "
OPENING = (":", ",", "(", "[", "{", "=", "\\", "->", "=>")
"""Ends of a line that the next one is deeper than."""
CLOSING = re.compile(r"[)\]}]|end\b|</")
"""Begins a line that is as deep as the one that it closes."""


def printable(text: str) -> str:
    """Return text without what would move a terminal's cursor: a repository must not be able to paint on the screen."""
    return "".join(char if char == "\t" or char.isprintable() else "\ufffd" for char in text)


def excerpt(chunk: str) -> Iterator[str]:
    """Yield the first lines of a chunk that are not blank, as deep as they stand to each other, indented by four."""
    lines = [line for line in _aligned(chunk.strip("\n")).splitlines() if line.strip()]
    for line in lines[:SHOWN_LINES]:
        yield f"    {printable(line.rstrip())[:WIDTH]}"


def _aligned(chunk: str) -> str:
    first, _, rest = chunk.partition("\n")
    if first[:1].isspace():
        return textwrap.dedent(chunk)
    # A chunk of syntax begins at its first token, so that only the lines after the first tell how deep it stands: as
    # deep as the shallowest of them, unless all are within what the first line opens.
    rest = textwrap.dedent(rest)
    last = rest.rstrip().rpartition("\n")[2]
    if first.rstrip().endswith(OPENING) and not CLOSING.match(last):
        rest = textwrap.indent(rest, INDENT)
    return f"{first}\n{rest}"
