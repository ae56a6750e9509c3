"""Registrations: leases on workspaces, accepted, persisted, restored and released.

A registration is a lease on a canonical path; the workspace of a path ends with its last lease. A release goes
through the steps of docs/lifecycle.md (Release) in a task of the cell, so that neither a client that goes away nor
a second release changes its course. Nothing is forgotten because it cannot be restored now. Which workspaces run is
:mod:`semindex.openings`'s.
"""

import logging
from datetime import timedelta

import trio
from attrs import evolve

from semindex.clock import utc_now
from semindex.engine.revision import Revision
from semindex.engine.workspace import Workspace
from semindex.leasing import DELETED, Contents, Lease, LeaseBook, Policy, Receipt, Release
from semindex.model.errors import (
    BaselineInUse,
    BaselineMissing,
    Conflict,
    Releasing,
    SemindexError,
    Starting,
    TooManyRegistrations,
    UnknownRegistration,
    first_of,
)
from semindex.model.registrations import Lifecycle, Registration, Retained
from semindex.openings import Hindrance, Openings, Purge, StartWorkspace, unhindered
from semindex.ports import CellState

logger = logging.getLogger(__name__)

PURGED = "The index was purged; reindex the registration to build it again."


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
        *,
        hindrance: Hindrance = unhindered,
    ) -> None:
        """Releases run to their end in ``nursery``, whoever asked; ``hindrance`` tells which workspaces may not run."""
        self.changes = changes
        self.restored = trio.Event()
        self._state = state
        self._policy = policy
        self._nursery = nursery
        self._book = LeaseBook()
        self._openings = Openings(self._book, start, purge, changes, hindrance)
        self._claims: dict[str, tuple[str, str | None]] = {}
        """Id → path and baseline of registrations that are being accepted."""

    # Looking

    def lease(self, registration_id: str) -> Lease:
        """Return a lease. Raises UnknownRegistration, and Starting before the registry was read."""
        if (lease := self._book.get(registration_id)) is not None:
            return lease
        self.require_restored()
        raise UnknownRegistration(f"There is no registration {registration_id}; register the workspace first.")

    def leases(self) -> list[Lease]:
        """Return all leases, sorted by id."""
        return self._book.all()

    def leases_of(self, path: str) -> list[Lease]:
        """Return the leases of a canonical path."""
        return self._book.of(path)

    def overlays_of(self, path: str) -> list[Lease]:
        """Return the leases of the worktrees that build on a canonical path."""
        return self._book.overlays_of(path)

    def workspace_of(self, path: str) -> Workspace | None:
        """Return the running workspace of a canonical path."""
        return self._book.workspace_of(path)

    def holds(self, lease: Lease) -> bool:
        """Say whether this very lease is still held, not another one of its id."""
        return self._book.holds(lease)

    def paths(self) -> list[str]:
        """Return the canonical paths of all workspaces, those being accepted included."""
        return list(
            {lease.registration.path for lease in self._book.all()} | {path for path, _ in self._claims.values()}
        )

    # Registering

    async def register(self, wanted: Registration) -> Lease:
        """Accept a registration, persist it, and start its workspace; a repetition changes nothing.

        Waits neither for the embedder nor for a scan. Raises Conflict and its kinds, TooManyRegistrations, Starting.
        """
        self.require_restored()
        self._repeated(wanted)
        self._claims[wanted.id] = (wanted.path, wanted.baseline_path)
        try:
            async with self._openings.exclusive(wanted.path):
                lease = self._repeated(wanted)
                if lease is None:
                    self._check(wanted)
                    await self._state.registrations.save(wanted)
                    lease = Lease(wanted)
                    self._book.add(lease)
                if lease.workspace is None and not lease.idle_because:
                    await self._openings.open(lease)
                return lease
        finally:
            self._claims.pop(wanted.id, None)

    def require_restored(self) -> None:
        """Raise Starting before the registrations were read."""
        if not self.restored.is_set():
            raise Starting

    def _repeated(self, wanted: Registration) -> Lease | None:
        """Return the lease that the wanted one repeats. Raises if its id is taken by another, or is on its way out."""
        place = (wanted.path, wanted.baseline_path)
        if self._claims.get(wanted.id, place) != place:
            raise Conflict(f"The id {wanted.id} is being registered for another workspace; choose another id.")
        lease = self._book.get(wanted.id)
        if lease is None:
            return None
        if (lease.registration.path, lease.registration.baseline_path) != place:
            raise Conflict(f"The id {wanted.id} belongs to another workspace; choose another id, or release it first.")
        lease.require_active()
        return lease

    def _check(self, wanted: Registration) -> None:
        if (number := len(self._book.all())) >= self._policy.max_registrations:
            raise TooManyRegistrations(
                f"The cell holds {number} registrations already; release some, or raise limits.maxRegistrations."
            )
        for lease in self._book.of(wanted.path):
            lease.require_active()
            if lease.registration.baseline_path != wanted.baseline_path:
                raise Conflict("The workspace is already registered with a different baseline.")
        if wanted.baseline_path is not None:
            self._check_baseline(wanted.path, wanted.baseline_path)

    def _check_baseline(self, path: str, baseline_path: str) -> None:
        if baseline_path == path:
            raise Conflict("A worktree's baseline must differ from the worktree.")
        baselines = [lease for lease in self._book.of(baseline_path) if lease.registration.baseline_path is None]
        if not baselines:
            raise BaselineMissing(
                f"The primary checkout {baseline_path} must be registered before its worktree; register it first."
            )
        if all(lease.registration.lifecycle is Lifecycle.RELEASING for lease in baselines):
            raise Releasing("The primary checkout is being released.")

    # Restoring

    async def restore(self) -> None:
        """Read the registrations and open their workspaces, primaries first; finish the releases that were begun.

        What cannot be opened now stays registered and says why: a workspace whose root or store is missing starts all
        the same and tries again by itself.
        """
        leases = [Lease(registration) for registration in await self._state.registrations.load_all()]
        for lease in leases:
            self._book.add(lease)
        for lease in sorted(leases, key=lambda lease: lease.registration.baseline_path is not None):
            if lease.registration.lifecycle is Lifecycle.STALE:
                lease.idle_because = DELETED
            elif lease.registration.lifecycle is Lifecycle.ACTIVE:
                async with self._openings.exclusive(lease.registration.path):
                    await self._openings.open(lease)
        self.restored.set()
        self.changes.bump()
        await self.resume_releases()

    # Purging without releasing

    async def put_to_rest(self, lease: Lease) -> None:
        """Delete the data of a lease's workspace, which stays registered and idle; worktrees that build on it pause.

        Raises StoreUnavailable if the data could not be deleted now, UnknownRegistration, Releasing.
        """
        async with self._openings.exclusive(lease.registration.path):
            self._require_active(lease)
            await self._openings.close(lease.registration.path, PURGED, purge=True)

    async def wake(self, lease: Lease) -> Workspace:
        """Return the running workspace of a lease, started again if it was put to rest.

        Raises BaselineMissing, UnknownRegistration, Releasing.
        """
        async with self._openings.exclusive(lease.registration.path):
            self._require_active(lease)
            if lease.workspace is None:
                await self._openings.open(lease)
            if lease.workspace is None:
                raise BaselineMissing(lease.idle_because)
            return lease.workspace

    def _require_active(self, lease: Lease) -> None:
        if not self._book.holds(lease):
            raise UnknownRegistration(f"The registration {lease.registration.id} was released.")
        lease.require_active()

    async def retire(self, path: str) -> None:
        """Take note that a directory was deleted: its watcher ends, its data go or stay as the retention policy says.

        Raises StoreUnavailable if they could not be deleted now, StateUnwritable; a repetition does the rest.
        """
        async with self._openings.exclusive(path):
            active = [lease for lease in self._book.of(path) if lease.registration.lifecycle is Lifecycle.ACTIVE]
            if active:
                purge = any(self._policy.purges(lease.registration, None) for lease in active)
                await self._openings.close(path, DELETED, purge=purge)
            # Only now: whoever looks for directories to retire passes over those that are stale.
            for lease in active:
                await self._move(lease, Lifecycle.ACTIVE, Lifecycle.STALE)

    async def revive(self, path: str) -> None:
        """Take note that a directory is there which counted as deleted, and index it. Raises StateUnwritable."""
        async with self._openings.exclusive(path):
            for lease in self._book.of(path):
                if lease.is_deleted:
                    await self._move(lease, Lifecycle.STALE, Lifecycle.ACTIVE)
                    if lease.registration.lifecycle is Lifecycle.ACTIVE:
                        await self._openings.open(lease)

    async def _move(self, lease: Lease, before: Lifecycle, after: Lifecycle) -> None:
        """Move a lease from one lifecycle to another, on disk first; one that is being released stays so."""
        if lease.registration.lifecycle is before:
            await self._state.registrations.set_lifecycle(lease.registration.id, after)
            if lease.registration.lifecycle is before:
                lease.registration = evolve(lease.registration, lifecycle=after)

    async def purge_unregistered(self, path: str) -> None:
        """Delete what is stored for a path, unless it is registered by now. Raises StoreUnavailable."""
        await self._openings.purge_unregistered(path)

    def stop_all(self) -> None:
        """Ask every workspace for its end, its data kept; the nursery of the workspaces says when that has come."""
        self._openings.stop_all()

    # Releasing

    async def release(self, registration_id: str, *, purge: bool | None = None, force: bool = False) -> Receipt:
        """Release a registration and return its receipt once all of it is done; asking twice waits for the same end.

        ``purge`` overrides the registration's own wish and the retention policy. Raises UnknownRegistration,
        BaselineInUse unless forced, StoreUnavailable when the data could not be deleted now: the registration then
        stays ``releasing`` and is finished later.
        """
        lease, worktrees = self.lease(registration_id), list[str]()
        while lease.release is None and (overlays := self._dependents(lease)):
            if not force:
                raise BaselineInUse(
                    f"Worktrees still build on this primary checkout; release them first: {', '.join(overlays)}."
                )
            worktrees.append((await self.release(overlays[0])).released)
        if lease.release is None:
            if not self._book.holds(lease):
                raise UnknownRegistration(f"The registration {registration_id} was released.")
            self._begin_release(lease, purge=self._policy.purges(lease.registration, purge))
        assert lease.release is not None
        return evolve(await lease.release.result(), worktrees=tuple(worktrees))

    def _dependents(self, lease: Lease) -> list[str]:
        """Return the ids of worktrees that would lose their baseline, those being accepted included."""
        path = lease.registration.path
        if any(other is not lease and other.release is None for other in self._book.of(path)):
            return []
        claimed = [
            id_ for id_, (_, baseline) in self._claims.items() if baseline == path and self._book.get(id_) is None
        ]
        if claimed:
            raise BaselineInUse(f"A worktree is just being registered on this primary checkout: {', '.join(claimed)}.")
        return sorted(overlay.registration.id for overlay in self._book.overlays_of(path))

    async def resume_releases(self) -> None:
        """Begin anew the releases that were begun and could not be finished; they run on by themselves."""
        await trio.lowlevel.checkpoint()
        for lease in self.leases():
            if lease.registration.lifecycle is Lifecycle.RELEASING and lease.release is None:
                self._begin_release(lease, purge=lease.registration.purge is not False)

    def _begin_release(self, lease: Lease, *, purge: bool) -> None:
        lease.release = Release()
        lease.registration = evolve(lease.registration, lifecycle=Lifecycle.RELEASING, purge=purge)
        self.changes.bump()
        self._nursery.start_soon(self._run_release, lease, lease.release)

    async def _run_release(self, lease: Lease, release: Release) -> None:
        try:
            release.receipt = await self._carry_out(lease)
        except* SemindexError as group:
            release.error = first_of(group)
        except* Exception:
            logger.exception("release of %s failed", lease.registration.id)
            release.error = SemindexError("The release failed in an unexpected way; the log says more.")
        finally:
            if release.error is not None:
                # The registration stays "releasing"; the janitor, whoever asks next, or the next start carries on.
                logger.warning("release of %s: %s", lease.registration.id, release.error)
                lease.release = None
            release.done.set()
            self.changes.bump()

    async def _carry_out(self, lease: Lease) -> Receipt:
        registration, began = lease.registration, trio.current_time()
        path, purge = registration.path, registration.purge is not False
        async with self._openings.exclusive(path):
            await self._state.registrations.set_lifecycle(registration.id, Lifecycle.RELEASING, purge)
            is_last = all(other is lease for other in self._book.of(path))
            ended = lease.workspace if is_last else None
            before = Contents.of(ended)
            if is_last:
                await self._openings.close(path, "The registration is being released.", purge=purge)
            retained = None
            if is_last and not purge:
                retained = Retained(path, registration.baseline_path, utc_now(), self._policy.ttl)
            await self._state.registrations.delete(registration.id, retained)
            self._book.remove(lease)
        after = Contents.of(ended)
        return Receipt(
            registration.id,
            purged=is_last and purge,
            points=before.points if purge else 0,
            bytes=before.bytes if purge else 0,
            drained=after.settled - before.settled,
            cancelled=after.outstanding,
            duration=timedelta(seconds=trio.current_time() - began),
        )
