"""The calls that several doors answer in the same words: checked input in, JSON out."""

from attrs import frozen

from semindex.cell.cell import Cell
from semindex.http import wire
from semindex.model.answers import RegistrationStatus


@frozen
class Calls:
    """The calls over one cell. Each raises what the call of the cell raises."""

    cell: Cell

    async def status(self) -> wire.Json:
        """Return the ServiceStatus of now."""
        status = await self.cell.status()
        return wire.service(status, [self.shown(each) for each in status.registrations])

    async def register(self, registration_id: str, wanted: wire.RegistrationRequest) -> wire.Json:
        """Register a workspace, and return its RegistrationStatus."""
        status = await self.cell.leases.register(
            registration_id,
            wanted.path,
            wanted.baseline_path or None,
            purge_on_release=wanted.purge_on_release,
            project_id=wanted.project_id or None,
            workspace_id=wanted.workspace_id or None,
            force=wanted.force,
            adopt=wanted.adopt,
        )
        return self.shown(status)

    async def release(self, registration_id: str, *, purge: bool | None, force: bool) -> wire.Json:
        """Release a registration, and return the receipt once that is done."""
        return wire.receipt(await self.cell.leases.release(registration_id, purge=purge, force=force))

    async def reindex(self, registration_id: str, *, force: bool) -> wire.Json:
        """Begin to index anew, and return the OperationStatus."""
        return wire.operation(await self.cell.operations.reindex(registration_id, force=force))

    def shown(self, status: RegistrationStatus) -> wire.Json:
        """Return a registration with the operation that is under way for it.

        An index that is about to be built anew or purged is not what somebody waits for, however complete it looks.
        """
        operation = self.cell.operations.running(status.registration.id)
        return wire.registration(status) | wire.present({"operation": operation and wire.operation(operation)})
