"""What a cell tells its clients: of registrations, of itself, of a search."""

from datetime import datetime
from enum import StrEnum

from attrs import frozen

from semindex.model.points import Hit
from semindex.model.registrations import Lifecycle, Registration
from semindex.model.status import FileRecord, State, WorkspaceStatus


class CellPhase(StrEnum):
    """Where a cell stands between its start and its end."""

    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    """It answers, but something that it needs does not."""
    STOPPING = "stopping"


@frozen
class RegistrationStatus:
    """A registration together with the state of its workspace."""

    registration: Registration
    lifecycle: Lifecycle
    references: int
    """Registrations of the same path."""
    collection: str
    workspace: WorkspaceStatus


@frozen
class DependencyStatus:
    """Health of the embedder or the store, as of the last call."""

    reachable: bool
    latency_ms: float | None = None
    last_error: str | None = None
    checked_at: datetime | None = None


@frozen
class CellStatus:
    """The whole cell."""

    phase: CellPhase
    message: str
    started_at: datetime
    updated_at: datetime
    revision: str
    """To be given back as ``since`` when waiting for a change."""
    registrations: tuple[RegistrationStatus, ...]
    active_workspaces: int
    watchers: int
    queue_depth: int
    """Texts that wait for the embedder or are on their way."""
    mcp_sessions: int
    cache_hits: int
    cache_misses: int
    cache_bytes: int
    embedder: DependencyStatus
    store: DependencyStatus
    missing_grammars: tuple[str, ...]
    orphans: int


class EmptyReason(StrEnum):
    """Why a search found nothing."""

    NO_MATCH = "no_match"
    """Nothing is close enough to the query."""
    FILTERED_OUT = "filtered_out"
    """Something is, but not below the path that was asked for."""
    WITHHELD = "withheld"
    """Something was, but its files have changed since they were indexed."""
    STILL_INDEXING = "still_indexing"
    """Nothing yet; files are still being indexed."""


@frozen
class SearchResponse:
    """The answer to a search of one workspace."""

    workspace: str
    """Canonical path."""
    branch: str | None
    state: State
    results: tuple[Hit, ...]
    fresh: bool
    """Everything written before the call has been taken into account."""
    pending: tuple[str, ...]
    """Files that may have changed and are not indexed yet; the first 20."""
    pending_count: int
    withheld: int
    """Hits dropped because their file is not what was indexed."""
    reason: EmptyReason | None
    """Given when there are no results."""
    seconds: dict[str, float]
    """Time spent on ``sweep``, ``embedding``, ``store`` and ``verification``."""


@frozen
class FilesPage:
    """A part of a workspace's ledger."""

    records: tuple[FileRecord, ...]
    total: int
    """Records that match, on all pages."""


@frozen
class Explanation:
    """Why a path is or is not searchable."""

    path: str
    searchable: bool
    reason: str
    """One sentence."""
    rule: str | None = None
    """The ignore pattern that decided."""
    source: str | None = None
    """The ignore file that holds it, and its line: ``.gitignore:3``."""
    record: FileRecord | None = None
    """What the ledger knows."""
    chunks: tuple[tuple[int, int], ...] = ()
    """First and last line of each chunk that the file has now."""
