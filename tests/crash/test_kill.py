"""kill -9 between any two writes of indexing: the next start goes on, and stores exactly what a run without it does."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CELL = Path(__file__).with_name("killed_cell.py")


def run(home: Path, tree: Path, *kill: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CELL), str(home), str(tree), *kill],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def result(home: Path, tree: Path) -> dict[str, Any]:
    done = run(home, tree)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def write_tree(tree: Path, files: int, generation: str) -> None:
    tree.mkdir(exist_ok=True)
    for number in range(files):
        body = "\n\n".join(
            f"def {generation}_{number}_{part}(value):\n    total = value * {number} + {part}\n    return total + {part}"
            for part in range(1 + number % 7)
        )
        (tree / f"module_{number}.py").write_text(body + "\n")


@pytest.mark.parametrize(("point", "number"), [("upsert → ledger", 1), ("upsert → ledger", 2), ("ledger → next", 2)])
def test_a_first_build_that_is_killed_goes_on_and_stores_everything_once(
    tmp_path: Path, point: str, number: int
) -> None:
    tree = tmp_path / "tree"
    write_tree(tree, 150, "first")
    assert run(tmp_path / "home", tree, point, str(number)).returncode == -signal.SIGKILL
    resumed = result(tmp_path / "home", tree)
    assert resumed == result(tmp_path / "other", tree)
    assert resumed["state"] == "Indexed"


@pytest.mark.parametrize("point", ["delete → upsert", "upsert → ledger", "ledger → next"])
def test_a_rescan_that_is_killed_leaves_neither_old_points_nor_gaps(tmp_path: Path, point: str) -> None:
    tree = tmp_path / "tree"
    write_tree(tree, 60, "first")
    result(tmp_path / "home", tree)
    write_tree(tree, 40, "second")
    for number in range(50, 60):
        (tree / f"module_{number}.py").unlink()
    assert run(tmp_path / "home", tree, point, "1").returncode == -signal.SIGKILL
    assert result(tmp_path / "home", tree) == result(tmp_path / "other", tree)


def test_a_file_that_is_put_back_after_the_kill_gets_its_points_back(tmp_path: Path) -> None:
    """The dangerous case: its old points are deleted, and its content is once more what the ledger remembers."""
    tree = tmp_path / "tree"
    write_tree(tree, 20, "first")
    before = result(tmp_path / "home", tree)
    write_tree(tree, 20, "second")
    assert run(tmp_path / "home", tree, "delete → upsert", "1").returncode == -signal.SIGKILL
    write_tree(tree, 20, "first")
    assert result(tmp_path / "home", tree) == before
