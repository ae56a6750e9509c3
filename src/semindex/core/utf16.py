"""Text as the reference engine counts it: in UTF-16 code units.

A *unit text* is a ``str`` with one character per code unit: characters beyond U+FFFF are split into their surrogate
pairs. Lengths, offsets and slices of it are then those of UTF-16, by plain ``len`` and ``[a:b]``. Most texts have no
such characters and are their own unit text.
"""

import re

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def to_units(text: str) -> str:
    """Return the unit text of a text; the same object if it needs no change."""
    return text if text.isascii() else _ASTRAL.sub(_split, text)


def from_units(units: str) -> str:
    """Return the text of a unit text; a surrogate that a cut has left alone stays as it is."""
    return units if units.isascii() else _PAIR.sub(_join, units)


def encode(units: str) -> bytes:
    """Return a unit text as UTF-16LE: unit *n* is bytes 2n and 2n + 1."""
    return units.encode("utf-16-le", "surrogatepass")


def _split(match: re.Match[str]) -> str:
    above = ord(match[0]) - 0x10000
    return chr(0xD800 + (above >> 10)) + chr(0xDC00 + (above & 0x3FF))


def _join(match: re.Match[str]) -> str:
    return match[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")
