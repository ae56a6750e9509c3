"""The set-up behind ``scripts/try`` and ``scripts/test``, on a checkout of its own with nothing to install."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts below a path with spaces, and a lock file that pins nothing."""
    checkout = tmp_path_factory.mktemp("a checkout") / "with spaces"
    shutil.copytree(ROOT / "scripts", checkout / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (checkout / "requirements").mkdir()
    (checkout / "requirements" / "lock.txt").write_text("# nothing\n")
    (checkout / "pyproject.toml").write_text("")
    return checkout


def start(script: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start a script where a user might be: among modules with common names, none of which it may import."""
    trap = script.parent.parent / "trap"
    trap.mkdir(exist_ok=True)
    for name in ("json", "random", "sqlite3", "tempfile", "venv"):
        (trap / f"{name}.py").write_text("raise SystemExit('imported from the current directory')\n")
    return subprocess.Popen(
        [script, *arguments],
        cwd=trap,
        env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(trap), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_runs_at_the_same_time_make_one_environment_and_later_ones_find_it(checkout: Path, tmp_path: Path) -> None:
    expected = checkout / ".venv" / f"lock-{VERSION}" / "bin"
    link = tmp_path / "link"
    link.symlink_to(checkout / "scripts" / "environment")

    both = [start(checkout / "scripts" / "environment", "lock") for _ in range(2)]
    results = [process.communicate(timeout=60) for process in both]
    later = start(link, "lock").communicate(timeout=60)

    assert [output for output, _ in results] == [f"{expected}\n"] * 2
    assert sum("making" in messages for _, messages in results) == 1
    assert (expected / "python").exists()
    assert later == (f"{expected}\n", "")


def test_an_environment_that_was_never_finished_is_made_again(checkout: Path) -> None:
    home = checkout / ".venv" / f"lock-{VERSION}"
    start(checkout / "scripts" / "environment", "lock").communicate(timeout=60)
    (home / "stamp.json").unlink()
    (home / "left by a run that was killed").touch()

    _, messages = start(checkout / "scripts" / "environment", "lock").communicate(timeout=60)

    assert "making" in messages
    assert not (home / "left by a run that was killed").exists()


def test_a_step_that_fails_shows_what_the_tool_said_and_leaves_nothing_that_counts_as_done(checkout: Path) -> None:
    (checkout / "requirements" / "broken.txt").write_text("this is no requirement\n")

    process = start(checkout / "scripts" / "environment", "broken")
    output, messages = process.communicate(timeout=60)

    assert (process.returncode, output) == (1, "")
    assert "Invalid requirement" in messages
    assert "this step failed" in messages
    assert not (checkout / ".venv" / f"broken-{VERSION}" / "stamp.json").exists()


def shim(directory: Path, name: str, body: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{body}\n")
    (directory / name).chmod(0o755)


def test_an_interpreter_that_only_prints_an_error_is_passed_over(checkout: Path, tmp_path: Path) -> None:
    shim(tmp_path, "python3.13", "echo 'version not installed' >&2; exit 127")
    shim(tmp_path, "python3.12", 'case $2 in -c) exit 1;; esac; echo "too old, or without venv"')
    shim(tmp_path, "python3.11", 'case $2 in -c) exit 0;; esac; echo "ran with $3"')

    output, messages = start(
        checkout / "scripts" / "environment", "lock", PYTHON="", PATH=f"{tmp_path}:{os.environ['PATH']}"
    ).communicate(timeout=60)

    assert (output, messages) == ("ran with lock\n", "")


def test_without_any_usable_python_the_message_says_what_to_install(checkout: Path, tmp_path: Path) -> None:
    for name in ("python3.13", "python3.12", "python3.11", "python3"):
        shim(tmp_path, name, "exit 1")
    process = start(checkout / "scripts" / "environment", "lock", PYTHON="", PATH=f"{tmp_path}:/usr/bin:/bin")
    _, messages = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "Install Python 3.11" in messages


def test_an_unusable_python_that_was_asked_for_is_an_error_and_no_other_is_taken(checkout: Path) -> None:
    process = start(checkout / "scripts" / "environment", "lock", PYTHON="/bin/false")
    _, messages = process.communicate(timeout=60)

    assert process.returncode == 1
    assert "PYTHON=/bin/false" in messages


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        ([], ["ROOT", "QUESTION"]),
        (["--json"], ["ROOT", "QUESTION", "--json"]),
        (["some dir"], ["some dir", "QUESTION"]),
        (["some dir", "--fresh"], ["some dir", "--fresh", "QUESTION"]),
        (["-n", "3", "some dir"], ["-n", "3", "some dir", "QUESTION"]),
        (["some dir", "what is it?", "--json"], ["some dir", "what is it?", "--json"]),
    ],
)
def test_try_fills_in_what_is_not_given(tmp_path: Path, given: list[str], passed_on: list[str]) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    shutil.copy(ROOT / "scripts" / "try", scripts)
    shim(scripts, "environment", f"echo '{scripts}'")
    shim(scripts, "semindex", "printf '%s\\n' \"$@\"")

    output, _ = start(scripts / "try", *given).communicate(timeout=60)

    words = {"ROOT": str(tmp_path), "QUESTION": "which rule decides whether a file is ignored?"}
    assert output.splitlines() == ["try", *(words.get(word, word) for word in passed_on)]
