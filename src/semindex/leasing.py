"""What a registry keeps of each registration while the cell runs: its lease, and the release that may be under way."""

from datetime import timedelta

import trio
from attrs import define, field, frozen

from semindex.engine.workspace import Workspace
from semindex.model.errors import SemindexError, Starting
from semindex.model.registrations import Registration


@frozen
class Policy:
    """What becomes of an index without a registration, and how many registrations there may be."""

    purge_worktrees: bool
    ttl: int | None
    """Seconds for which an index stays that is kept without a registration; None: for ever."""
    max_registrations: int


@frozen
class Receipt:
    """What a release did."""

    released: str
    purged: bool
    points: int
    """Points that went with it."""
    bytes: int
    """Bytes of their texts and vectors, as an estimate."""
    drained: int
    """Files whose accepted work reached the store after the release was asked for."""
    cancelled: int
    """Files that were outstanding and were given up."""
    duration: timedelta


@define(eq=False)
class Release:
    """A release under way; everybody who asks for it waits for the same end."""

    done: trio.Event = field(factory=trio.Event)
    receipt: Receipt | None = None
    error: SemindexError | None = None

    async def result(self) -> Receipt:
        """Wait for the end, and return or raise what it was."""
        await self.done.wait()
        if self.receipt is None:
            raise self.error or Starting("The cell was stopped during the release; its next start completes it.")
        return self.receipt


@define(eq=False)
class Lease:
    """A registration, and the workspace that it holds open."""

    registration: Registration
    workspace: Workspace | None = None
    """None while there is a reason not to run it."""
    idle_because: str = ""
    """That reason, one sentence."""
    release: Release | None = None
