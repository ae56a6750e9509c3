"""What is printed for people and for programs, and that neither can be made to paint on a terminal."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexctl.commands import Result
from indexctl.output import json_text, print_result
from semindex.testing.serving import ServedCell
from tests.indexctl.conftest import Run
from tests.indexctl.terminal import on_terminal

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(VALUES, st.booleans(), st.booleans())
def test_json_is_what_it_was_and_moves_no_cursor(value: Any, compact: bool, ascii_only: bool) -> None:
    text = json_text(value, compact=compact, ascii_only=ascii_only)

    assert json.loads(text) == value
    assert all(char.isprintable() or char == "\n" for char in text)
    assert text.endswith("\n")
    assert text.count("\n") == 1 or not compact
    assert text.isascii() or not ascii_only


def test_characters_that_can_be_shown_stay_as_they_are() -> None:
    assert json_text(["größer 中文"], compact=True) == '["größer 中文"]\n'


def test_programs_get_indented_json_unless_they_ask_for_compact_json(capsys: pytest.CaptureFixture[str]) -> None:
    result = Result("tokens", [{"id": "x"}])
    print_result(result, as_json=False)
    print_result(result, as_json=True)

    assert capsys.readouterr().out == '[\n  {\n    "id": "x"\n  }\n]\n[{"id":"x"}]\n'


def test_people_get_a_table_on_a_terminal_and_json_if_they_ask_for_it(
    indexctl: Run, cell: ServedCell, workspace: Path
) -> None:
    indexctl("register", "--id", "shown", "--path", str(workspace), "--wait", "--timeout", "1m")

    with on_terminal(cell, "list") as client:
        assert client.end() == 0
    assert "shown" in client.output
    assert "{" not in client.output

    with on_terminal(cell, "status", "--id", "shown", "--json") as client:
        assert client.end() == 0
    assert json.loads(client.output)["id"] == "shown"


def test_nothing_in_a_repository_can_paint_on_the_terminal(indexctl: Run, cell: ServedCell, workspace: Path) -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
    name = f"heliotrope{hostile}.py"
    (workspace / name).write_text(f"# Heliotrope authentication validates bearer credentials. {hostile}\n" * 3)
    indexctl("register", "--id", "hostile", "--path", str(workspace), "--wait", "--timeout", "1m")
    query = ("--id", "hostile", "--query", "heliotrope bearer authentication")

    for command in (["search", *query], ["search", *query, "--json"], ["files", "--id", "hostile"]):
        with on_terminal(cell, *command) as client:
            assert client.end() == 0
        assert "heliotrope" in client.output
        for trick in ("\x1b]", "\x07", "\x1b[2J", "\x9b", "\u202e"):
            assert trick not in client.output, command


def test_an_output_of_few_characters_is_no_reason_to_fail(
    indexctl: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "größe.py").write_text("# Heliotrope: Größe der Anmeldung, geprüft.\n" * 3)
    indexctl("register", "--id", "narrow", "--path", str(workspace), "--wait", "--timeout", "1m")
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    done = indexctl("files", "--id", "narrow")

    assert done.code == 0
    assert "größe.py" in [file["path"] for file in json.loads(written.getvalue())]
