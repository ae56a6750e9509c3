"""Secrets in variables and private files, for cells and their clients alike."""

import os
from pathlib import Path

import pytest

from semindex.model.errors import ConfigurationError
from semindex.secret_files import read_private, refuse_public, secret_text


def private(path: Path, content: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_a_value_wins_over_a_file_and_both_are_trimmed(tmp_path: Path) -> None:
    file = {"TOKEN_FILE": str(private(tmp_path / "token", b"  of the file\n"))}

    assert secret_text("TOKEN", file | {"TOKEN": " of the variable\n"}) == "of the variable"
    assert secret_text("TOKEN", file | {"TOKEN": "  "}) == "of the file"
    assert secret_text("TOKEN", {"TOKEN": "", "TOKEN_FILE": " "}) is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_file_that_others_may_read_is_refused_with_the_command_that_mends_it(tmp_path: Path, mode: int) -> None:
    file = private(tmp_path / "token", b"secret", mode)

    with pytest.raises(ConfigurationError, match=f"chmod 600 {file}"):
        read_private(file)


@pytest.mark.parametrize(("owner", "is_accepted"), [(0, True), (1000, False)])
def test_a_file_of_a_container_secret_is_accepted_if_it_is_roots(tmp_path: Path, owner: int, is_accepted: bool) -> None:
    status = list(private(tmp_path / "token", b"secret", 0o444).stat())
    status[4] = owner

    if is_accepted:
        refuse_public(tmp_path / "token", os.stat_result(status))
    else:
        with pytest.raises(ConfigurationError, match="can be read by others"):
            refuse_public(tmp_path / "token", os.stat_result(status))


def test_what_is_no_regular_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)

    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(ConfigurationError, match="not a regular file"):
            read_private(path)


def test_a_missing_file_an_empty_one_and_one_that_is_no_text_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="missing cannot be read: No such file"):
        read_private(tmp_path / "missing")
    with pytest.raises(ConfigurationError, match="binary is not text"):
        read_private(private(tmp_path / "binary", b"\xff\xfe"))
    with pytest.raises(ConfigurationError, match="TOKEN_FILE points to an empty secret file"):
        secret_text("TOKEN", {"TOKEN_FILE": str(private(tmp_path / "empty", b" \n"))})
