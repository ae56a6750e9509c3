"""Directories that somebody named: where they lie, and whether they are still there."""

from enum import StrEnum

from attrs import frozen


@frozen
class Place:
    """A directory that somebody named."""

    path: str
    """Canonical and absolute."""
    primary: str | None
    """Of a linked git worktree: its primary checkout."""
    branch: str | None
    """Checked out there, if it is the top of a git working tree and not detached."""
    tops: tuple[str, ...]
    """The directories at or above it that hold a ``.git`` entry, the nearest first."""


class Presence(StrEnum):
    """Whether a directory is there."""

    PRESENT = "present"
    ABSENT = "absent"
    """There is surely no such directory: the directory that held it says so."""
    UNKNOWN = "unknown"
    """It cannot be looked at, or what held it is gone as well."""


@frozen
class Sighting:
    """One look at a directory."""

    presence: Presence
    parent_device: int | None
    """The file system of the directory that holds it: another one means that something was unmounted."""
