"""A place for a cell, and a git that nobody's configuration reaches."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from semindex.testing.directories import fast_directory
from tests.freshness.moves import git_environment


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory for a cell's own files."""
    with fast_directory() as directory:
        yield directory


@pytest.fixture(autouse=True)
def _git_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in git_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
