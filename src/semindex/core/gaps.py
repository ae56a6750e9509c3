"""Gap chunks of the extended profile: the lines of a file that lie in no other chunk."""

from collections.abc import Iterable, Iterator, Sequence

from semindex.core.collector import MIN_UNITS, ChunkCollector
from semindex.core.lines import chunk_lines
from semindex.model.chunks import Chunk

GAP = "gap"


def chunk_gaps(lines: Sequence[str], chunks: ChunkCollector) -> None:
    """Chunk by lines what no chunk collected so far covers; needs true line numbers.

    Runs of fewer than 50 units, blanks at either end not counted, are left out.
    """
    for first, end in list(uncovered_runs(lines, chunks.chunks)):
        run = lines[first:end]
        if len("\n".join(run).strip()) >= MIN_UNITS:
            chunk_lines(run, first + 1, GAP, None, chunks)


def uncovered_runs(lines: Sequence[str], chunks: Iterable[Chunk]) -> Iterator[tuple[int, int]]:
    """Return the runs of lines that are in no chunk, without blank lines at either end, as half-open index ranges."""
    covered = bytearray(len(lines))
    for chunk in chunks:
        covered[chunk.start_line - 1 : chunk.end_line] = b"\1" * (chunk.end_line - chunk.start_line + 1)
    first = 0
    while (first := covered.find(0, first)) >= 0:
        end = covered.find(1, first)
        if end < 0:
            end = len(lines)
        following = end
        while first < end and not lines[first].strip():
            first += 1
        while first < end and not lines[end - 1].strip():
            end -= 1
        if first < end:
            yield first, end
        first = following
