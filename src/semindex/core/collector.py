"""The chunks of one file while they are being made.

Owns what every route of chunking shares: the sizes, the identity of a chunk, and the rule
that of two chunks of one file with the same identity the first stays. All texts are unit texts (see
:mod:`semindex.core.utf16`).
"""

from semindex.core.utf16 import from_units
from semindex.model.chunks import Chunk
from semindex.model.ids import piece_hash, segment_hash
from semindex.model.profiles import ChunkingProfile

MIN_UNITS = 50
"""Anything shorter is not worth a chunk of its own."""

MAX_UNITS = 1150
"""A chunk may have 1000 units and 15 % more; what is longer is split."""

PREVIEW_UNITS = 100
"""So much of a chunk's beginning enters its identity."""

MAX_TOTAL_UNITS = 16 * 1_048_576
"""A file's chunks hold no more text than this. They overlap: real files come to some three times their length, but a
megabyte of nested brackets would come to three hundred times."""


class TooMuchText(Exception):
    """The chunks of one file overlap so often that they cannot be kept."""


class ChunkCollector:
    """Collects a file's chunks in the order in which they are found; raises TooMuchText."""

    def __init__(self, path: str, profile: ChunkingProfile) -> None:
        self._path = path
        """Enters the identities: the file's absolute path wherever an index is shared with the reference."""
        self._true_lines = profile is ChunkingProfile.EXTENDED
        self.clear()

    def clear(self) -> None:
        """Forget every chunk."""
        self.chunks: list[Chunk] = []
        self._seen: set[str] = set()
        self._total = 0

    def add(
        self, units: str, type_: str, identifier: str | None, recorded: tuple[int, int], true: tuple[int, int]
    ) -> None:
        """Add a chunk.

        ``recorded`` are the first and last line as the reference engine has them, which are hashed; ``true`` those on
        which the text really stands; both count from 1.
        """
        length = len(units)
        identity = segment_hash(self._path, *recorded, length, units[:PREVIEW_UNITS])
        self._keep(identity, units, type_, identifier, true if self._true_lines else recorded)

    def add_piece(self, units: str, type_: str, identifier: str | None, line: int, offset: int) -> None:
        """Add a piece of an over-long line that begins at unit ``offset`` of the line."""
        identity = piece_hash(self._path, line, offset, len(units), units[:PREVIEW_UNITS])
        self._keep(identity, units, type_, identifier, (line, line))

    def _keep(self, identity: str, units: str, type_: str, identifier: str | None, lines: tuple[int, int]) -> None:
        if identity in self._seen:
            return
        self._seen.add(identity)
        self._total += len(units)
        if self._total > MAX_TOTAL_UNITS:
            raise TooMuchText
        name = None if identifier is None else from_units(identifier)
        self.chunks.append(Chunk(from_units(units), *lines, len(units), identity, type_, name))
