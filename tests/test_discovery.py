"""The file by which clients find a cell without configuration."""

import stat
from pathlib import Path

import pytest

from semindex import discovery
from semindex.discovery import Discovery

CELL = Discovery("http://127.0.0.1:7790", 4711, Path("/state/control.token"), Path("/state/mcp.token"))


def test_what_was_announced_is_found_by_its_owner_alone_until_it_is_withdrawn(tmp_path: Path) -> None:
    (tmp_path / f"{discovery.FILE_NAME}.new").write_text("left behind by a cell that died")
    discovery.announce(tmp_path, CELL)

    assert discovery.find(tmp_path) == CELL
    assert stat.S_IMODE((tmp_path / discovery.FILE_NAME).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [discovery.FILE_NAME]
    discovery.withdraw(tmp_path)
    discovery.withdraw(tmp_path)
    assert discovery.find(tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"url": "x", "pid": "y"}', b"\xff"])
def test_a_file_that_makes_no_sense_leads_to_no_cell(tmp_path: Path, content: bytes) -> None:
    (tmp_path / discovery.FILE_NAME).write_bytes(content)

    assert discovery.find(tmp_path) is None


def test_the_users_directory_is_found_by_the_base_directory_specification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert discovery.state_home({"XDG_STATE_HOME": "/elsewhere"}) == Path("/elsewhere/semindex")
    for absent in ({}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}):
        assert discovery.state_home(absent) == tmp_path / ".local/state/semindex"
