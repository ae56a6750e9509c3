"""The path to which a search may be restricted: a file or a directory of the workspace."""

from collections.abc import Iterable

from semindex.model.errors import InvalidInput
from semindex.model.ids import well_formed
from semindex.model.limits import MAX_PATH


def parse_prefix(prefix: str | None) -> tuple[str, ...]:
    """Return the leading path segments that a hit must have; none means the whole workspace.

    Empty and ``.`` segments count for nothing and ``..`` goes up one; backslashes are ordinary characters.
    Raises InvalidInput for a prefix that is absolute, leaves the workspace, holds a NUL or is too long.
    """
    if prefix is None:
        return ()
    if len(prefix) > MAX_PATH:
        raise InvalidInput(f"The search path is longer than {MAX_PATH} characters; give a shorter one.")
    if "\0" in prefix or well_formed(prefix) != prefix:
        raise InvalidInput("The search path holds a character that no path can have; give a path of the workspace.")
    if prefix.startswith("/"):
        raise InvalidInput("The search path is absolute; give it relative to the workspace, for example src/engine.")
    return _resolved(prefix.split("/"))


def _resolved(parts: Iterable[str]) -> tuple[str, ...]:
    segments: list[str] = []
    for part in parts:
        if part == "..":
            if not segments:
                raise InvalidInput("The search path leads out of the workspace; give one that stays inside it.")
            segments.pop()
        elif part not in ("", "."):
            segments.append(part)
    return tuple(segments)
