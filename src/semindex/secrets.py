"""Secrets of a cell: its tokens and the keys of its servers, read from variables or private files, made where there are none.

A value variable beats a file variable; both are trimmed; what is empty counts as absent (wire page, section 1). A file that
others may read is refused. Secrets are wrapped so that no ``repr``, traceback or log shows them.
"""

import hmac
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen
from pydantic import SecretStr

from semindex.model.errors import ConfigurationError

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
    if value := environ.get(variable, "").strip():
        return SecretStr(value)
    if not (name := environ.get(f"{variable}_FILE", "").strip()):
        return None
    if not (value := read_private(Path(name))):
        raise ConfigurationError(f"{variable}_FILE points to an empty secret file: {name}.")
    return SecretStr(value)


def read_private(path: Path) -> str:
    """Return the trimmed content of a file that only its owner may read. Raises ConfigurationError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigurationError(f"The secret file {path} cannot be read: {error.strerror}.") from error
    with open(descriptor, encoding="utf-8") as file:
        refuse_public(path, os.fstat(descriptor))
        try:
            return file.read(_LONGEST).strip()
        except ValueError as error:
            raise ConfigurationError(f"The secret file {path} is not text.") from error


_LONGEST = 64 * 1024


def refuse_public(path: Path, status: os.stat_result) -> None:
    """Raise ConfigurationError unless only the owner may read the file.

    Mode 0444 of a file that root owns is accepted: that is how container secrets are mounted.
    """
    if not stat.S_ISREG(status.st_mode):
        raise ConfigurationError(f"The secret file {path} is not a regular file.")
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077 and not (mode == 0o444 and status.st_uid == 0):
        raise ConfigurationError(f"The secret file {path} can be read by others; run: chmod 600 {path}")


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
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        if token := read_private(path):
            return token
        raise ConfigurationError(f"The token file {path} is empty; delete it to have a new one made.") from None
    token = secrets.token_urlsafe(32)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token
