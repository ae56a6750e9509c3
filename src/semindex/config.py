"""The configuration of one cell, frozen: what may be set, its defaults, and where state and caches lie.

Owns every reading of the environment. Values only: nothing here opens anything but the directories' names.
"""

import os
from pathlib import Path

from attrs import field, frozen

from semindex.model.profiles import ChunkingProfile


def state_home() -> Path:
    """Return where state of this user lies that must survive (XDG_STATE_HOME)."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def cache_home() -> Path:
    """Return where data of this user lies that may be deleted at any time (XDG_CACHE_HOME)."""
    return _xdg("XDG_CACHE_HOME", ".cache")


def _xdg(variable: str, below_home: str) -> Path:
    # A relative path is invalid there, by the base directory specification, and is to be ignored.
    value = os.environ.get(variable, "")
    base = Path(value) if os.path.isabs(value) else Path.home() / below_home
    return base / "semindex"


@frozen
class IndexingConfig:
    """How trees are indexed and searched."""

    profile: ChunkingProfile = ChunkingProfile.EXTENDED
    search_min_score: float | None = None
    """Cosine below which nothing is returned; None: the model's own threshold."""
    search_max_results: int = 50
    """Hits of each collection that are looked at first; 1 to 200."""
    file_extensions: frozenset[str] | None = None
    """Lower-case extensions with their dot; None: all that are known."""
    exclude: tuple[str, ...] = ()
    """Patterns as in a .gitignore at the root of every workspace."""
    cache_max_bytes: int = 2 * 1024**3
    """Size of the embedding cache."""


@frozen
class LimitsConfig:
    """What one cell may take on."""

    max_files: int = 200_000
    """Eligible files of one workspace."""


@frozen
class ShutdownConfig:
    """How long an orderly end may take, in seconds."""

    request_grace: float = 5.0
    drain_grace: float = 10.0


@frozen
class CellConfig:
    """Everything that a cell is made from."""

    state_directory: Path
    cache_directory: Path
    indexing: IndexingConfig = field(factory=IndexingConfig)
    limits: LimitsConfig = field(factory=LimitsConfig)
    shutdown: ShutdownConfig = field(factory=ShutdownConfig)
    workers: int = field(factory=lambda: max(1, min(8, os.cpu_count() or 1)))
    """Processes that chunk files."""
