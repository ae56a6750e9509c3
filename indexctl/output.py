"""Printing a result: for people on a terminal, as JSON elsewhere."""

import json
import re
import struct
import sys
from typing import Any

from indexctl.commands import Result

_UNSURE = re.compile(r"[^\n -~]")


def print_result(result: Result, *, as_json: bool) -> None:
    """Print a result on standard output: for people if that is a terminal, unless JSON is asked for."""
    if as_json or not sys.stdout.isatty():
        print_json(result.value, compact=as_json)
    else:
        # Slow to import, and of no use to scripts.
        from indexctl.views import show

        show(result)


def print_json(value: Any, *, compact: bool) -> None:
    """Print a value on standard output as JSON that its encoding can hold."""
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    sys.stdout.write(json_text(value, compact=compact, ascii_only=not is_unicode))


def json_text(value: Any, *, compact: bool, ascii_only: bool = False) -> str:
    """Return a value as JSON in which nothing moves a terminal's cursor, its last line ended."""
    layout: dict[str, Any] = {"separators": (",", ":")} if compact else {"indent": 2}
    return _UNSURE.sub(_shown, json.dumps(value, ensure_ascii=ascii_only, **layout)) + "\n"


def _shown(match: re.Match[str]) -> str:
    """Return a character of a JSON string, escaped if it cannot be shown."""
    char = match.group()
    if char.isprintable():
        return char
    units = struct.iter_unpack(">H", char.encode("utf-16-be", "surrogatepass"))
    return "".join(f"\\u{unit:04x}" for (unit,) in units)
