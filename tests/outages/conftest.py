import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

IN_MEMORY = Path("/dev/shm")
ROOM = 256 * 1024 * 1024


@pytest.fixture
def fast_directory() -> Iterator[Path]:
    """An empty directory, in memory if possible: the engine waits for the disk a lot."""
    in_memory = IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free >= ROOM
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if in_memory else None, prefix="semindex-test-") as directory:
        yield Path(directory)
