"""How a client finds a cell that was started without configuration: where its state lies, and a file with the rest.

The file lies in the state directory while the cell listens. It holds paths of token files, never a token.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

FILE_NAME = "cell.json"


@frozen
class Discovery:
    """Where a cell listens, and which files hold its tokens."""

    url: str
    """``http://127.0.0.1:7790``, or ``unix:/path``."""
    pid: int
    control_token_file: Path
    mcp_token_file: Path


def state_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where state of this user lies that must survive (XDG_STATE_HOME)."""
    return xdg_home("XDG_STATE_HOME", ".local/state", environ)


def xdg_home(variable: str, below_home: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return our directory below a base directory of the user."""
    # A relative path is invalid there, by the base directory specification, and is to be ignored.
    value = environ.get(variable, "")
    base = Path(value) if os.path.isabs(value) else Path.home() / below_home
    return base / "semindex"


def announce(state_directory: Path, cell: Discovery) -> None:
    """Write the file, private to its owner, whole or not at all."""
    content = {
        "url": cell.url,
        "pid": cell.pid,
        "controlTokenFile": str(cell.control_token_file),
        "mcpTokenFile": str(cell.mcp_token_file),
    }
    new = state_directory / f"{FILE_NAME}.new"
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
    new.replace(state_directory / FILE_NAME)


def withdraw(state_directory: Path) -> None:
    """Remove the file."""
    (state_directory / FILE_NAME).unlink(missing_ok=True)


def find(state_directory: Path) -> Discovery | None:
    """Return what the file says; None if there is none, or none that makes sense.

    The cell may have died without removing it.
    """
    try:
        content = json.loads((state_directory / FILE_NAME).read_bytes())
        return Discovery(
            str(content["url"]),
            int(content["pid"]),
            Path(content["controlTokenFile"]),
            Path(content["mcpTokenFile"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
