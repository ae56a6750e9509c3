"""What is installed: the wheel's content, the console scripts, and how light they start."""

import json
import os
import subprocess
import sys
import zipfile
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.architecture.checkout import ROOT, files, project

HEAVY = {"numpy", "qdrant_client", "qdrant_edge", "sqlite3", "tree_sitter", "trio"}
"""What a command that only prints its help has no use for."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel built from this checkout, by the pinned backend, without a network."""
    target = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", target],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    [built] = target.iterdir()
    with zipfile.ZipFile(built) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_file_of_both_packages(wheel: set[str]) -> None:
    packaged = {path.removeprefix("src/") for path in files() if path.startswith(("src/", "indexctl/"))}

    assert packaged - wheel == set()
    assert "semindex/py.typed" in wheel


def test_the_wheel_holds_nothing_else_but_its_metadata(wheel: set[str]) -> None:
    outside = {name for name in wheel if not name.startswith(("semindex/", "indexctl/"))}

    assert {Path(name).name for name in outside} == {
        "METADATA", "RECORD", "WHEEL", "entry_points.txt", "LICENSE", "THIRD_PARTY_NOTICES.md",
    }  # fmt: skip


def test_the_build_backend_is_the_pinned_one() -> None:
    assert project()["build-system"]["requires"] == project()["dependency-groups"]["build"]


@pytest.mark.parametrize("name", ["semindex", "indexctl"])
def test_a_console_script_can_be_loaded(name: str) -> None:
    [script] = entry_points(group="console_scripts", name=name)

    assert callable(script.load())


def test_help_is_printed_without_importing_anything_heavy() -> None:
    program = """
import json, sys
from semindex.cli import main
try:
    main(["--help"])
except SystemExit as exit:
    json.dump([exit.code, sorted(sys.modules)], sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"}
    )
    code, imported = json.loads(done.stderr)

    assert code == 0
    assert done.stdout.startswith("usage: semindex")
    assert HEAVY.intersection(imported) == set()
