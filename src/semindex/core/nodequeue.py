"""Chunking by syntax: which of the selected nodes, or of their parts, become chunks.

Knows nodes only by their shape; parsing, and choosing the nodes, is the caller's.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from semindex.core.collector import MAX_UNITS, MIN_UNITS, ChunkCollector
from semindex.core.lines import chunk_lines


class Point(Protocol):
    """A place in a text."""

    @property
    def row(self) -> int:
        """Number of line feeds before it."""


class Node(Protocol):
    """A node of a syntax tree over UTF-16LE; two that are the same part of the same tree are equal."""

    @property
    def type(self) -> str:
        """Name of what it is in its grammar."""

    @property
    def start_byte(self) -> int:
        """Offset of its first byte."""

    @property
    def end_byte(self) -> int:
        """Offset after its last byte."""

    @property
    def start_point(self) -> Point:
        """Where it begins."""

    @property
    def end_point(self) -> Point:
        """Where it ends, exclusive."""

    @property
    def children(self) -> "Sequence[Node]":
        """All its children, named and anonymous."""

    @property
    def parent(self) -> "Node | None":
        """The node of which it is a child."""

    def child_by_field_name(self, name: str, /) -> "Node | None":
        """Return the first child in a field."""


def chunk_nodes(
    units: str, selected: Iterable[Node], children: Callable[[Node], Sequence[Node]], chunks: ChunkCollector
) -> None:
    """Chunk the selected nodes of a unit text in their order; ``children`` says into what a node may be split."""
    queue = deque(selected)
    done: set[tuple[int, int]] = set()
    split: set[Node] = set()
    while queue:
        node = queue.popleft()
        start, end = node.start_byte >> 1, node.end_byte >> 1
        if end - start < MIN_UNITS:
            continue
        if end - start <= MAX_UNITS:
            # A chunk's identity depends on where it stands and nothing else of its node: no need to work it out twice.
            if (start, end) not in done:
                done.add((start, end))
                _add(units, start, end, node, chunks)
        elif node not in split:
            # Splitting a node again would give nothing but chunks that are there: deep nesting would cost its square.
            split.add(node)
            parts = children(node)
            queue.extend(parts)
            if not parts:
                lines = units[start:end].split("\n")
                chunk_lines(lines, node.start_point.row + 1, node.type, _identifier(units, node), chunks)


def _add(units: str, start: int, end: int, node: Node, chunks: ChunkCollector) -> None:
    first, last = node.start_point.row + 1, node.end_point.row + 1
    true_last = last
    if last > first and units[end - 1] == "\n":
        # The reference counts a node that ends with its line as reaching into the next one.
        true_last = last - 1
    chunks.add(units[start:end], node.type, _identifier(units, node), (first, last), (first, true_last))


def _identifier(units: str, node: Node) -> str | None:
    name = node.child_by_field_name("name")
    if name is None:
        name = next((child for child in node.children if child.type == "identifier"), None)
    return None if name is None else units[name.start_byte >> 1 : name.end_byte >> 1]
