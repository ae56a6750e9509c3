"""Where the tests of the stores keep them, and a server for those of Qdrant."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from semindex.testing.directories import fast_directory
from semindex.testing.doubles import DoubleProcess

KEY = "key-of-the-store-tests"


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
