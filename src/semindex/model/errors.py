"""Every error that semindex raises on purpose.

Each class carries the machine word (``code``) under which it reaches a client; the message is one sentence
for people: what happened and what to do. Messages never hold tokens, queries or file contents.
"""

from collections.abc import Iterator
from typing import ClassVar, TypeVar

E = TypeVar("E", bound=BaseException, covariant=True)


class SemindexError(Exception):
    """Base of all errors raised on purpose."""

    code: ClassVar[str] = "internal"


class InvalidInput(SemindexError):
    """The caller asked for something that no retry will make right."""

    code = "invalid"


class PathRefused(InvalidInput):
    """A path that is missing, of the wrong kind, or outside of where it may lie."""

    code = "path_refused"


class UnknownRegistration(InvalidInput):
    """There is no registration of that id."""

    code = "unknown_registration"

    @classmethod
    def of(cls, registration_id: str) -> "UnknownRegistration":
        """Return the error with its usual sentence."""
        return cls(f"There is no registration {registration_id!r}: register the workspace first.")


class UnknownOperation(InvalidInput):
    """There is no operation of that id."""

    code = "unknown_operation"


class UnknownToken(InvalidInput):
    """The registration has no token of that id."""

    code = "unknown_token"


class UnregisteredRoot(SemindexError):
    """A client's roots lead to no registered workspace."""

    code = "root_not_registered"


class AmbiguousRoot(UnregisteredRoot):
    """A client's roots lead to more than one registered workspace."""

    code = "root_ambiguous"


class OutsideRoots(PathRefused):
    """The directory lies below none of the roots that the configuration allows."""

    code = "outside_roots"


class Conflict(SemindexError):
    """The request contradicts what is registered."""

    code = "conflict"


class BaselineMissing(Conflict):
    """The primary checkout that a worktree builds on is not registered."""

    code = "baseline_missing"


class BaselineInUse(Conflict):
    """Worktrees still build on the primary checkout."""

    code = "baseline_in_use"


class Releasing(Conflict):
    """The registration is being released."""

    code = "releasing"


class TooManyRegistrations(SemindexError):
    """The cell holds as many registrations as it may."""

    code = "too_many_registrations"


class Starting(SemindexError):
    """The cell has not read its registrations yet."""

    code = "starting"

    def __init__(
        self, message: str = "The cell is starting and has not read its registrations yet; try again in a moment."
    ) -> None:
        super().__init__(message)


class Stopping(SemindexError):
    """The cell is ending, and begins nothing any more."""

    code = "stopping"

    def __init__(self, message: str = "The cell is ending; try again when it is back.") -> None:
        super().__init__(message)


class ConfigurationError(SemindexError):
    """The cell cannot start with this configuration."""

    code = "configuration"


class CellLocked(SemindexError):
    """Another process owns the state directory."""

    code = "locked"


class NotReady(SemindexError):
    """The workspace cannot be searched in its present state."""

    code = "not_ready"


class Closing(NotReady):
    """The workspace came to its end before the call did."""

    def __init__(self) -> None:
        super().__init__("The workspace is closing: it is released or purged, or the cell ends.")


class TooManyFiles(SemindexError):
    """The tree holds more eligible files than one workspace may have."""

    code = "too_many_files"


class WorkspaceUnavailable(SemindexError):
    """The root of a workspace is missing or cannot be read now."""

    code = "workspace_unavailable"


class ScanFailed(SemindexError):
    """Nothing, or too little, of a tree could be indexed; the message names what failed."""

    code = "scan_failed"


class ChunkingFailed(SemindexError):
    """The worker processes cannot chunk at all (one file's trouble is a value, not this error)."""

    code = "chunking_failed"


class StoreUnavailable(SemindexError):
    """The vector store did not answer, or not in time: worth a retry, says nothing about what is stored."""

    code = "store_unavailable"


class StoreRejected(SemindexError):
    """The vector store refused a request, or answered nonsense: a retry changes nothing."""

    code = "store_rejected"


class CollectionMissing(StoreRejected):
    """The collection certainly does not exist."""

    code = "collection_missing"

    def __init__(self, collection: str, why: str = "") -> None:
        """Name the collection and, where known, why it is not there any more."""
        super().__init__(f"The collection {collection} does not exist{why}; create it and index again.")


class ForeignCollection(StoreRejected):
    """The collection was made by somebody else; it is neither used nor deleted without an explicit take-over."""

    code = "foreign_collection"


class EmbedderUnavailable(SemindexError):
    """The embedder did not answer, or not in time: worth a retry."""

    code = "embedder_unavailable"


class EmbedderRejected(SemindexError):
    """The embedder refused these texts, or answered with vectors that cannot be right."""

    code = "embedder_rejected"


class StateDamaged(SemindexError):
    """A database of the cell cannot be read; it is left as it is, and the message names its path."""

    code = "state_damaged"


class StateUnwritable(SemindexError):
    """The disk is full, or the state directory cannot be written."""

    code = "state_unwritable"


class StateVersion(SemindexError):
    """A database of the cell was made by a newer semindex; it is left as it is."""

    code = "state_version"


def first_of(group: BaseExceptionGroup[E]) -> E:
    """Return the first error inside a group and the groups within it."""
    return next(leaves(group))


def leaves(group: BaseExceptionGroup[E]) -> Iterator[E]:
    """Yield the errors inside a group and the groups within it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error
