"""Where the tests of the embedded store keep it: in memory if that can be had, since it waits for the disk a lot."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

IN_MEMORY = Path("/dev/shm")
ROOM = 256 * 1024 * 1024


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """An empty directory for one store."""
    if not IN_MEMORY.is_dir() or shutil.disk_usage(IN_MEMORY).free < ROOM:
        yield tmp_path / "store"
        return
    with tempfile.TemporaryDirectory(dir=IN_MEMORY, prefix="semindex-test-") as fast:
        yield Path(fast) / "store"
