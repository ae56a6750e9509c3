"""What a registry keeps of each registration while the cell runs: its lease, and the release that may be under way."""

from datetime import timedelta
from typing import Self

import trio
from attrs import define, field, frozen

from semindex.engine.workspace import Workspace
from semindex.model.errors import NotReady, Releasing, SemindexError, Stopping
from semindex.model.registrations import Lifecycle, Registration

DELETED = "The directory was deleted; restore it, or release the registration."
"""Why nothing runs for a directory that is gone."""


@frozen
class Policy:
    """What becomes of an index without a registration, and how many registrations there may be."""

    purge_worktrees: bool
    ttl: int
    """Seconds for which an index stays that is kept without a registration."""
    max_registrations: int

    def purges(self, registration: Registration, wish: bool | None) -> bool:
        """Say whether a release purges: as it wishes, else as the registration does, else as the policy is."""
        for choice in (wish, registration.purge_on_release):
            if choice is not None:
                return choice
        return registration.baseline_path is not None and self.purge_worktrees


@frozen
class Contents:
    """What a workspace holds at one moment."""

    points: int = 0
    bytes: int = 0
    outstanding: int = 0
    settled: int = 0
    """Files, since the workspace was made."""

    @classmethod
    def of(cls, workspace: Workspace | None) -> Self:
        """Look at a workspace; None holds nothing."""
        if workspace is None:
            return cls()
        index = workspace.index
        return cls(index.table.chunks, workspace.stored_bytes(), len(index.queue), index.settled_files)


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
    worktrees: tuple[str, ...] = ()
    """Registrations that were released before it, because they built on it."""


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

    def require_active(self) -> None:
        """Raise Releasing if its end has begun."""
        if self.registration.lifecycle is Lifecycle.RELEASING:
            raise Releasing(f"The registration {self.registration.id} is being released; register it again afterwards.")

    def running(self) -> Workspace:
        """Return its workspace, whatever state that is in. Raises Releasing, NotReady with the reason why none runs."""
        self.require_active()
        if self.workspace is None:
            raise NotReady(f"Code index is not ready for search. {self.idle_because}")
        return self.workspace

    @property
    def is_deleted(self) -> bool:
        """Say whether its directory counts as deleted, or was about to when deleting the data failed."""
        return self.registration.lifecycle is Lifecycle.STALE or (
            self.workspace is None and self.idle_because == DELETED
        )


@define
class LeaseBook:
    """The leases of a cell, by id, by path and by the path they build on. Every method is synchronous."""

    _leases: dict[str, Lease] = field(factory=dict)
    _by_path: dict[str, dict[str, Lease]] = field(factory=dict)
    """Canonical path → id → lease; no path is without a lease."""
    _by_baseline: dict[str, dict[str, Lease]] = field(factory=dict)
    """The same for the path of the baseline, where there is one."""

    def get(self, registration_id: str) -> Lease | None:
        """Return the lease of that id."""
        return self._leases.get(registration_id)

    def all(self) -> list[Lease]:
        """Return all leases, sorted by id."""
        return [self._leases[id_] for id_ in sorted(self._leases)]

    def of(self, path: str) -> list[Lease]:
        """Return the leases of a canonical path."""
        return list(self._by_path.get(path, {}).values())

    def overlays_of(self, path: str) -> list[Lease]:
        """Return the leases of the worktrees that build on a canonical path."""
        return list(self._by_baseline.get(path, {}).values())

    def workspace_of(self, path: str) -> Workspace | None:
        """Return the workspace that runs for a canonical path."""
        return next((lease.workspace for lease in self.of(path) if lease.workspace is not None), None)

    def holds(self, lease: Lease) -> bool:
        """Say whether this very lease is still held, not another one of its id."""
        return self._leases.get(lease.registration.id) is lease

    def add(self, lease: Lease) -> None:
        """Hold a lease whose id no other has."""
        registration = lease.registration
        self._leases[registration.id] = lease
        self._by_path.setdefault(registration.path, {})[registration.id] = lease
        if registration.baseline_path is not None:
            self._by_baseline.setdefault(registration.baseline_path, {})[registration.id] = lease

    def remove(self, lease: Lease) -> None:
        """Hold a lease no more."""
        if self.holds(lease):
            registration = lease.registration
            del self._leases[registration.id]
            _remove(self._by_path, registration.path, registration.id)
            if registration.baseline_path is not None:
                _remove(self._by_baseline, registration.baseline_path, registration.id)


def _remove(index: dict[str, dict[str, Lease]], path: str, registration_id: str) -> None:
    del index[path][registration_id]
    if not index[path]:
        del index[path]
