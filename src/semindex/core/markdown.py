"""Chunking of Markdown by its headings; knows no fences, comments or front matter."""

import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from semindex.core.collector import MAX_UNITS, MIN_UNITS, ChunkCollector
from semindex.core.lines import chunk_lines

BLANKS = "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""White space as JavaScript has it: with the byte order mark, without U+001C to U+001F and U+0085."""

_ATX = re.compile(rf"(#{{1,6}})[{BLANKS}]+([^\n\r\u2028\u2029]+)")
_UNDERLINE = re.compile(rf"(={{3,}}|-{{3,}})[{BLANKS}]*")
_UNDERLINED = re.compile(rf"[{BLANKS}]*[^#<>!\[\]`\t]+.", re.DOTALL)


@frozen
class _Heading:
    line: int
    """Index of the first line of its section."""
    level: int
    text: str


def chunk_markdown(lines: Sequence[str], chunks: ChunkCollector) -> None:
    """Chunk a Markdown text, given as its lines (split at line feeds), section by section."""
    headings = list(_headings(lines))
    ends = [heading.line for heading in headings] + [len(lines)]
    _chunk_section(lines[: ends[0]], 1, "markdown_content", None, chunks)
    for heading, end in zip(headings, ends[1:], strict=True):
        section = lines[heading.line : end]
        _chunk_section(section, heading.line + 1, f"markdown_header_h{heading.level}", heading.text, chunks)


def _headings(lines: Sequence[str]) -> Iterator[_Heading]:
    for index, line in enumerate(lines):
        if atx := _ATX.fullmatch(line):
            yield _Heading(index, len(atx[1]), atx[2].strip(BLANKS))
        elif index and (underline := _UNDERLINE.fullmatch(line)) and _UNDERLINED.fullmatch(lines[index - 1]):
            yield _Heading(index - 1, 1 if underline[1][0] == "=" else 2, lines[index - 1].strip(BLANKS))


def _chunk_section(
    lines: Sequence[str], first_line: int, type_: str, identifier: str | None, chunks: ChunkCollector
) -> None:
    text = "\n".join(lines)
    if len(text.strip(BLANKS)) < MIN_UNITS:
        return
    if len(text) > MAX_UNITS:  # no line of a shorter text can be too long
        chunk_lines(lines, first_line, type_, identifier, chunks)
    else:
        span = (first_line, first_line + len(lines) - 1)
        chunks.add(text, type_, identifier, span, span)
