"""The command line as a whole: help, wrong usage, how it starts, and how it is ended."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from indexctl import cli
from semindex import __version__
from semindex.testing.serving import ServedCell
from tests.indexctl.conftest import Run
from tests.indexctl.terminal import PROGRAM, on_terminal

HEAVY = {"anyio", "httpx", "numpy", "pydantic", "rich", "sqlite3", "trio", "tree_sitter"}
COMMANDS = ["register", "status", "list", "release", "reindex", "purge", "search", "service-status", "watch", "files"]


@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], ["help"], ["token", "revoke", "--help"]]
    + [[*way] for command in [*COMMANDS, "explain", "token"] for way in ((command, "--help"), ("help", command))],
    ids=" ".join,
)
def test_help_is_to_be_had_everywhere(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(arguments)
    assert capsys.readouterr().out.startswith("usage: indexctl")


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"indexctl {__version__}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["list", "positional"],
        ["list", "--no-such-flag"],
        ["list", "--js"],
        ["list", "--json=yes"],
        ["status"],
        ["status", "--id", ""],
        ["status", "--id", "a/b"],
        ["register", "--id", "x"],
        ["search", "--id", "x"],
        ["search", "--id", "x", "--query", "y", "--max-results", "51"],
        ["search", "--id", "x", "--query", "y", "--max-results", "0"],
        ["search", "--id", "x", "--query", "y", "--max-results", "²"],
        ["files", "--id", "x", "--state", "lost"],
        ["list", "--timeout", "10"],
        ["list", "--timeout", "1.5s"],
        ["list", "--timeout", "-1s"],
        ["list", "--timeout", "9999999s"],
        ["token"],
        ["token", "revoke", "--id", "x"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: indexctl")


def test_of_a_repeated_flag_the_last_one_counts(indexctl: Run) -> None:
    done = indexctl("status", "--id", "first", "--id", "last")

    assert "no registration last" in done.err


def test_a_command_for_a_script_imports_nothing_heavy(tmp_path: Path) -> None:
    program = """
import json, sys
from indexctl.cli import main
code = main(["register", "--id", "x", "--path", ".", "--wait"])
json.dump([code, sorted(sys.modules)], sys.stdout)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env={"HOME": str(tmp_path)}
    )
    code, imported = json.loads(done.stdout)

    assert code == 5
    assert "No running service was found" in done.stderr
    assert HEAVY.intersection(imported) == set()


def test_it_runs_through_a_link_in_a_directory_with_spaces(tmp_path: Path) -> None:
    directory = tmp_path / "some where"
    directory.mkdir()
    link = directory / "index ctl"
    link.symlink_to(Path(sys.executable).with_name("indexctl"))

    done = subprocess.run([link, "--version"], cwd=directory, check=True, capture_output=True, text=True, timeout=60)

    assert done.stdout == f"indexctl {__version__}\n"


# Help is printed by argparse, which does not always notice.
@pytest.mark.parametrize(("argument", "codes"), [("list", {141}), ("--help", {0, 141})], ids=["list", "help"])
def test_nothing_is_said_when_the_reader_of_the_output_went_away(
    cell: ServedCell, argument: str, codes: set[int]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*PROGRAM, argument], env=cell.client_environment, stdout=writer, stderr=subprocess.PIPE, timeout=60
    )
    os.close(writer)

    assert done.returncode in codes
    assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_output_that_cannot_be_written_is_a_failure(cell: ServedCell) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*PROGRAM, "list"], env=cell.client_environment, stdout=full, stderr=subprocess.PIPE, timeout=60
        )

    assert done.returncode == 1
    assert done.stderr == b"indexctl: The output cannot be written: No space left on device.\n"


def test_a_standard_output_that_was_closed_is_no_reason_to_fail(cell: ServedCell) -> None:
    command = ["sh", "-c", 'exec "$@" >&-', "sh", *PROGRAM, "list"]
    done = subprocess.run(command, env=cell.client_environment, stderr=subprocess.PIPE, timeout=60)

    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_live_view_and_gives_the_cursor_back(
    cell: ServedCell, number: signal.Signals, code: int
) -> None:
    with on_terminal(cell, "watch") as client:
        client.until("ready: Ready.")
        client.send(number)
        assert client.end() == code

    assert client.output.count("\x1b[?25l") == client.output.count("\x1b[?25h") == 1
    assert "Traceback" not in client.output
