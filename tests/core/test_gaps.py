from hypothesis import given
from hypothesis import strategies as st

from semindex.core.collector import ChunkCollector
from semindex.core.gaps import chunk_gaps, uncovered_runs
from semindex.model.chunks import Chunk
from semindex.model.profiles import ChunkingProfile

LINE = "a line of exactly fifty units, or so it must be ..."


def covering(*spans: tuple[int, int]) -> list[Chunk]:
    return [Chunk("", start, end, 0, str(index), "kind") for index, (start, end) in enumerate(spans)]


def gaps(lines: list[str], *covered: tuple[int, int]) -> list[tuple[int, int, str]]:
    collector = ChunkCollector("/tree/a", ChunkingProfile.EXTENDED)
    collector.chunks += covering(*covered)
    chunk_gaps(lines, collector)
    return [(chunk.start_line, chunk.end_line, chunk.type) for chunk in collector.chunks[len(covered) :]]


def test_each_run_of_uncovered_lines_is_a_chunk_of_its_own() -> None:
    assert gaps([LINE] * 9, (3, 4), (4, 5), (8, 8)) == [(1, 2, "gap"), (6, 7, "gap"), (9, 9, "gap")]


def test_blank_lines_at_either_end_are_left_out_and_those_within_stay() -> None:
    assert gaps(["", " ", LINE, "", LINE, "\t", ""]) == [(3, 5, "gap")]


def test_a_run_of_fewer_than_fifty_units_without_its_blanks_is_left_out() -> None:
    assert gaps(["x" * 49, LINE, "y" * 20, " " * 60, "z" * 20], (2, 2)) == [(3, 5, "gap")]
    assert gaps(["x" * 49 + " " * 20, LINE, " " * 30 + "y" * 20], (2, 2)) == []


def test_a_long_run_is_chunked_by_lines() -> None:
    assert gaps(["x" * 600] * 3 + ["y" * 1200]) == [
        (1, 1, "gap"),
        (2, 2, "gap"),
        (3, 3, "gap"),
        (4, 4, "gap_segment"),
        (4, 4, "gap_segment"),
    ]


def test_a_text_that_is_covered_has_no_gaps() -> None:
    assert gaps([LINE] * 3, (1, 3)) == []
    assert gaps([""], (1, 1)) == []
    assert gaps([""]) == []


@given(
    st.lists(st.sampled_from(["", "  ", "x", LINE, "y" * 700, "z" * 1300]), min_size=1, max_size=40),
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 5)), max_size=8),
)
def test_afterwards_only_short_runs_are_uncovered(lines: list[str], covered: list[tuple[int, int]]) -> None:
    spans = [(start, min(len(lines), start + more)) for start, more in covered if start <= len(lines)]
    collector = ChunkCollector("/tree/a", ChunkingProfile.EXTENDED)
    collector.chunks += covering(*spans)
    chunk_gaps(lines, collector)
    for chunk in collector.chunks[len(spans) :]:
        assert chunk.text in "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
    for first, end in uncovered_runs(lines, collector.chunks):
        assert len("\n".join(lines[first:end]).strip()) < 50
