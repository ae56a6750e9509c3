"""The parity kit's scenarios: which files of a workspace are indexed (parity README, scan.json)."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from semindex.core.eligibility import FileTypes
from semindex.files.tree import WorkingTree
from semindex.model.profiles import ChunkingProfile

KIT = json.loads((Path(__file__).parents[1] / "fixtures/parity/scan.json").read_text(encoding="utf-8"))
TEXT: str = KIT["fileText"]


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def make(scenario: dict[str, Any], above: Path) -> Path:
    """Make a scenario's files; return the workspace's root, which lies below ``above``."""
    root = above / str(scenario.get("root", "workspace"))
    for entry in scenario["files"]:
        if isinstance(entry, dict):
            write(root / entry["path"], "a" * entry["bytes"])
        else:
            write(root / entry, "" if entry.endswith("empty.ts") else TEXT)
    for name, lines in scenario.get("ignore", {}).items():
        write(root / name, scenario.get("ignoreLineEnd", "\n").join(lines))
    for name in scenario.get("outside", []):
        write(above / name, TEXT)
    for name, target in scenario.get("links", {}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(target)
    return root


@pytest.mark.parametrize("scenario", KIT["scenarios"], ids=lambda scenario: scenario["name"])
async def test_a_scan_finds_the_files_of_a_scenario(scenario: dict[str, Any], tmp_path: Path) -> None:
    expected = scenario.get("spec", scenario)["indexed"]
    root = make(scenario, tmp_path)
    tree = WorkingTree(str(root), trio.CapacityLimiter(1), types=FileTypes(ChunkingProfile.KILO), environ={})

    assert sorted((await tree.scan()).files) == sorted(expected)
    assert sorted((await tree.look(paths(scenario))).files) == sorted(expected)


def paths(scenario: dict[str, Any]) -> list[str]:
    """Return every file and link of a scenario."""
    files = [entry["path"] if isinstance(entry, dict) else entry for entry in scenario["files"]]
    return [*files, *scenario.get("links", {}), *scenario.get("ignore", {})]
