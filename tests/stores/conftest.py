"""Where the tests of the embedded store keep it: in memory if that can be had, since it waits for the disk a lot."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from semindex.testing.doubles import DoubleProcess

IN_MEMORY = Path("/dev/shm")
ROOM = 256 * 1024 * 1024
KEY = "key-of-the-store-tests"


@contextmanager
def fast_directory() -> Iterator[Path]:
    """An empty directory, in memory if possible."""
    in_memory = IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free >= ROOM
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if in_memory else None, prefix="semindex-test-") as directory:
        yield Path(directory)


@pytest.fixture
def directory() -> Iterator[Path]:
    """An empty directory for one store."""
    with fast_directory() as directory:
        yield directory / "store"


@pytest.fixture(scope="session")
def qdrant_server() -> Iterator[tuple[str, str | None]]:
    """URL and key of a Qdrant server for the whole session: the one that the environment names, or a double."""
    if url := os.environ.get("SEMINDEX_TEST_QDRANT_URL"):
        yield url, os.environ.get("SEMINDEX_TEST_QDRANT_API_KEY")
        return
    with fast_directory() as directory:
        arguments = ["--api-key", KEY, "--directory", str(directory)]
        with DoubleProcess("semindex.testing.qdrant_double", arguments) as double:
            yield double.url, KEY
