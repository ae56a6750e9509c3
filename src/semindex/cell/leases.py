"""Registering, releasing and looking at registrations."""

from contextlib import suppress

from attrs import frozen

from semindex.clock import utc_now
from semindex.leasing import Lease, Receipt
from semindex.model.answers import RegistrationStatus
from semindex.model.errors import OutsideRoots, PathRefused
from semindex.model.ids import collection_name
from semindex.model.places import Place
from semindex.model.registrations import Lifecycle, Registration
from semindex.model.status import State, WorkspaceStatus
from semindex.ports import Places
from semindex.registry import Registry


@frozen
class Leases:
    """The registrations of a cell, by the names that clients give."""

    registry: Registry
    places: Places
    allowed_roots: tuple[str, ...]
    """Canonical paths; workspaces lie at or below one of them."""

    async def register(
        self,
        registration_id: str,
        path: str,
        baseline: str | None = None,
        *,
        purge_on_release: bool | None = None,
        project_id: str | None = None,
        workspace_id: str | None = None,
        force: bool = False,
        adopt: bool = False,
    ) -> RegistrationStatus:
        """Register a workspace; a git worktree finds its registered primary checkout by itself.

        ``force`` allows the home directory and ``/``; ``adopt`` takes over a collection that another cell or the
        reference engine has made, also by repeating a registration. Raises InvalidInput, PathRefused, OutsideRoots,
        Conflict and its kinds, TooManyRegistrations, Starting.
        """
        place = await self.places.registrable(path, force=force)
        self._require_allowed(place)
        sighting = await self.places.look(place.path)
        wanted = Registration(
            registration_id,
            place.path,
            await self._baseline(place, baseline),
            utc_now(),
            purge_on_release=purge_on_release,
            project_id=project_id,
            workspace_id=workspace_id,
            device=sighting.parent_device,
        )
        lease = await self.registry.register(wanted)
        if adopt and lease.workspace is not None:
            lease.workspace.adopt()
        return self.status_of(lease)

    async def release(self, registration_id: str, *, purge: bool | None = None, force: bool = False) -> Receipt:
        """Release a registration; see :meth:`semindex.registry.Registry.release`."""
        return await self.registry.release(registration_id, purge=purge, force=force)

    def status(self, registration_id: str) -> RegistrationStatus:
        """Return the status of a registration. Raises UnknownRegistration, Starting."""
        return self.status_of(self.registry.lease(registration_id))

    def statuses(self) -> list[RegistrationStatus]:
        """Return the status of every registration that is known by now, sorted by id."""
        return [self.status_of(lease) for lease in self.registry.leases()]

    def listed(self) -> list[RegistrationStatus]:
        """Return the status of every registration, sorted by id. Raises Starting before all of them are known."""
        self.registry.require_restored()
        return self.statuses()

    async def status_at(self, path: str) -> RegistrationStatus | None:
        """Return the status of the oldest registration of a directory; None if it has none. Raises Starting."""
        with suppress(PathRefused):  # a directory that was deleted is still registered, by its canonical path
            path = (await self.places.directory(path)).path
        self.registry.require_restored()
        found = self.registry.leases_of(path)
        oldest = min(found, key=lambda lease: lease.registration.created_at, default=None)
        return None if oldest is None else self.status_of(oldest)

    def status_of(self, lease: Lease) -> RegistrationStatus:
        """Return the status of a lease."""
        registration = lease.registration
        if lease.workspace is not None:
            status = lease.workspace.status()
        else:
            status = WorkspaceStatus(
                registration.path,
                State.ERROR if registration.lifecycle is Lifecycle.STALE else State.STANDBY,
                lease.idle_because,
                last_error=lease.idle_because,
            )
        return RegistrationStatus(
            registration,
            registration.lifecycle,
            len(self.registry.leases_of(registration.path)),
            collection_name(registration.path),
            status,
        )

    async def _baseline(self, place: Place, named: str | None) -> str | None:
        if named is not None:
            base = await self.places.directory(named)
            self._require_allowed(base)
            return base.path
        if there := self.registry.leases_of(place.path):
            # Whoever joins a workspace takes it as it is, also where its primary checkout came or went meanwhile.
            return there[0].registration.baseline_path
        is_known = place.primary is not None and any(
            lease.registration.baseline_path is None for lease in self.registry.leases_of(place.primary)
        )
        return place.primary if is_known else None

    def _require_allowed(self, place: Place) -> None:
        if not any(lies_in(place.path, root) for root in self.allowed_roots):
            raise OutsideRoots(
                f"{place.path} lies outside of the directories that may be indexed; serve it or its parent as well, with --root or allowedRoots."
            )


def lies_in(path: str, directory: str) -> bool:
    """Say whether a canonical path is a canonical directory or lies below it."""
    return path == directory or path.startswith(directory.rstrip("/") + "/")
