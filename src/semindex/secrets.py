"""Secrets of a cell: its tokens, made at the first start where none are given, and the keys of its servers.

Where they are found is in :mod:`semindex.secret_files`. They are wrapped so that no ``repr``,
traceback or log shows them.
"""

import hmac
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen
from pydantic import SecretStr

from semindex.model.errors import ConfigurationError
from semindex.secret_files import read_private, secret_text

MINIMUM_LENGTH = 16
"""Characters that a token must have."""

CONTROL_TOKEN = "SEMANTIC_INDEX_CONTROL_TOKEN"
MCP_TOKEN = "SEMANTIC_INDEX_MCP_TOKEN"
QDRANT_API_KEY = "SEMANTIC_INDEX_QDRANT_API_KEY"
EMBEDDER_API_KEY = "SEMANTIC_INDEX_EMBEDDER_API_KEY"


@frozen
class Tokens:
    """The two credentials of a cell."""

    control: SecretStr
    """For automation: the control API and the plugin RPC."""
    mcp: SecretStr
    """For agents: MCP, bound through the client's roots."""

    def __attrs_post_init__(self) -> None:
        for name, token in ((CONTROL_TOKEN, self.control), (MCP_TOKEN, self.mcp)):
            if len(token.get_secret_value()) < MINIMUM_LENGTH:
                raise ConfigurationError(f"{name} is shorter than {MINIMUM_LENGTH} characters; use a longer token.")
        if hmac.compare_digest(self.control.get_secret_value().encode(), self.mcp.get_secret_value().encode()):
            raise ConfigurationError(f"{CONTROL_TOKEN} and {MCP_TOKEN} are the same; use two different tokens.")


def read_secret(variable: str, environ: Mapping[str, str]) -> SecretStr | None:
    """Return the secret of a variable or of the file that ``{variable}_FILE`` names; None if there is neither."""
    text = secret_text(variable, environ)
    return None if text is None else SecretStr(text)


def token_files(state_directory: Path) -> tuple[Path, Path]:
    """Return where a cell that was given no tokens keeps its own: for control, for MCP."""
    return state_directory / "control.token", state_directory / "mcp.token"


def names_tokens(environ: Mapping[str, str]) -> bool:
    """Say whether the environment names any token."""
    variables = (f"{name}{suffix}" for name in (CONTROL_TOKEN, MCP_TOKEN) for suffix in ("", "_FILE"))
    return any(environ.get(variable, "").strip() for variable in variables)


def configured_tokens(environ: Mapping[str, str]) -> Tokens:
    """Return the tokens that the environment names. Raises ConfigurationError where one is missing."""
    found = {name: read_secret(name, environ) for name in (CONTROL_TOKEN, MCP_TOKEN)}
    control, mcp = found[CONTROL_TOKEN], found[MCP_TOKEN]
    if control is None or mcp is None:
        missing = CONTROL_TOKEN if control is None else MCP_TOKEN
        raise ConfigurationError(f"{missing} or {missing}_FILE is required.")
    return Tokens(control, mcp)


def own_tokens(state_directory: Path) -> Tokens:
    """Return the tokens of a cell without configuration, made at its first start (32 random bytes each)."""
    control, mcp = (SecretStr(_kept(path)) for path in token_files(state_directory))
    return Tokens(control, mcp)


def _kept(path: Path) -> str:
    """Return the token of a file, made if there is none; written whole or not at all."""
    if path.exists():
        if token := read_private(path):
            return token
        raise ConfigurationError(f"The token file {path} is empty; delete it to have a new one made.")
    token, new = secrets.token_urlsafe(32), path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(token + "\n")
    new.rename(path)
    return token
