"""The queue over trees that no grammar would give."""

from collections.abc import Sequence
from itertools import pairwise

from attrs import field, frozen
from hypothesis import given
from hypothesis import strategies as st

from semindex.core.collector import MAX_UNITS, MIN_UNITS, ChunkCollector
from semindex.core.nodequeue import Node, chunk_nodes
from semindex.model.chunks import Chunk
from semindex.model.profiles import ChunkingProfile

TEXT = "\n".join(f"{number:03d} {'x' * 35}" for number in range(100))
"""A hundred lines of 39 units and a line feed."""


@frozen
class Place:
    row: int


@frozen
class Fake:
    """A node over TEXT by its first and last unit."""

    start: int
    end: int
    type: str = "node"
    children: "Sequence[Fake]" = field(default=(), eq=False)
    name: "Fake | None" = field(default=None, eq=False)
    parent: Node | None = None

    @property
    def start_byte(self) -> int:
        return self.start * 2

    @property
    def end_byte(self) -> int:
        return self.end * 2

    @property
    def start_point(self) -> Place:
        return Place(TEXT.count("\n", 0, self.start))

    @property
    def end_point(self) -> Place:
        return Place(TEXT.count("\n", 0, self.end))

    def child_by_field_name(self, name: str, /) -> "Fake | None":
        return self.name if name == "name" else None


@frozen
class OneLine(Fake):
    """A node over a text without line feeds."""

    @property
    def start_point(self) -> Place:
        return Place(0)

    @property
    def end_point(self) -> Place:
        return Place(0)


def chunked(*nodes: Fake, profile: ChunkingProfile = ChunkingProfile.KILO) -> list[Chunk]:
    collector = ChunkCollector("/tree/a", profile)
    chunk_nodes(TEXT, nodes, lambda node: node.children, collector)
    return collector.chunks


def test_sizes_decide_between_dropped_chunk_and_split() -> None:
    assert chunked(Fake(0, MIN_UNITS - 1, children=[Fake(0, 49)])) == []
    assert [chunk.text for chunk in chunked(Fake(5, 55))] == [TEXT[5:55]]
    assert [chunk.text for chunk in chunked(Fake(0, MAX_UNITS, children=[Fake(0, 60)]))] == [TEXT[:MAX_UNITS]]
    assert [chunk.text for chunk in chunked(Fake(0, MAX_UNITS + 1, children=[Fake(0, 60)]))] == [TEXT[:60]]


def test_a_long_node_without_children_is_chunked_by_lines_of_its_own() -> None:
    chunks = chunked(Fake(390, 2600, "comment"))
    assert [(chunk.type, chunk.start_line, chunk.end_line) for chunk in chunks] == [
        ("comment", 10, 38),
        ("comment", 39, 66),
    ]
    assert "".join(chunk.text + "\n" for chunk in chunks) == TEXT[390:2600] + "\n"


def test_children_wait_at_the_end_of_the_queue() -> None:
    long = Fake(0, 2000, children=[Fake(0, 60, "child"), Fake(60, 1900, children=[Fake(70, 130, "grandchild")])])
    assert [chunk.type for chunk in chunked(long, Fake(2000, 2060, "sibling"))] == ["sibling", "child", "grandchild"]


def test_the_identifier_is_the_field_name_or_the_first_identifier_among_the_children() -> None:
    name = Fake(4, 8)
    first = Fake(10, 14, "identifier")
    children = [Fake(0, 1), first, Fake(20, 22, "identifier")]
    assert chunked(Fake(0, 60, children=children, name=name))[0].identifier == TEXT[4:8]
    assert chunked(Fake(0, 60, children=children))[0].identifier == TEXT[10:14]
    assert chunked(Fake(0, 60))[0].identifier is None


def test_a_node_that_ends_with_a_line_feed_is_recorded_up_to_the_next_line() -> None:
    kilo, extended = (chunked(Fake(0, 80), profile=profile)[0] for profile in ChunkingProfile)
    assert TEXT[79] == "\n"
    assert (kilo.end_line, extended.end_line) == (3, 2)
    assert kilo.segment_hash == extended.segment_hash


def test_nodes_at_the_same_place_give_one_chunk_and_the_first_gives_its_type() -> None:
    assert [chunk.type for chunk in chunked(Fake(0, 60, "outer"), Fake(0, 60, "inner"))] == ["outer"]


def test_of_different_texts_with_the_same_identity_the_first_stays() -> None:
    text = ("y" * 100 + "a" * 20 + " ") + ("y" * 100 + "b" * 20)
    collector = ChunkCollector("/tree/a", ChunkingProfile.KILO)
    chunk_nodes(text, [OneLine(0, 120), OneLine(121, 241)], lambda node: node.children, collector)
    assert [chunk.text for chunk in collector.chunks] == [text[:120]]


def test_a_node_is_split_once_however_often_it_is_met() -> None:
    node = Fake(0, 60)
    for size in range(1200, 1400):
        node = Fake(0, size, children=[node, node])
    splits = []

    def children(node: Node) -> Sequence[Node]:
        splits.append(node)
        return node.children

    collector = ChunkCollector("/tree/a", ChunkingProfile.KILO)
    chunk_nodes(TEXT, [node, node], children, collector)
    assert len(splits) == 200
    assert len(collector.chunks) == 1


def nodes(start: int, end: int, depth: int) -> st.SearchStrategy[Fake]:
    """Draw trees as parsers give them: children lie in order within their parent."""
    if depth == 0 or end - start < 2:
        return st.just(Fake(start, end))

    @st.composite
    def tree(draw: st.DrawFn) -> Fake:
        borders = sorted(draw(st.lists(st.integers(start, end), max_size=6)))
        children = [draw(nodes(a, b, depth - 1)) for a, b in pairwise(borders)]
        return Fake(start, end, children=children)

    return tree()


@given(st.lists(nodes(0, len(TEXT), 3) | nodes(500, 3000, 3), max_size=4), st.sampled_from(ChunkingProfile))
def test_every_chunk_is_a_part_of_the_text_of_the_right_size(trees: list[Fake], profile: ChunkingProfile) -> None:
    for chunk in chunked(*trees, profile=profile):
        lines = TEXT.split("\n")[chunk.start_line - 1 : chunk.end_line]
        if profile is ChunkingProfile.EXTENDED:
            assert chunk.text in "\n".join(lines) + "\n"
        assert chunk.text in TEXT
        assert MIN_UNITS - 1 <= chunk.length <= MAX_UNITS
