"""Waiting: for the index that was asked for and no older one, not longer than it makes sense, and across a restart."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from indexctl.errors import CommandError, Conflict, Unavailable
from indexctl.waiting import follow, until_indexed
from semindex.progress import LINES
from semindex.testing.serving import ServedCell
from tests.indexctl.answering import answering, said
from tests.indexctl.conftest import Run
from tests.indexctl.terminal import PROGRAM, on_terminal

FILES = 150
"""Enough that building the index takes a while, and reading it anew, too."""
TIMEOUT = 120


def fill(directory: Path) -> Path:
    for number in range(FILES):
        lines = [f"def function_{number}_{line}(argument):\n    return argument + {line}\n\n\n" for line in range(30)]
        (directory / f"module_{number}.py").write_text("".join(lines))
    return directory


@contextmanager
def running(cell: ServedCell, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """A client in a process of its own, which is killed if it still runs at the end."""
    with subprocess.Popen(
        [*PROGRAM, *arguments], env=cell.client_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def own_cell(tmp_path: Path) -> Iterator[ServedCell]:
    """A cell without configuration, on another port after each start."""
    root = tmp_path.resolve() / "root"
    root.mkdir()
    with ServedCell(tmp_path / "home", ["--root", str(fill(root)), "--port", "0"]) as cell:
        yield cell


ONE = {"id": "one", "path": "/one", "message": "A sentence.", "lifecycle": "active"}


def test_a_complete_index_is_not_waited_for_while_an_operation_is_under_way() -> None:
    with answering(
        said(**ONE, state="Indexed", operation={"id": "x"}, revision="b-1"),
        said(**ONE, state="Indexing", operation={"id": "x"}, revision="b-2"),
        said(**ONE, state="Indexed", revision="b-3"),
    ) as cell:
        status = until_indexed(cell.client(), "one")

    assert status["revision"] == "b-3"
    assert cell.requests[0] == "GET /v1/registrations/one HTTP/1.1"
    assert re.fullmatch(r"GET /v1/registrations/one\?wait=9\.\d+&since=b-1 HTTP/1.1", cell.requests[1])
    assert "since=b-2" in cell.requests[2]


def test_a_worktree_waits_for_its_primary_unless_that_is_in_error() -> None:
    worktree = {**ONE, "baselinePath": "/base", "state": "Standby"}
    base = {"id": "base", "path": "/base", "message": "…", "lastError": "The disk is gone."}
    with (
        answering(
            said(**worktree, revision="b-1"),
            said(registrations=[worktree, {**base, "state": "Indexing"}]),
            said(**worktree, revision="b-2"),
            said(registrations=[worktree, {**base, "state": "Error"}]),
        ) as cell,
        pytest.raises(CommandError, match=r"The primary base is in error: The disk is gone\."),
    ):
        until_indexed(cell.client(), "one")


def test_a_registration_on_its_way_out_is_not_waited_for() -> None:
    releasing = ONE | {"lifecycle": "releasing"}
    with (
        answering(said(**releasing, state="Indexed", revision="b-1")) as cell,
        pytest.raises(Conflict, match="is being released"),
    ):
        until_indexed(cell.client(), "one")


def test_a_service_that_cannot_be_waited_for_is_said_to_be_of_another_version() -> None:
    with answering(said(**ONE, state="Indexing")) as cell, pytest.raises(CommandError, match="another version"):
        until_indexed(cell.client(), "one")


def test_a_service_that_stays_away_is_given_up() -> None:
    with answering(said(n=1, revision="b-1"), b"", said(n=2, revision="c-1"), b"", b"") as cell:
        client, outages = cell.client(), list[str]()
        seen = follow(client, "/v1/thing", patience=0.0001, on_outage=outages.append)

        assert next(seen)["n"] == 1
        assert next(seen)["n"] == 2
        with pytest.raises(Unavailable):
            next(seen)
    assert len(outages) == 2
    assert "since=b-1" in cell.requests[2]


def test_a_status_that_was_complete_before_a_reindex_is_not_waited_for(indexctl: Run, workspace: Path) -> None:
    indexctl("register", "--id", "again", "--path", str(fill(workspace)), "--wait", "--timeout", "2m")
    assert "operation" not in indexctl("status", "--id", "again").json

    begun = indexctl("reindex", "--id", "again").json
    waited = indexctl("status", "--id", "again", "--wait", "--timeout", "2m").json

    assert waited["state"] == "Indexed"
    assert "operation" not in waited
    assert waited["lastCompletedAt"] > begun["startedAt"]


def test_a_reindex_is_waited_for_by_its_operation(indexctl: Run, workspace: Path) -> None:
    indexctl("register", "--id", "operated", "--path", str(fill(workspace)), "--wait", "--timeout", "2m")

    done = indexctl("reindex", "--id", "operated", "--wait", "--timeout", "2m")

    assert (done.json["kind"], done.json["state"]) == ("reindex", "completed")
    assert f"of {FILES + 1} files" in done.err


def test_nobody_waits_for_a_standby_that_does_not_end_by_itself(indexctl: Run, workspace: Path) -> None:
    indexctl("register", "--id", "purged", "--path", str(workspace), "--wait", "--timeout", "1m")
    assert indexctl("purge", "--id", "purged", "--wait", "--timeout", "1m").json["state"] == "completed"

    for command in (["status"], ["register", "--path", str(workspace)]):
        done = indexctl(*command, "--id", "purged", "--wait", "--timeout", "1m")
        assert (done.code, done.out) == (1, "")
        assert "reindex" in done.err
    assert indexctl("reindex", "--id", "purged", "--wait", "--timeout", "1m").json["state"] == "completed"
    assert indexctl("status", "--id", "purged", "--wait", "--timeout", "1m").json["filesIndexed"] == 1


def test_progress_is_told_in_a_few_lines_where_there_is_no_terminal(indexctl: Run, workspace: Path) -> None:
    done = indexctl("register", "--id", "progress", "--path", str(fill(workspace)), "--wait", "--timeout", "2m")

    counts = re.findall(rf"^indexed (\d+) of {FILES + 1} files$", done.err, re.MULTILINE)
    assert done.json["state"] == "Indexed"
    assert 1 <= len(counts) <= LINES + 1
    assert counts == sorted(counts, key=int)


def test_progress_is_a_bar_on_a_terminal_which_goes_when_it_is_done(cell: ServedCell, workspace: Path) -> None:
    with on_terminal(cell, "register", "--id", "bar", "--path", str(fill(workspace)), "--wait") as client:
        assert client.end() == 0

    assert f"/{FILES + 1}" in client.output
    assert (
        client.output.index("\x1b[?25l") < client.output.index("\x1b[?25h") < client.output.index("Index up-to-date.")
    )


def test_an_interrupted_wait_ends_quietly_and_the_work_goes_on(
    indexctl: Run, cell: ServedCell, workspace: Path
) -> None:
    with on_terminal(cell, "register", "--id", "cut", "--path", str(fill(workspace)), "--wait") as client:
        client.until("files")
        client.send(signal.SIGINT)
        assert client.end() == 130

    assert client.output.count("\x1b[?25l") == client.output.count("\x1b[?25h")
    assert "Traceback" not in client.output
    assert indexctl("status", "--id", "cut", "--wait", "--timeout", "2m").json["state"] == "Indexed"


def test_the_time_of_a_command_bounds_its_waiting(indexctl: Run, workspace: Path) -> None:
    done = indexctl("register", "--id", "late", "--path", str(fill(workspace)), "--wait", "--timeout", "150ms")

    assert (done.code, done.out) == (5, "")
    assert "late" in done.err.splitlines()[-1] or "has not answered" in done.err


def test_no_service_to_become_ready_is_a_timeout(
    indexctl: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SEMANTIC_INDEX_URL", f"unix:{tmp_path}/nobody")

    done = indexctl("service-status", "--wait", "--timeout", "400ms")

    assert done.code == 5
    assert "Timed out waiting for the service: No service answers" in done.err


def test_waiting_outlives_a_kill_and_a_restart_on_another_port(own_cell: ServedCell) -> None:
    with running(own_cell, "status", "--id", "root", "--wait", "--timeout", f"{TIMEOUT}s") as client:
        assert client.stderr is not None
        assert client.stderr.readline()  # it has seen the cell
        first = own_cell.url
        own_cell.kill()
        own_cell.start()
        out, _ = client.communicate(timeout=TIMEOUT)

    assert own_cell.url != first
    assert client.returncode == 0
    assert (json.loads(out)["state"], json.loads(out)["filesIndexed"]) == ("Indexed", FILES)


def test_an_operation_that_a_kill_interrupted_has_failed(own_cell: ServedCell) -> None:
    with running(own_cell, "status", "--id", "root", "--wait", "--timeout", f"{TIMEOUT}s") as client:
        client.communicate(timeout=TIMEOUT)
    with running(own_cell, "reindex", "--id", "root", "--wait", "--timeout", f"{TIMEOUT}s") as client:
        assert client.stderr is not None
        assert client.stderr.readline()
        own_cell.kill()
        own_cell.start()
        _, err = client.communicate(timeout=TIMEOUT)

    assert client.returncode == 1
    assert "interrupted" in err
