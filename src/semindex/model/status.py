"""States that people and machines see: of a workspace, of a file, of the cell."""

from datetime import datetime
from enum import StrEnum

from attrs import field, frozen

from semindex.model.chunks import Signature


class State(StrEnum):
    """State of a workspace's index."""

    STANDBY = "Standby"
    INDEXING = "Indexing"
    INDEXED = "Indexed"
    ERROR = "Error"


class FileState(StrEnum):
    """State of one discovered file; the four counts always add up to the number of discovered files."""

    PENDING = "pending"
    INDEXED = "indexed"
    SKIPPED = "skipped"
    FAILED = "failed"


@frozen
class FileRecord:
    """One file's line in the ledger."""

    path: str
    """Relative to the workspace, POSIX separators."""
    state: FileState
    file_hash: str | None = None
    """Hash of the text whose chunks are all stored; None while nothing is known to be stored."""
    signature: Signature | None = None
    """Of the read that gave the hash or the reason; None when it cannot be trusted."""
    chunks: int = 0
    """Points stored for the file."""
    chunking: str = ""
    """Profile and version of the chunker that made them."""
    dirty: bool = False
    """The store may hold something else for this path than the record says: delete before anything is written."""
    inherited: bool = False
    """In an overlay: the file has the baseline's content, whose points serve it; the delta holds none."""
    reason: str | None = None
    """Why the file is skipped, failed, or chunked in a lesser way."""


@frozen
class FileCounts:
    """How many discovered files are in each state."""

    indexed: int = 0
    pending: int = 0
    skipped: int = 0
    failed: int = 0

    @property
    def discovered(self) -> int:
        """Return the number of all these files: the sum of the records."""
        return self.indexed + self.pending + self.skipped + self.failed


@frozen
class WorkspaceStatus:
    """A snapshot of one workspace, taken between two checkpoints."""

    path: str
    state: State = State.STANDBY
    message: str = ""
    files: FileCounts = field(factory=FileCounts)
    processed: int = 0
    """Files done in the current run."""
    total: int = 0
    """Files to do in the current run."""
    chunks: int = 0
    """Points stored."""
    embedded_chunks: int = 0
    """Chunks of this process's life whose text was sent to the embedder."""
    reused_chunks: int = 0
    """Chunks whose vector came from the cache, or is the baseline's."""
    last_error: str | None = None
    failed_files: tuple[tuple[str, str], ...] = ()
    """The first ten failed files with their reasons."""
    lag: float = 0.0
    """Seconds since the oldest change that is not indexed yet."""
    updated_at: datetime | None = None
    """When anything of this last changed."""
    completed_at: datetime | None = None
    """When the index was last complete."""

    @property
    def percent(self) -> int:
        """Return progress of the current run, 0 to 100."""
        if self.state is State.INDEXED:
            return 100
        if self.state is not State.INDEXING or self.total == 0:
            return 0
        return round(100 * self.processed / self.total)
