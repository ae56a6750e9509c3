"""Finding the reference engine's account of a workspace."""

import json
from pathlib import Path

import pytest
import trio

from semindex.model.ids import reference_cache_file
from semindex.state import reference_cache
from semindex.state.reference_cache import read_reference_cache

WORKSPACE = "/home/user/project"


async def read(directory: Path) -> dict[str, str]:
    return await read_reference_cache(directory, WORKSPACE, trio.CapacityLimiter(1))


def file_in(directory: Path) -> Path:
    return directory / reference_cache_file(WORKSPACE)


async def test_paths_are_those_below_the_workspace(tmp_path: Path) -> None:
    file_in(tmp_path).write_text(json.dumps({f"{WORKSPACE}/src/ä.py": "a" * 64, "/home/user/projector/b.py": "b" * 64}))

    assert await read(tmp_path) == {"src/ä.py": "a" * 64}


async def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert await read(tmp_path) == {}
    assert await read(tmp_path / "missing") == {}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"null"])
async def test_a_file_that_makes_no_sense_is_told_and_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    file_in(tmp_path).write_bytes(content)

    assert await read(tmp_path) == {}
    assert "every file is chunked anew" in caplog.text


async def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_cache, "LARGEST", 10)
    file_in(tmp_path).write_text(json.dumps({f"{WORKSPACE}/a.py": "a" * 64}))

    assert await read(tmp_path) == {}


async def test_a_directory_in_its_place_is_left_out(tmp_path: Path) -> None:
    file_in(tmp_path).mkdir()

    assert await read(tmp_path) == {}
