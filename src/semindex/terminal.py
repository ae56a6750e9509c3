"""What of repositories and answers is put on a terminal: nothing that would move its cursor, and no more than fits."""

import textwrap
from collections.abc import Iterator

SHOWN_LINES = 3
"""Lines of each match that are shown."""
WIDTH = 110
"""Characters of each line that are shown."""


def printable(text: str) -> str:
    """Return text without what would move a terminal's cursor: a repository must not be able to paint on the screen."""
    return "".join(char if char == "\t" or char.isprintable() else "\ufffd" for char in text)


def excerpt(chunk: str) -> Iterator[str]:
    """Yield the first lines of a chunk that are not blank, as deep as they stand to each other, indented by four."""
    # A chunk begins at its first token, so that only the lines after the first tell how deep it stands.
    first, _, rest = chunk.strip("\n").partition("\n")
    lines = [line for line in (first.strip(), *textwrap.dedent(rest).splitlines()) if line.strip()]
    for line in lines[:SHOWN_LINES]:
        yield f"    {printable(line.rstrip())[:WIDTH]}"
