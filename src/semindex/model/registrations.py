"""What a cell keeps about its leases: registrations, what stays of a released one, operations, search tokens.

Texts are checked here, when a value is made, so that whatever can be built can be stored. Times are aware and in UTC.
"""

import hashlib
import re
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from attrs import Attribute, field, frozen
from attrs.converters import optional

from semindex.model.errors import InvalidInput

_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def _valid_id(_: object, attribute: "Attribute[str]", value: str) -> None:
    if not _ID.fullmatch(value):
        raise InvalidInput(
            "A registration id has 1 to 128 characters, ASCII letters, digits or any of . _ : - only; choose another."
        )


def _valid_text(_: object, attribute: "Attribute[Any]", value: str | None) -> None:
    try:
        (value or "").encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            f"The {attribute.name.replace('_', ' ')} cannot be written as UTF-8: choose another."
        ) from None


def _in_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("a time without a zone")
    return value.astimezone(UTC)


class Lifecycle(StrEnum):
    """Where a registration stands between its acceptance and its end (docs/lifecycle.md)."""

    ACTIVE = "active"
    RELEASING = "releasing"
    """Its end was asked for and is not complete: the next start completes it."""
    STALE = "stale"
    """Its directory is gone; it is kept, and shown as an error."""


@frozen
class Registration:
    """A lease on a workspace."""

    id: str = field(validator=_valid_id)
    path: str = field(validator=_valid_text)
    """Canonical and absolute."""
    baseline_path: str | None = field(validator=_valid_text)
    """The primary checkout whose index a worktree builds on; None for a primary."""
    created_at: datetime = field(converter=_in_utc)
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    purge_on_release: bool | None = None
    """Whether its data go with it, unless the release says otherwise; None leaves it to the retention policy."""
    project_id: str | None = field(default=None, validator=_valid_text)
    workspace_id: str | None = field(default=None, validator=_valid_text)
    """Names that the client knows project and workspace by; they mean nothing to the cell."""
    device: int | None = None
    """The file system of the directory that holds the workspace, as it was when that was registered."""
    purge: bool | None = None
    """What the release in progress is to do with the data; None while none is in progress."""


@frozen
class Retained:
    """The data of a workspace that was released without purge: no orphan, and adopted when it is registered again."""

    path: str = field(validator=_valid_text)
    baseline_path: str | None = field(validator=_valid_text)
    """What a delta was made against: with another baseline it has to be compared anew."""
    since: datetime = field(converter=_in_utc)
    ttl: int | None = None
    """Seconds for which it is kept; None for ever."""


class OperationKind(StrEnum):
    """What a client may start and look at later."""

    REINDEX = "reindex"
    PURGE = "purge"


class OperationState(StrEnum):
    """How far an operation got."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


@frozen
class Operation:
    """A reindex or a purge; it outlives its registration and the process."""

    id: str = field(validator=_valid_text)
    """A UUID."""
    registration_id: str = field(validator=_valid_id)
    kind: OperationKind
    started_at: datetime = field(converter=_in_utc)
    state: OperationState = OperationState.RUNNING
    completed_at: datetime | None = field(default=None, converter=optional(_in_utc))
    error: str | None = field(default=None, validator=_valid_text)


INTERRUPTED = "interrupted"
"""The error of an operation that was running when the process ended."""


@frozen
class TokenRecord:
    """A search token bound to one registration: all that is kept of it. It goes with the registration."""

    id: str = field(validator=_valid_text)
    registration_id: str = field(validator=_valid_id)
    digest: bytes = field(repr=False)
    """As :func:`token_digest` returns it."""
    label: str = field(validator=_valid_text)
    created_at: datetime = field(converter=_in_utc)


def token_digest(token: str) -> bytes:
    """Return the 32 bytes by which a token is known; tokens are random, so no salt is needed."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
