"""A file as the chunker sees it: its text cut into chunks, or the reason why not."""

from enum import StrEnum

from attrs import frozen


@frozen
class Signature:
    """What one ``stat`` tells of a file's content: equal signatures mean an unchanged file.

    Times are nanoseconds since the epoch, size is bytes. A signature taken less than two seconds after the file
    changed may lie, since a second write can leave it as it is: whoever records one asks :meth:`trusted_at` first.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    def trusted_at(self, read_began_ns: int) -> bool:
        """Say whether a read that began then saw what this signature will go on to stand for."""
        return max(self.mtime_ns, self.ctime_ns) + RACY_WINDOW_NS <= read_began_ns


RACY_WINDOW_NS = 2_000_000_000
"""Time stamps are coarse on some file systems; two seconds is the coarsest in use."""


@frozen
class Chunk:
    """A piece of one file, embedded and stored as one point."""

    text: str
    """As stored and shown; may hold lone surrogates, see :func:`semindex.model.ids.well_formed`."""
    start_line: int
    """1-based. True under the extended profile; as the reference engine records it under ``kilo``."""
    end_line: int
    """1-based, inclusive."""
    length: int
    """UTF-16 code units of ``text``."""
    segment_hash: str
    type: str
    """Node type of the grammar, or one of the chunkers' own (``fallback_chunk``, ``markdown_header_h2``, ``gap`` …)."""
    identifier: str | None = None


@frozen
class ChunkedFile:
    """What a worker made of one file; everything in it belongs to the same read."""

    path: str
    """Relative to the workspace, POSIX separators."""
    file_hash: str
    signature: Signature
    trusted: bool
    """Whether ``signature`` may be recorded (see :meth:`Signature.trusted_at`)."""
    handling: str
    """The route: a grammar's name, ``lines``, ``markdown`` or ``none``."""
    chunks: tuple[Chunk, ...]
    warning: str | None = None
    """Why the file was chunked in a lesser way than its type allows, for example a parser that hung."""


@frozen
class UnchangedFile:
    """A file that was read and still has the hash that the caller knew."""

    path: str
    file_hash: str
    signature: Signature
    trusted: bool


class ProblemKind(StrEnum):
    """What became of a file that could not be chunked."""

    GONE = "gone"
    """It is not there any more, or no longer a regular file."""
    SKIPPED = "skipped"
    """Not for the index: too large, binary."""
    FAILED = "failed"
    """It should be in the index and is not: unreadable, or it never stopped changing."""


@frozen
class FileProblem:
    """Why one file has no chunks."""

    path: str
    kind: ProblemKind
    reason: str
    """One sentence for people; holds no file contents."""
    signature: Signature | None = None
    """Of the read that gave the reason; None where there was none, or it cannot be trusted."""
