"""Tokens of a cell: given or made, never equal, never shown."""

import stat
from pathlib import Path

import pytest
from pydantic import SecretStr

from semindex.model.errors import ConfigurationError
from semindex.secrets import (
    CONTROL_TOKEN,
    MCP_TOKEN,
    Tokens,
    configured_tokens,
    names_tokens,
    own_tokens,
    token_files,
)

ONE, OTHER = "one-token-of-the-tests", "other-token-of-the-tests"


def test_tokens_of_the_environment_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{OTHER}\n")
    file.chmod(0o600)

    tokens = configured_tokens({CONTROL_TOKEN: f" {ONE}\n", f"{MCP_TOKEN}_FILE": str(file)})

    assert tokens == Tokens(SecretStr(ONE), SecretStr(OTHER))


@pytest.mark.parametrize(("control", "mcp", "message"), [
    ("x" * 15, OTHER, f"{CONTROL_TOKEN} is shorter than 16 characters"),
    (ONE, "y" * 15, f"{MCP_TOKEN} is shorter than 16 characters"),
    (ONE, ONE, "are the same"),
    ("", OTHER, f"{CONTROL_TOKEN} or {CONTROL_TOKEN}_FILE is required"),
    (ONE, "  ", f"{MCP_TOKEN} or {MCP_TOKEN}_FILE is required"),
])  # fmt: skip
def test_tokens_that_are_no_good_are_refused_and_not_shown(control: str, mcp: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        configured_tokens({CONTROL_TOKEN: control, MCP_TOKEN: mcp})
    assert ONE not in str(raised.value)


def test_no_representation_shows_a_token() -> None:
    assert ONE not in repr(Tokens(SecretStr(ONE), SecretStr(OTHER)))


def test_a_cell_makes_tokens_once_for_itself_alone(tmp_path: Path) -> None:
    tokens = own_tokens(tmp_path)

    assert own_tokens(tmp_path) == tokens
    assert len(tokens.control.get_secret_value()) == len(tokens.mcp.get_secret_value()) == 43
    assert tokens.control != tokens.mcp
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in token_files(tmp_path)}
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_a_token_that_was_being_made_when_the_cell_died_is_made_anew(tmp_path: Path) -> None:
    control, _ = token_files(tmp_path)
    control.with_name(f"{control.name}.new").write_text("half a tok")

    assert len(own_tokens(tmp_path).control.get_secret_value()) == 43


def test_a_token_file_that_is_empty_or_open_to_others_is_refused(tmp_path: Path) -> None:
    control, mcp = token_files(tmp_path)
    control.touch(0o600)
    with pytest.raises(ConfigurationError, match=f"{control} is empty; delete it"):
        own_tokens(tmp_path)
    control.unlink()
    own_tokens(tmp_path)
    mcp.chmod(0o644)
    with pytest.raises(ConfigurationError, match=f"chmod 600 {mcp}"):
        own_tokens(tmp_path)


@pytest.mark.parametrize(("variable", "expected"), [
    (CONTROL_TOKEN, True), (f"{MCP_TOKEN}_FILE", True), ("SEMANTIC_INDEX_QDRANT_API_KEY", False),
])  # fmt: skip
def test_an_environment_names_tokens_or_it_does_not(variable: str, expected: bool) -> None:
    assert names_tokens({variable: "something"}) is expected
    assert not names_tokens({variable: " "})
