"""Registrations and the workspaces that they hold open: leases, single flight per id and path, release, restore.

A registration is a lease on a canonical path; the workspace of a path ends with its last lease. A release goes through the
steps of the service page, section 6, in a task of the cell, so that neither a client that goes away nor a second release
changes its course. Nothing is forgotten because it cannot be restored now.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import trio
from attrs import evolve

from semindex.engine.revision import Revision
from semindex.engine.workspace import Workspace
from semindex.leasing import Lease, Policy, Receipt, Release
from semindex.model.errors import (
    BaselineInUse,
    BaselineMissing,
    Conflict,
    Releasing,
    SemindexError,
    Starting,
    TooManyRegistrations,
    UnknownRegistration,
)
from semindex.model.registrations import Lifecycle, Registration, Retained
from semindex.ports import CellState

logger = logging.getLogger(__name__)

StartWorkspace = Callable[[str, Workspace | None], Awaitable[Workspace]]
"""Starts the workspace of a canonical path, above a baseline or none."""
Purge = Callable[[str], Awaitable[None]]
"""Deletes all data of a canonical path that has no workspace running; raises StoreUnavailable if that cannot be done now."""

DELETED = "The directory was deleted; restore it, or release the registration."


class Registry:
    """The registrations of one cell."""

    def __init__(
        self,
        state: CellState,
        start: StartWorkspace,
        purge: Purge,
        policy: Policy,
        nursery: trio.Nursery,
        changes: Revision,
    ) -> None:
        """``nursery`` is where releases run to their end, whoever asked for them."""
        self.changes = changes
        self._state = state
        self._start = start
        self._purge = purge
        self._policy = policy
        self._nursery = nursery
        self._leases: dict[str, Lease] = {}
        self._claims: dict[str, tuple[str, str | None]] = {}
        """Id → path and baseline of registrations that are being accepted."""
        self._locks: dict[str, trio.Lock] = {}
        self.restored = trio.Event()

    # Looking

    def lease(self, registration_id: str) -> Lease:
        """Return a lease. Raises UnknownRegistration, and Starting before the registry was read."""
        if (lease := self._leases.get(registration_id)) is not None:
            return lease
        if not self.restored.is_set():
            raise Starting("The cell is starting and has not read its registrations yet; try again in a moment.")
        raise UnknownRegistration(f"There is no registration {registration_id}; register the workspace first.")

    def leases(self) -> list[Lease]:
        """Return all leases, sorted by id."""
        return [self._leases[id_] for id_ in sorted(self._leases)]

    def leases_of(self, path: str) -> list[Lease]:
        """Return the leases of a canonical path."""
        return [lease for lease in self._leases.values() if lease.registration.path == path]

    def overlays_of(self, path: str) -> list[Lease]:
        """Return the leases of the worktrees that build on a canonical path."""
        return [lease for lease in self._leases.values() if lease.registration.baseline_path == path]

    def workspace_of(self, path: str) -> Workspace | None:
        """Return the running workspace of a canonical path."""
        return next((lease.workspace for lease in self.leases_of(path) if lease.workspace is not None), None)

    def paths(self) -> list[str]:
        """Return the canonical paths of all workspaces."""
        return list({lease.registration.path for lease in self._leases.values()})

    # Registering

    async def register(self, wanted: Registration) -> Lease:
        """Accept a registration, persist it, and start its workspace; a repetition changes nothing.

        Waits neither for the embedder nor for a scan. Raises Conflict and its kinds, TooManyRegistrations, Starting.
        """
        if not self.restored.is_set():
            raise Starting("The cell is starting and has not read its registrations yet; try again in a moment.")
        if (known := self._repeated(wanted)) is not None:
            return known
        self._claims[wanted.id] = (wanted.path, wanted.baseline_path)
        try:
            async with self._exclusive(wanted.path):
                if (known := self._repeated(wanted)) is not None:
                    return known
                self._check(wanted)
                await self._state.registrations.save(wanted)
                return await self._open(wanted)
        finally:
            self._claims.pop(wanted.id, None)

    def _repeated(self, wanted: Registration) -> Lease | None:
        """Return the lease that the wanted one repeats. Raises if its id is taken by another, or is on its way out."""
        place = (wanted.path, wanted.baseline_path)
        if self._claims.get(wanted.id, place) != place:
            raise Conflict(f"The id {wanted.id} is being registered for another workspace; choose another id.")
        lease = self._leases.get(wanted.id)
        if lease is None:
            return None
        if (lease.registration.path, lease.registration.baseline_path) != place:
            raise Conflict(f"The id {wanted.id} belongs to another workspace; choose another id, or release it first.")
        if lease.registration.lifecycle is Lifecycle.RELEASING:
            raise Releasing(f"The registration {wanted.id} is being released; register it again afterwards.")
        return lease

    def _check(self, wanted: Registration) -> None:
        if len(self._leases) >= self._policy.max_registrations:
            raise TooManyRegistrations(
                f"The cell holds {len(self._leases)} registrations already; release some, or raise limits.maxRegistrations."
            )
        for lease in self.leases_of(wanted.path):
            if lease.registration.lifecycle is Lifecycle.RELEASING:
                raise Releasing("The workspace is being released; register it again afterwards.")
            if lease.registration.baseline_path != wanted.baseline_path:
                raise Conflict("The workspace is already registered with a different baseline.")
        if wanted.baseline_path is not None:
            self._check_baseline(wanted.path, wanted.baseline_path)

    def _check_baseline(self, path: str, baseline_path: str) -> None:
        if baseline_path == path:
            raise Conflict("A worktree's baseline must differ from the worktree.")
        baselines = [lease for lease in self.leases_of(baseline_path) if lease.registration.baseline_path is None]
        if not baselines:
            raise BaselineMissing("The primary checkout must be registered before its worktree.")
        if all(lease.registration.lifecycle is Lifecycle.RELEASING for lease in baselines):
            raise Releasing("The primary checkout is being released.")

    async def _open(self, registration: Registration) -> Lease:
        """Add the lease, with the workspace of its path: the running one, or a new one."""
        lease = self._leases[registration.id] = Lease(registration)
        if registration.lifecycle is Lifecycle.STALE:
            lease.idle_because = DELETED
        elif registration.lifecycle is Lifecycle.ACTIVE:
            await self._start_workspace(lease)
        self.changes.bump()
        return lease

    async def _start_workspace(self, lease: Lease) -> None:
        path, baseline_path = lease.registration.path, lease.registration.baseline_path
        baseline = None if baseline_path is None else self.workspace_of(baseline_path)
        if (running := self.workspace_of(path)) is not None:
            lease.workspace = running
        elif baseline_path is not None and baseline is None:
            lease.idle_because = "The primary checkout that this worktree builds on is not indexed."
        else:
            workspace = await self._start(path, baseline)
            for other in self.leases_of(path):
                other.workspace = workspace
            for overlay in self.overlays_of(path):
                if overlay.workspace is None and overlay.registration.lifecycle is Lifecycle.ACTIVE:
                    await self._start_workspace(overlay)

    # Restoring

    async def restore(self) -> None:
        """Read the registrations and open their workspaces, primaries first; finish the releases that were begun.

        What cannot be opened now stays registered and says why: a workspace whose root or store is missing starts all the
        same and tries again by itself.
        """
        registrations = await self._state.registrations.load_all()
        for is_worktree in (False, True):
            for registration in registrations:
                if (registration.baseline_path is not None) is is_worktree:
                    await self._open(registration)
        self.restored.set()
        self.changes.bump()
        for lease in self.leases():
            if lease.registration.lifecycle is Lifecycle.RELEASING:
                self._begin_release(lease, purge=lease.registration.purge is not False)

    # Purging without releasing

    async def put_to_rest(self, lease: Lease) -> None:
        """Delete the data of a lease's workspace, which stays registered and idle; worktrees that build on it pause.

        Raises StoreUnavailable if the data could not be deleted now.
        """
        path = lease.registration.path
        for overlay in self.overlays_of(path):
            await self._rest(overlay.registration.path, "The primary checkout was purged.", purge=False)
        await self._rest(path, "The index was purged; reindex the registration to build it again.", purge=True)

    async def _rest(self, path: str, reason: str, *, purge: bool) -> None:
        async with self._exclusive(path):
            workspace = self.workspace_of(path)
            if workspace is not None:
                workspace.stop(purge=purge)
                await workspace.closed.wait()
            for lease in self.leases_of(path):
                lease.workspace, lease.idle_because = None, reason
            self.changes.bump()
            if purge and not (workspace is not None and workspace.purged):
                await self._purge(path)

    async def retire(self, path: str) -> None:
        """Take note that a directory was deleted: its watcher ends, its data go or stay as the retention policy says."""
        for lease in self.leases_of(path):
            lease.registration = evolve(lease.registration, lifecycle=Lifecycle.STALE)
            await self._state.registrations.set_lifecycle(lease.registration.id, Lifecycle.STALE)
        purge = any(self._purges(lease.registration, None) for lease in self.leases_of(path))
        await self._rest(path, DELETED, purge=purge)

    async def revive(self, path: str) -> None:
        """Take note that a deleted directory is there again, and index it."""
        async with self._exclusive(path):
            for lease in self.leases_of(path):
                lease.registration = evolve(lease.registration, lifecycle=Lifecycle.ACTIVE)
                await self._state.registrations.set_lifecycle(lease.registration.id, Lifecycle.ACTIVE)
                if lease.workspace is None:
                    await self._start_workspace(lease)
        self.changes.bump()

    async def purge_unregistered(self, path: str) -> None:
        """Delete what is stored for a path, unless it is registered by now. Raises StoreUnavailable."""
        async with self._exclusive(path):
            if not self.leases_of(path):
                await self._purge(path)

    async def wake(self, lease: Lease) -> Workspace:
        """Return the running workspace of a lease, started again if it was put to rest. Raises BaselineMissing."""
        async with self._exclusive(lease.registration.path):
            if lease.workspace is None:
                await self._start_workspace(lease)
        if lease.workspace is None:
            raise BaselineMissing(lease.idle_because)
        return lease.workspace

    def stop_all(self) -> None:
        """Ask every workspace for its end, its data kept; the nursery of the workspaces says when that has come."""
        for lease in self._leases.values():
            if lease.workspace is not None:
                lease.workspace.stop(purge=False)

    # Releasing

    async def release(self, registration_id: str, *, purge: bool | None = None, force: bool = False) -> Receipt:
        """Release a registration and return its receipt once all of it is done; asking twice waits for the same end.

        ``purge`` overrides the registration's own wish and the retention policy. Raises UnknownRegistration, BaselineInUse
        unless forced, StoreUnavailable when the data could not be deleted now: the registration then stays ``releasing``
        and is finished later.
        """
        lease = self.lease(registration_id)
        if lease.release is None:
            overlays = self.overlays_of(lease.registration.path) if self._is_last(lease) else []
            if overlays and not force:
                names = ", ".join(sorted(overlay.registration.id for overlay in overlays))
                raise BaselineInUse(f"Worktrees still build on this primary checkout; release them first: {names}.")
            for overlay in overlays:
                await self.release(overlay.registration.id)
        if lease.release is None:
            self._begin_release(lease, purge=self._purges(lease.registration, purge))
        assert lease.release is not None
        return await lease.release.result()

    def _is_last(self, lease: Lease) -> bool:
        return all(other is lease or other.release is not None for other in self.leases_of(lease.registration.path))

    def _purges(self, registration: Registration, wish: bool | None) -> bool:
        for choice in (wish, registration.purge_on_release):
            if choice is not None:
                return choice
        return registration.baseline_path is not None and self._policy.purge_worktrees

    def _begin_release(self, lease: Lease, *, purge: bool) -> None:
        lease.release = Release()
        lease.registration = evolve(lease.registration, lifecycle=Lifecycle.RELEASING, purge=purge)
        self.changes.bump()
        self._nursery.start_soon(self._run_release, lease, lease.release)

    async def _run_release(self, lease: Lease, release: Release) -> None:
        try:
            release.receipt = await self._carry_out(lease)
        except SemindexError as error:
            # The registration stays "releasing"; whoever asks next, or the next start, carries on.
            release.error = error
            lease.release = None
            logger.warning("release of %s: %s", lease.registration.id, error)
        finally:
            release.done.set()
            self.changes.bump()

    async def _carry_out(self, lease: Lease) -> Receipt:
        registration, began = lease.registration, trio.current_time()
        purge = registration.purge is not False
        await self._state.registrations.set_lifecycle(registration.id, Lifecycle.RELEASING, purge)
        async with self._exclusive(registration.path):
            workspace = lease.workspace
            is_last = all(other is lease for other in self.leases_of(registration.path))
            points = size = drained = cancelled = 0
            if is_last and workspace is not None:
                points, size = workspace.index.table.chunks, workspace.stored_bytes()
                before = len(workspace.index.queue)
                workspace.stop(purge=purge)
                await workspace.closed.wait()
                cancelled = len(workspace.index.queue)
                drained = before - cancelled
            if is_last and purge and not (workspace is not None and workspace.purged):
                await self._purge(registration.path)
            retained = None
            if is_last and not purge:
                now = datetime.now(UTC)
                retained = Retained(registration.path, registration.baseline_path, now, self._policy.ttl)
            await self._state.registrations.delete(registration.id, retained)
            del self._leases[registration.id]
        purged = is_last and purge
        duration = timedelta(seconds=trio.current_time() - began)
        return Receipt(
            registration.id, purged, points if purged else 0, size if purged else 0, drained, cancelled, duration
        )

    @asynccontextmanager
    async def _exclusive(self, path: str) -> AsyncIterator[None]:
        """Let one task at a time open or close the workspace of a path."""
        lock = self._locks.setdefault(path, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._locks.pop(path, None)
