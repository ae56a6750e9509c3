"""Printing a result: for people on a terminal, as JSON elsewhere."""

import json
import re
import sys
from typing import Any

from indexctl.commands import Result

_UNPRINTABLE = re.compile(r"[^\n -~]")


def print_result(result: Result, *, as_json: bool) -> None:
    """Print a result on standard output: for people if that is a terminal, unless JSON is asked for."""
    if as_json:
        sys.stdout.write(json_text(result.value, compact=True))
    elif sys.stdout.isatty():
        # Slow to import, and of no use to scripts.
        from indexctl.views import show

        show(result)
    else:
        sys.stdout.write(json_text(result.value, compact=False))


def json_text(value: Any, *, compact: bool) -> str:
    """Return a value as JSON in which nothing moves a terminal's cursor, its last line ended."""
    layout: dict[str, Any] = {"separators": (",", ":")} if compact else {"indent": 2}
    text = json.dumps(value, ensure_ascii=False, **layout)
    return _UNPRINTABLE.sub(_escape, text) + "\n"


def _escape(match: re.Match[str]) -> str:
    """Return a character of a string as JSON may write it, too, unless it can be shown as it is."""
    char = match.group()
    return char if char.isprintable() else json.dumps(char)[1:-1] if char != "\x7f" else "\\u007f"
