"""What a registry keeps of each registration while the cell runs: its lease, and the release that may be under way."""

from datetime import timedelta

import trio
from attrs import define, field, frozen

from semindex.engine.workspace import Workspace
from semindex.model.errors import SemindexError, Stopping
from semindex.model.registrations import Registration


@frozen
class Policy:
    """What becomes of an index without a registration, and how many registrations there may be."""

    purge_worktrees: bool
    ttl: int | None
    """Seconds for which an index stays that is kept without a registration; None: for ever."""
    max_registrations: int

    def purges(self, registration: Registration, wish: bool | None) -> bool:
        """Say whether a release purges: as it wishes, else as the registration does, else as the policy is."""
        for choice in (wish, registration.purge_on_release):
            if choice is not None:
                return choice
        return registration.baseline_path is not None and self.purge_worktrees


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
            raise self.error or Stopping("The cell was stopped during the release; its next start completes it.")
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


@define
class LeaseBook:
    """The leases of a cell, by id and by path. Every method is synchronous."""

    _leases: dict[str, Lease] = field(factory=dict)

    def get(self, registration_id: str) -> Lease | None:
        """Return the lease of that id."""
        return self._leases.get(registration_id)

    def all(self) -> list[Lease]:
        """Return all leases, sorted by id."""
        return [self._leases[id_] for id_ in sorted(self._leases)]

    def of(self, path: str) -> list[Lease]:
        """Return the leases of a canonical path."""
        return [lease for lease in self._leases.values() if lease.registration.path == path]

    def overlays_of(self, path: str) -> list[Lease]:
        """Return the leases of the worktrees that build on a canonical path."""
        return [lease for lease in self._leases.values() if lease.registration.baseline_path == path]

    def workspace_of(self, path: str) -> Workspace | None:
        """Return the workspace that runs for a canonical path."""
        return next((lease.workspace for lease in self.of(path) if lease.workspace is not None), None)

    def holds(self, lease: Lease) -> bool:
        """Say whether this very lease is still held, not another one of its id."""
        return self._leases.get(lease.registration.id) is lease

    def add(self, lease: Lease) -> None:
        """Hold a lease."""
        self._leases[lease.registration.id] = lease

    def remove(self, lease: Lease) -> None:
        """Hold a lease no more."""
        if self.holds(lease):
            del self._leases[lease.registration.id]
