"""Every command against a real cell over a real socket, as a script sees it."""

import argparse
import os
import subprocess
from pathlib import Path

import pytest

from indexctl import commands
from semindex.testing.serving import ServedCell
from tests.indexctl.answering import answering, said
from tests.indexctl.conftest import MAX_FILES, Run


def git(*arguments: str, cwd: Path) -> None:
    identity = ["-c", "user.name=A Tester", "-c", "user.email=tester@example.invalid"]
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


def committed(directory: Path) -> Path:
    git("init", "--initial-branch=main", cwd=directory)
    git("add", ".", cwd=directory)
    git("commit", "--message=first", cwd=directory)
    return directory


def test_a_workspace_is_registered_waited_for_searched_and_released(indexctl: Run, workspace: Path) -> None:
    registered = indexctl("register", "--id", "life", "--path", str(workspace), "--wait").json
    listed = indexctl("list").json
    found = indexctl("search", "--id", "life", "--query", "heliotrope bearer authentication").json
    released = indexctl("release", "--id", "life", "--purge").json

    assert (registered["state"], registered["path"], registered["filesIndexed"]) == ("Indexed", str(workspace), 1)
    assert "life" in [each["id"] for each in listed]
    assert found["results"][0]["filePath"] == "auth.py"
    assert (released["released"], released["purged"], released["points"]) == ("life", True, 1)
    assert indexctl("status", "--id", "life").code == 3


def test_an_index_may_be_taken_over_where_there_is_none(indexctl: Run, workspace: Path) -> None:
    registered = indexctl("register", "--id", "taken", "--path", str(workspace), "--adopt", "--wait").json

    assert (registered["state"], registered["filesIndexed"]) == ("Indexed", 1)


def test_a_relative_path_is_that_of_the_clients_directory(
    indexctl: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = workspace / "below"
    below.mkdir()
    link = workspace / "link"
    link.symlink_to(below)
    monkeypatch.chdir(link)

    # After a link, ".." leads to where the link points, whatever the shell's idea of the directory is.
    assert indexctl("register", "--id", "relative", "--path", "..").json["path"] == str(workspace)
    assert indexctl("register", "--id", "relative-below", "--path", ".").json["path"] == str(below)


def test_a_path_that_is_relative_to_a_deleted_directory_is_wrong_usage(
    indexctl: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = workspace / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    done = indexctl("register", "--id", "gone", "--path", "there")
    monkeypatch.undo()

    assert done.code == 2
    assert "give an absolute one" in done.err


def test_a_search_is_confined_to_a_path_and_a_number(indexctl: Run, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    for number in range(3):
        (workspace / "sub" / f"auth{number}.py").write_text(f"# Heliotrope authentication, kind {number}.\n" * 3)
    indexctl("register", "--id", "confined", "--path", str(workspace), "--wait")

    everywhere = indexctl("search", "--id", "confined", "--query", "heliotrope").json["results"]
    below = indexctl("search", "--id", "confined", "--query", "heliotrope", "--path", "sub", "--max-results", "2").json

    assert len(everywhere) == 4
    assert len(below["results"]) == 2
    assert all(hit["filePath"].startswith("sub/") for hit in below["results"])


def test_a_worktree_finds_its_primary_and_holds_it(indexctl: Run, workspace: Path) -> None:
    committed(workspace)
    worktree = workspace.with_name("worktree")
    git("worktree", "add", "-b", "topic", str(worktree), cwd=workspace)
    indexctl("register", "--id", "base", "--path", str(workspace), "--wait")

    overlay = indexctl("register", "--id", "overlay", "--path", str(worktree), "--wait").json
    refused = indexctl("release", "--id", "base")
    purged = indexctl("purge", "--id", "base")
    forced = indexctl("release", "--id", "base", "--force")

    assert (overlay["kind"], overlay["baselinePath"]) == ("worktree", str(workspace))
    assert (refused.code, purged.code) == (4, 4)
    assert "overlay" in refused.err
    assert forced.json["released"] == "base"
    assert indexctl("status", "--id", "overlay").code == 3


def test_a_baseline_may_be_named_and_must_be_registered(indexctl: Run, workspace: Path) -> None:
    other = workspace / "other"
    other.mkdir()

    done = indexctl("register", "--id", "early", "--path", str(other), "--baseline", str(workspace))

    assert done.code == 4
    assert "must be registered before" in done.err


def test_the_files_of_a_workspace_are_listed_page_by_page(
    indexctl: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "PAGE", 2)
    for number in range(4):
        (workspace / f"module{number}.py").write_text(
            f"# This module has the number {number}, and says nothing else.\n"
        )
    (workspace / "binary.py").write_bytes(b"\0" * 100)
    indexctl("register", "--id", "files", "--path", str(workspace), "--wait")

    everything = indexctl("files", "--id", "files").json
    skipped = indexctl("files", "--id", "files", "--state", "skipped").json

    assert [file["path"] for file in everything] == ["auth.py", "binary.py", *(f"module{n}.py" for n in range(4))]
    assert [file["path"] for file in skipped] == ["binary.py"]
    assert indexctl("files", "--id", "files", "--state", "failed").json == []


def test_a_path_is_explained_by_the_rule_that_hides_it(indexctl: Run, workspace: Path) -> None:
    committed(workspace)
    (workspace / ".gitignore").write_text("*.pyc\nsecret*\n")
    (workspace / "secret.py").write_text("nothing to see")
    indexctl("register", "--id", "explain", "--path", str(workspace), "--wait")

    hidden = indexctl("explain", "--id", "explain", "--path", "secret.py").json
    shown = indexctl("explain", "--id", "explain", "--path", "auth.py").json

    assert (hidden["searchable"], hidden["rule"], hidden["source"]) == (False, "secret*", ".gitignore:2")
    assert (shown["searchable"], shown["chunks"]) == (True, [{"startLine": 1, "endLine": 2}])


def test_a_token_is_made_listed_without_itself_and_revoked(indexctl: Run, workspace: Path) -> None:
    indexctl("register", "--id", "tokens", "--path", str(workspace))

    made = indexctl("token", "create", "--id", "tokens", "--label", "for an agent").json
    listed = indexctl("token", "list", "--id", "tokens")
    revoked = indexctl("token", "revoke", "--id", "tokens", "--token-id", made["id"]).json

    assert [(each["id"], each["label"]) for each in listed.json] == [(made["id"], "for an agent")]
    assert made["token"] not in listed.out
    assert revoked == {"revoked": made["id"]}
    assert indexctl("token", "list", "--id", "tokens").json == []
    assert indexctl("token", "revoke", "--id", "tokens", "--token-id", made["id"]).code == 3


def test_the_status_of_the_service_names_its_registrations(indexctl: Run, workspace: Path) -> None:
    indexctl("register", "--id", "counted", "--path", str(workspace))

    status = indexctl("service-status", "--wait", "--timeout", "1m").json

    assert status["phase"] == "ready"
    assert "counted" in [each["id"] for each in status["registrations"]]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["status", "--id", "nobody"], 3),
        (["release", "--id", "nobody"], 3),
        (["search", "--id", "nobody", "--query", "anything"], 3),
        (["register", "--id", "outside", "--path", "/usr"], 1),
        (["register", "--id", "missing", "--path", "{home}/missing"], 1),
        (["register", "--id", "bad id", "--path", "{home}/cache"], 2),
        (["search", "--id", "nobody", "--query", " "], 2),
        (["explain", "--id", "..", "--path", "x"], 3),
    ],
)
def test_what_is_refused_has_its_exit_code_and_one_sentence(
    indexctl: Run, cell: ServedCell, arguments: list[str], code: int
) -> None:
    done = indexctl(*(argument.format(home=cell.home) for argument in arguments))

    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("indexctl: ")
    assert done.err.count("\n") == 1


def test_an_id_of_another_workspace_is_a_conflict(indexctl: Run, cell: ServedCell, workspace: Path) -> None:
    (workspace / "other").mkdir()
    indexctl("register", "--id", "taken", "--path", str(workspace))

    assert indexctl("register", "--id", "taken", "--path", str(workspace / "other")).code == 4


def test_a_name_that_is_not_utf8_is_refused_by_the_service(indexctl: Run, workspace: Path) -> None:
    odd = os.fsdecode(os.fsencode(workspace) + b"/\xff")
    os.mkdir(odd)

    done = indexctl("register", "--id", "odd", "--path", odd)

    assert done.code in (1, 2)
    assert done.err.startswith("indexctl: ")


def test_what_cannot_be_indexed_is_not_searched_either(indexctl: Run, workspace: Path) -> None:
    for number in range(MAX_FILES):
        (workspace / f"file{number}.py").touch()

    registered = indexctl("register", "--id", "large", "--path", str(workspace), "--wait", "--timeout", "1m")
    searched = indexctl("search", "--id", "large", "--query", "anything")

    assert registered.code == 1
    assert str(MAX_FILES) in registered.err
    assert searched.code == 5


def test_a_tidy_service_has_no_orphans_and_nothing_is_purged(indexctl: Run) -> None:
    assert indexctl("orphans").json == []
    assert indexctl("orphans", "--purge").json == []


@pytest.mark.parametrize(
    ("purge", "calls"),
    [
        (None, ["GET /v1/orphans"]),
        ([], ["GET /v1/orphans", "POST /v1/orphans/purge"]),
        (["/gone"], ["GET /v1/orphans", "POST /v1/orphans/purge"]),
    ],
)
def test_orphans_are_only_deleted_if_that_is_said(purge: list[str] | None, calls: list[str]) -> None:
    orphan = {"name": "/gone", "kind": "ledger", "points": 0, "reason": "Nobody has it."}
    with answering(*[said(orphans=[orphan])] * len(calls)) as cell:
        result = commands.orphans(cell.client(), argparse.Namespace(purge=purge))

    assert result.value == [orphan]
    assert [request.removesuffix(" HTTP/1.1") for request in cell.requests] == calls
