"""The static model's tokenizer: identifiers and prose to rows of its table.

A text is cut at case changes, underscores, digits and punctuation; words lose accents and case and become
the longest known pieces. The vocabulary is learned with this module (``training/vocabulary.py``), so a
change here needs a new table.
"""

import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from typing import Final

BUCKETS: Final = 256
"""The table's first rows: unknown characters share them, all but row 0, which stands for a text without any token."""

_LATIN = r"[a-z]+|[A-Z](?:[a-z]+|[A-Z]*(?![a-z]))|\d+"
_ASCII_WORD = re.compile(_LATIN, re.ASCII)
_WORD = re.compile(_LATIN + r"|[^\W\d_a-zA-Z]+")
_LONGEST_WORD = 64
"""Characters of a word that are read."""
_WINDOW = 50_000
"""Characters per call of a regular expression, which keeps the interpreter's lock for about 2 ms then.

A word across a window's edge is read as two; texts of an index are far shorter.
"""
_MEMO_ENTRIES = 50_000
"""Words whose rows are remembered, 20 MB at most. A large repository's words fit; if not, the memo starts over."""


class Tokenizer:
    """Turns texts into rows of a table. Deterministic; may be used by several threads at once."""

    def __init__(self, pieces: Sequence[str]) -> None:
        """``pieces`` are in row order after the buckets; a piece that continues a word begins with ``#``."""
        self._rows = {piece: BUCKETS + row for row, piece in enumerate(pieces)}
        self._longest = max(map(len, pieces), default=1)
        self._memo: dict[str, tuple[int, ...]] = {}

    def rows(self, text: str) -> list[int]:
        """Return the table rows of a text, in order; none for a text without letters and digits."""
        rows: list[int] = []
        memo = self._memo
        for word in _cut(text):
            known = memo.get(word)
            if known is None:
                known = self._pieces(_normal(word))
                if len(word) <= _LONGEST_WORD:
                    self._remember(word, known)
            rows.extend(known)
        return rows

    def _remember(self, word: str, rows: tuple[int, ...]) -> None:
        if len(self._memo) >= _MEMO_ENTRIES:
            self._memo.clear()
        self._memo[word] = rows

    def _pieces(self, word: str) -> tuple[int, ...]:
        rows: list[int] = []
        start = 0
        while start < len(word):
            end, row = self._longest_piece(word, start)
            rows.append(row)
            start = end
        return tuple(rows)

    def _longest_piece(self, word: str, start: int) -> tuple[int, int]:
        mark = "#" if start else ""
        for end in range(min(len(word), start + self._longest), start, -1):
            row = self._rows.get(mark + word[start:end])
            if row is not None:
                return end, row
        return start + 1, 1 + zlib.crc32(word[start].encode("utf-8", "surrogatepass")) % (BUCKETS - 1)


def words(text: str) -> list[str]:
    """Return the lower-case words of a text, as they are before being cut into pieces."""
    return [_normal(word) for word in _cut(text)]


def _normal(word: str) -> str:
    return word.lower()[:_LONGEST_WORD]


def _cut(text: str) -> Iterator[str]:
    for start in range(0, len(text), _WINDOW):
        window = text[start : start + _WINDOW]
        if window.isascii():
            yield from _ASCII_WORD.findall(window)
        else:
            decomposed = unicodedata.normalize("NFKD", window)
            yield from _WORD.findall("".join(c for c in decomposed if not unicodedata.combining(c)))
