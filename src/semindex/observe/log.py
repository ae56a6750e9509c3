"""Logs: one JSON object a line on standard error, or text for people.

Never file contents, queries, snippets, tokens or URL user-info: errors of ours hold none, foreign messages are passed
through :func:`redact`, and tracebacks show code, not values.
"""

import json
import logging
import re
import sys
from datetime import UTC, datetime
from typing import Literal

LogFormat = Literal["json", "text"]

_USER_INFO = re.compile(r"(\w+://)[^/\s@]+@")
_BEARER = re.compile(r"(?i)(bearer\s+)\S+")


def redact(text: str) -> str:
    """Return text without the user-info of URLs and without credentials of headers."""
    return _BEARER.sub(r"\1…", _USER_INFO.sub(r"\1…@", text))


class JsonFormatter(logging.Formatter):
    """One JSON object per record: time, level, logger, message, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage()),
        }
        if record.exc_info:
            entry["traceback"] = redact(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """A line for people."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, and its traceback below."""
        return redact(super().format(record))

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging gives it
        """Return the line alone, in which no client can fake another one."""
        return "".join(char if char.isprintable() else "\ufffd" for char in super().formatMessage(record))


def configure(log_format: LogFormat, level: str = "info") -> None:
    """Send all logs of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for noisy in ("httpx", "httpx2", "httpcore", "httpcore2", "hypercorn.access", "mcp"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
