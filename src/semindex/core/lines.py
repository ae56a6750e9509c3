"""Chunking by lines: for files without a grammar, and for what a grammar cannot split."""

from collections.abc import Sequence

from semindex.core.collector import MAX_UNITS, MIN_UNITS, ChunkCollector

FALLBACK = "fallback_chunk"
"""Type of a chunk of a file that was chunked by nothing but its lines."""

PIECE_UNITS = 1000
"""An over-long line is cut every so many units."""

MIN_REMAINDER_UNITS = 200
"""A rest shorter than this makes the reference move the recorded border before it."""


def chunk_lines(
    lines: Sequence[str], first_line: int, type_: str, identifier: str | None, chunks: ChunkCollector
) -> None:
    """Chunk consecutive lines (a text split at line feeds); ``first_line`` is the first one's number in the file."""
    start = recorded_start = 0
    weight = 0
    last = len(lines) - 1

    def close(end: int, recorded_end: int) -> None:
        if weight >= MIN_UNITS:
            text = "\n".join(lines[start : end + 1])
            recorded = (first_line + recorded_start, first_line + recorded_end)
            chunks.add(text, type_, identifier, recorded, (first_line + start, first_line + end))

    for index, line in enumerate(lines):
        line_weight = len(line) + (index < last)
        if line_weight > MAX_UNITS:
            close(index - 1, index - 1)
            for offset in range(0, len(line), PIECE_UNITS):
                piece = line[offset : offset + PIECE_UNITS]
                chunks.add_piece(piece, f"{type_}_segment", identifier, first_line + index, offset)
            start = recorded_start = index + 1
            weight = 0
            continue
        if weight and weight + line_weight > MAX_UNITS:
            recorded_end = index - 1 if weight < MIN_UNITS else _recorded_end(lines, start, index)
            close(index - 1, recorded_end)
            start, recorded_start = index, recorded_end + 1
            weight = 0
        weight += line_weight
    close(last, last)


def _recorded_end(lines: Sequence[str], start: int, index: int) -> int:
    """Return the last line that the reference records for the chunk of the lines from ``start`` to before ``index``.

    Before a short rest it moves the border up, so that the next chunk seems longer: the numbers move, the text of
    neither chunk does (docs/parity.md). The numbers enter the identity of both.
    """
    remainder = -1  # the last line has no line feed
    for line in lines[index : index + MIN_REMAINDER_UNITS + 1]:
        remainder += len(line) + 1
    if remainder >= MIN_REMAINDER_UNITS:
        return index - 1
    tail = remainder + 1 + len(lines[index - 1]) + 1
    head = sum(len(line) + 1 for line in lines[start : index - 1])
    for border in range(index - 2, start - 1, -1):
        if head < MIN_UNITS:
            break
        if tail >= MIN_REMAINDER_UNITS:
            return border
        head -= len(lines[border]) + 1
        tail += len(lines[border]) + 1
    return index - 1
