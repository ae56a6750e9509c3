"""Where secrets are found: in a variable, or in a file that only its owner may read.

A value variable beats a file variable; both are trimmed; what is empty counts as absent. Cells
and their clients follow the same rules.
"""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from semindex.model.errors import ConfigurationError

LONGEST = 64 * 1024
"""Characters of a secret file that are read."""


def secret_text(variable: str, environ: Mapping[str, str]) -> str | None:
    """Return the secret of a variable or of the file that ``{variable}_FILE`` names; None if there is neither.

    Raises ConfigurationError if the file cannot or must not be used.
    """
    if value := environ.get(variable, "").strip():
        return value
    if not (name := environ.get(f"{variable}_FILE", "").strip()):
        return None
    if not (value := read_private(Path(name))):
        raise ConfigurationError(f"{variable}_FILE points to an empty secret file: {name}.")
    return value


def read_private(path: Path) -> str:
    """Return the trimmed content of a file that only its owner may read. Raises ConfigurationError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigurationError(f"The secret file {path} cannot be read: {error.strerror}.") from error
    # Not closed by the file object: it cannot be made over a directory.
    try:
        refuse_public(path, os.fstat(descriptor))
        with open(descriptor, encoding="utf-8", closefd=False) as file:
            return file.read(LONGEST).strip()
    except ValueError as error:
        raise ConfigurationError(f"The secret file {path} is not text.") from error
    finally:
        os.close(descriptor)


def refuse_public(path: Path, status: os.stat_result) -> None:
    """Raise ConfigurationError unless only the owner may read the file.

    Mode 0444 of a file that root owns is accepted: that is how container secrets are mounted.
    """
    if not stat.S_ISREG(status.st_mode):
        raise ConfigurationError(f"The secret file {path} is not a regular file.")
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077 and not (mode == 0o444 and status.st_uid == 0):
        raise ConfigurationError(f"The secret file {path} can be read by others; run: chmod 600 {path}")
