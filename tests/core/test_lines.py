from hypothesis import given
from hypothesis import strategies as st

from semindex.core.collector import MAX_UNITS, MIN_UNITS, ChunkCollector
from semindex.core.lines import chunk_lines
from semindex.model.chunks import Chunk
from semindex.model.ids import piece_hash, segment_hash
from semindex.model.profiles import ChunkingProfile


def chunked(lines: list[str], profile: ChunkingProfile = ChunkingProfile.EXTENDED, first_line: int = 1) -> list[Chunk]:
    collector = ChunkCollector("/tree/a", profile)
    chunk_lines(lines, first_line, "kind", "name", collector)
    return collector.chunks


def spans(chunks: list[Chunk]) -> list[tuple[int, int]]:
    return [(chunk.start_line, chunk.end_line) for chunk in chunks]


def test_lines_are_collected_until_the_next_would_be_too_much() -> None:
    chunks = chunked(["a" * 99] * 30)
    assert spans(chunks) == [(1, 11), (12, 22), (23, 30)]
    assert chunks[0].text == "\n".join(["a" * 99] * 11)
    assert {(chunk.type, chunk.identifier) for chunk in chunks} == {("kind", "name")}


def test_lines_count_from_the_given_one() -> None:
    (chunk,) = chunked(["a" * 60], first_line=7)
    assert (chunk.start_line, chunk.end_line) == (7, 7)
    assert chunk.segment_hash == segment_hash("/tree/a", 7, 7, 60, "a" * 60)


def test_the_last_line_weighs_no_line_feed() -> None:
    assert chunked(["a" * 49]) == []
    assert spans(chunked(["a" * 50])) == [(1, 1)]
    assert spans(chunked(["a" * 49, ""])) == [(1, 2)]


def test_a_remainder_that_is_too_light_is_dropped() -> None:
    assert spans(chunked(["a" * 1100, "b" * 40])) == [(1, 2)]
    assert spans(chunked(["a" * 1148, "b" * 40])) == [(1, 1)]


def test_an_over_long_line_is_cut_into_pieces_of_a_thousand_units() -> None:
    long = "".join(chr(97 + index % 26) for index in range(2010))
    before, *pieces, after = chunked(["x" * 60, long, "y" * 60])
    assert (before.text, after.text) == ("x" * 60, "y" * 60)
    assert [piece.text for piece in pieces] == [long[:1000], long[1000:2000], long[2000:]]
    assert spans(pieces) == [(2, 2)] * 3
    assert pieces[2].segment_hash == piece_hash("/tree/a", 2, 2000, 10, long[2000:])
    assert {piece.type for piece in pieces} == {"kind_segment"}


def test_a_line_is_over_long_with_its_line_feed() -> None:
    assert [chunk.type for chunk in chunked(["a" * 1149, "b"])] == ["kind"]
    assert [chunk.type for chunk in chunked(["a" * 1150, "b"])] == ["kind_segment"] * 2
    assert [chunk.type for chunk in chunked(["a" * 1150])] == ["kind"]


SHORT_REST = ["a" * 999, "b" * 80, "c" * 40, "d" * 60, "e" * 100]
"""The fourth line does not fit to the first three, and begins a short rest."""


def test_before_a_short_rest_the_recorded_border_moves_up_and_the_text_does_not() -> None:
    first, second = chunked(SHORT_REST, ChunkingProfile.KILO)
    assert spans([first, second]) == [(1, 2), (3, 5)]
    assert first.text == "\n".join(SHORT_REST[:3])
    assert second.text == "\n".join(SHORT_REST[3:])


def test_the_extended_profile_shows_the_true_lines_under_the_same_identities() -> None:
    kilo, extended = (chunked(SHORT_REST, profile) for profile in ChunkingProfile)
    assert spans(extended) == [(1, 3), (4, 5)]
    assert [chunk.segment_hash for chunk in kilo] == [chunk.segment_hash for chunk in extended]
    assert extended[0].segment_hash == segment_hash("/tree/a", 1, 2, len(extended[0].text), "a" * 100)


lines = st.lists(st.text("ab ", max_size=90) | st.integers(0, 1400).map(lambda size: "x" * size), max_size=60)


@given(lines, st.sampled_from(ChunkingProfile))
def test_no_text_is_lost_but_light_remainders_and_none_is_kept_twice(
    lines: list[str], profile: ChunkingProfile
) -> None:
    collector = _Everything("/tree/a", profile)
    chunk_lines(lines, 1, "kind", None, collector)
    position = 0
    text = "\n".join(lines) + "\n"
    for chunk in [*collector.kept, ""]:
        found = text.index(chunk, position) if chunk else len(text)
        assert len(text[position:found].replace("\n", "")) < MIN_UNITS
        position = found + len(chunk)
    assert all(len(chunk) <= MAX_UNITS for chunk in collector.kept)


class _Everything(ChunkCollector):
    """Keeps chunks with equal identities as well."""

    def __init__(self, path: str, profile: ChunkingProfile) -> None:
        super().__init__(path, profile)
        self.kept: list[str] = []

    def _keep(self, identity: str, units: str, type_: str, identifier: str | None, lines: tuple[int, int]) -> None:
        self.kept.append(units)
