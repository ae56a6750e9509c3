"""Who may import whom, and what."""

import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.architecture.checkout import ROOT, imported_names, modules, pins, project

HELD_BY = {
    "inotify_simple": "semindex/files/",
    "prometheus_client": "semindex/observe/",
    "qdrant_client": "semindex/stores/",
    "qdrant_edge": "semindex/stores/",
    "sqlite3": "semindex/state/",
    "tree_sitter": "semindex/parsing/",
    "tree_sitter_language_pack": "semindex/parsing/",
}
"""Each of these is known to a single module, in this package: what replaces it replaces that module."""


def test_the_contracts_of_import_linter_are_kept() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [linter, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, env={"NO_COLOR": "1"}
    )

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("library", "package"), HELD_BY.items())
def test_a_foreign_library_is_known_to_a_single_module(library: str, package: str) -> None:
    importers = [path for path in modules("src") if library in imported_names(path)]

    assert len(importers) <= 1, importers
    assert all(path.startswith(f"src/{package}") for path in importers), importers


def test_nothing_imports_asyncio() -> None:
    code = modules("src", "indexctl", "scripts", "tests", "qualification", "training")

    assert [path for path in code if "asyncio" in imported_names(path)] == []


def test_the_product_imports_only_what_it_declares() -> None:
    declared = {canonicalize_name(need.name) for need in requirements(project()["project"]["dependencies"])}
    providers = {
        name: {canonicalize_name(distribution) for distribution in distributions}
        for name, distributions in packages_distributions().items()
    }
    foreign = {
        (path, name)
        for path in modules("src", "indexctl")
        for name in imported_names(path)
        if name not in sys.stdlib_module_names and name not in {"semindex", "indexctl"}
    }

    undeclared = {(path, name) for path, name in foreign if not declared.intersection(providers.get(name, ()))}
    assert undeclared == set()


def test_the_locks_pin_what_the_project_asks_for() -> None:
    groups = project()["dependency-groups"]
    runtime = [*project()["project"]["dependencies"], *groups["build"]]

    for name, asked in {"runtime": runtime, "test": [*runtime, *groups["test"]], "lock": groups["lock"]}.items():
        pinned = pins(name)
        unmet = [str(need) for need in requirements(asked) if not need.specifier.contains(pinned.get(need.name, "0"))]
        assert unmet == [], f"{name}: run scripts/lock"


def test_what_is_tested_is_what_is_run() -> None:
    assert pins("runtime").items() <= pins("test").items()


def requirements(lines: Iterable[str]) -> list[Requirement]:
    return [Requirement(line) for line in lines]
