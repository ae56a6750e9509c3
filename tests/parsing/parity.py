"""The goldens of the parity kit (tests/fixtures/parity), and how a result compares with them."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from attrs import frozen

from semindex.model.ids import well_formed
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.chunker import Cut, chunk_text

KIT = Path(__file__).parent.parent / "fixtures" / "parity"

Row = tuple[int, int, int, str, str, str, str | None]
"""First line, last line, length, beginning of the text's hash, segment hash, type, identifier."""


class Agreement(StrEnum):
    """How a file's chunks compare with the reference's."""

    IDENTICAL = "identical"
    """The same in every field, in the same order."""
    CONTENT_EQUAL = "content-equal"
    """The same lines, texts and hashes; order, types or identifiers differ, which no store or result shows."""
    DIFFERENT = "different"


@frozen
class Golden:
    """What the reference makes of one file."""

    path: str
    file_hash: str
    handling: str
    results: tuple[tuple[Row, ...], ...]
    """One, except where the reference itself has several."""

    @classmethod
    def of(cls, line: str) -> "Golden":
        """Read a line of the kit."""
        record: dict[str, Any] = json.loads(line)
        results = [record["chunks"], *record.get("alternates", ())]
        rows = tuple(tuple(tuple(row) for row in result) for result in results)
        return cls(record["path"], record["fileHash"], record["handling"], rows)

    @property
    def data(self) -> bytes:
        """Return the file's bytes."""
        return (KIT / self.path).read_bytes()

    @property
    def text(self) -> str:
        """Return the text as the reference reads it: whatever the bytes are, as UTF-8."""
        return self.data.decode("utf-8", "replace")


@cache
def goldens() -> Mapping[str, Golden]:
    """Return all goldens by path."""
    lines = (KIT / "goldens.jsonl").read_text(encoding="utf-8").splitlines()
    return {golden.path: golden for golden in map(Golden.of, lines)}


def rows(cut: Cut) -> tuple[Row, ...]:
    """Return chunks as the kit writes them."""
    return tuple(
        (
            chunk.start_line,
            chunk.end_line,
            chunk.length,
            hashlib.sha256(well_formed(chunk.text).encode()).hexdigest()[:16],
            chunk.segment_hash,
            chunk.type,
            chunk.identifier,
        )
        for chunk in cut.chunks
    )


@cache
def agreement(path: str) -> Agreement:
    """Chunk a file of the kit as the reference does and compare."""
    golden = goldens()[path]
    result = rows(chunk_text(golden.text, path, ChunkingProfile.KILO))
    if result in golden.results:
        return Agreement.IDENTICAL
    if _content(result) in map(_content, golden.results):
        return Agreement.CONTENT_EQUAL
    return Agreement.DIFFERENT


def _content(result: Sequence[Row]) -> Counter[tuple[int, int, str, str]]:
    return Counter((start, end, text, segment) for start, end, _, text, segment, *_ in result)


def figures() -> dict[str, Counter[Agreement]]:
    """Return how many files of each handling agree how well, for the whole kit."""
    table: dict[str, Counter[Agreement]] = {}
    for golden in goldens().values():
        table.setdefault(golden.handling, Counter())[agreement(golden.path)] += 1
    return dict(sorted(table.items()))
