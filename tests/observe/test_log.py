"""Log lines: one each, and nothing in them that is secret."""

import json
import logging
import sys

import pytest

from semindex.observe.log import JsonFormatter, TextFormatter, redact


def record(message: str, *, error: Exception | None = None) -> logging.LogRecord:
    information = None
    if error is not None:
        try:
            raise error
        except type(error):
            information = sys.exc_info()
    return logging.LogRecord("semindex.test", logging.WARNING, __file__, 1, message, None, information)


@pytest.mark.parametrize(("text", "shown"), [
    ("https://me:secret@example.com/path is away", "https://…@example.com/path is away"),
    ("http://key@[::1]:6333", "http://…@[::1]:6333"),
    ("Authorization: Bearer abc.def-ghi next", "Authorization: Bearer … next"),
    ("bearer   abc", "bearer   …"),
    ("mail me@example.com", "mail me@example.com"),
])  # fmt: skip
def test_credentials_are_taken_out(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_a_json_line_is_one_object_whatever_the_message_holds() -> None:
    line = JsonFormatter().format(record('two\nlines, "quotes" and Bearer abc'))

    assert "\n" not in line
    entry = json.loads(line)
    assert entry.pop("time").endswith("+00:00")
    assert entry == {"level": "warning", "logger": "semindex.test", "message": 'two\nlines, "quotes" and Bearer …'}


def test_a_traceback_comes_along_without_credentials() -> None:
    entry = json.loads(JsonFormatter().format(record("failed", error=ValueError("http://me:secret@example.com"))))

    assert "ValueError: http://…@example.com" in entry["traceback"]


def test_a_line_for_people_cannot_be_faked_by_what_it_quotes() -> None:
    line = TextFormatter().format(record("path \x1b[2J\r\n12:00:00 ERROR   all is lost", error=ValueError("x")))

    first, _, rest = line.partition("\n")
    assert first.endswith("WARNING path \ufffd[2J\ufffd\ufffd12:00:00 ERROR   all is lost")
    assert rest.startswith("Traceback")
