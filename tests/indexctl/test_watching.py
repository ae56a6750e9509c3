"""``indexctl watch``: which changes are told, on a terminal and elsewhere, over the end and the return of a cell."""

import json
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from indexctl.watching import LineWatcher
from semindex.testing.serving import ServedCell
from tests.indexctl.conftest import Run
from tests.indexctl.terminal import PROGRAM, on_terminal

ONE: dict[str, Any] = {"id": "one", "state": "Indexing", "message": "…", "processedItems": 0, "totalItems": 10}


def service(*registrations: dict[str, Any], phase: str = "ready") -> dict[str, Any]:
    return {"phase": phase, "message": "Ready.", "registrations": list(registrations)}


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Any:
    """Shows statuses one after the other and returns what is told of the last one, without the time."""
    watcher = LineWatcher(as_json=False)

    def show(*statuses: dict[str, Any] | str) -> list[str]:
        for status in statuses:
            capsys.readouterr()
            if isinstance(status, str):
                watcher.remark(status)
            else:
                watcher.show(status)
        return [re.sub(r"^\d\d:\d\d:\d\d ", "", line) for line in capsys.readouterr().out.splitlines()]

    return show


def test_the_first_look_tells_of_everything(told: Any) -> None:
    assert told(service(ONE)) == ["service ready Ready.", "one Indexing …"]


def test_what_has_not_changed_is_not_told_again(told: Any) -> None:
    assert told(service(ONE), service(ONE)) == []


def test_progress_is_told_by_fifths(told: Any) -> None:
    told(service(ONE))
    lines = [told(service(ONE | {"processedItems": done})) for done in range(1, 10)]

    assert [bool(each) for each in lines] == [False, True, False, True, False, True, False, True, False]


def test_a_change_of_state_is_told_and_a_release(told: Any) -> None:
    indexed = ONE | {"state": "Indexed", "message": "Index up-to-date."}

    assert told(service(ONE), service(indexed)) == ["one Indexed Index up-to-date."]
    assert told(service()) == ["one released"]


def test_an_outage_is_told_once_and_so_is_its_end(told: Any) -> None:
    told(service(ONE))

    assert told("It is away.") == ["service unreachable It is away."]
    assert told("It is away.") == []
    assert told(service(ONE)) == ["service ready Ready."]


def test_a_message_cannot_begin_a_line_of_its_own(told: Any) -> None:
    assert told(service(), service(ONE | {"message": "a\nb\x1b[2J"})) == ["one Indexing a\ufffdb\ufffd[2J"]


def test_changes_are_followed_as_they_happen_until_the_time_is_up(
    indexctl: Run, cell: ServedCell, workspace: Path
) -> None:
    with subprocess.Popen(
        [*PROGRAM, "watch", "--json"], env=cell.client_environment, stdout=subprocess.PIPE, text=True
    ) as watching:
        try:
            assert watching.stdout is not None
            assert json.loads(watching.stdout.readline())["phase"] == "ready"
            indexctl("register", "--id", "watched", "--path", str(workspace))
            for line in watching.stdout:
                change = json.loads(line)
                if change.get("id") == "watched" and change["state"] == "Indexed":
                    break
            indexctl("release", "--id", "watched")
            while "released" not in (change := json.loads(watching.stdout.readline())):
                pass
            watching.send_signal(signal.SIGINT)
            assert watching.wait(60) == 130
        finally:
            watching.kill()
    assert change == {"released": "watched"}


def test_watching_ends_by_itself_when_its_time_is_up(indexctl: Run) -> None:
    done = indexctl("watch", "--timeout", "1s")

    assert done.code == 0
    assert "service ready Ready." in done.out


def test_nothing_to_watch_is_said_at_once(indexctl: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SEMANTIC_INDEX_URL", f"unix:{tmp_path}/nobody")

    assert indexctl("watch").code == 5


def test_the_live_view_outlives_a_restart(tmp_path: Path) -> None:
    root = tmp_path.resolve() / "root"
    root.mkdir()
    (root / "auth.py").write_text("# Heliotrope authentication validates bearer credentials before dispatch.\n")
    socket = tmp_path / "socket"
    with ServedCell(tmp_path / "home", ["--root", str(root), "--socket", str(socket)]) as cell:
        with on_terminal(cell, "watch") as client:
            client.until("Index up-to-date.")
            cell.stop()
            client.until("No running service was found")
            client.output = ""
            cell.start()
            client.until("Index up-to-date.")
            client.send(signal.SIGINT)
            assert client.end() == 130
