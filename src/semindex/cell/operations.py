"""Reindex and purge: begun by a client, carried out in the background, looked at later."""

import logging
import uuid
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import trio
from attrs import evolve

from semindex.clock import utc_now
from semindex.engine.revision import Revision
from semindex.leasing import Lease
from semindex.model.errors import (
    BaselineInUse,
    Closing,
    ScanFailed,
    SemindexError,
    Starting,
    UnknownOperation,
    first_of,
)
from semindex.model.limits import KEPT_OPERATIONS
from semindex.model.registrations import INTERRUPTED, Operation, OperationKind, OperationState
from semindex.model.status import State
from semindex.ports import CellState
from semindex.registry import Registry
from semindex.shielding import grace_period

logger = logging.getLogger(__name__)

LAST_WORD = 2.0
"""Seconds that are left for writing the end of an operation when the cell stops."""


class Operations:
    """The operations of a cell, the latest that ended included."""

    def __init__(self, state: CellState, registry: Registry, changes: Revision, nursery: trio.Nursery) -> None:
        """``nursery`` is where they run, whoever started them."""
        self._state = state
        self._registry = registry
        self._changes = changes
        self._nursery = nursery
        self._known: dict[str, Operation] = {}
        self._under_way: dict[str, dict[str, Operation]] = {}
        """Canonical path → the operations that run for it by id, the first begun first."""
        self._is_loaded = False

    async def load(self) -> None:
        """Read the operations of earlier runs."""
        self._known |= {operation.id: operation for operation in await self._state.operations.load_all()}
        self._is_loaded = True

    def get(self, operation_id: str) -> Operation:
        """Return an operation. Raises UnknownOperation, and Starting before those of earlier runs were read."""
        if (operation := self._known.get(operation_id)) is not None:
            return operation
        if not self._is_loaded:
            raise Starting("The cell is starting and has not read its operations yet; try again in a moment.")
        raise UnknownOperation(f"There is no operation {operation_id}.")

    def running(self, registration_id: str) -> Operation | None:
        """Return the operation that is under way for a registration's workspace, the first of several.

        Raises UnknownRegistration, Starting.
        """
        path = self._registry.lease(registration_id).registration.path
        return next(iter(self._under_way.get(path, {}).values()), None)

    async def reindex(self, registration_id: str, *, force: bool = False) -> Operation:
        """Chunk every file anew, replacing file by file while searches go on; texts embedded before are not sent again.

        Raises UnknownRegistration, Releasing, StateUnwritable, BaselineInUse unless forced.
        """
        return await self._begin(registration_id, OperationKind.REINDEX, self._reindex, force=force)

    async def purge(self, registration_id: str, *, force: bool = False) -> Operation:
        """Delete what is stored for the workspace; it stays registered, and idle until it is reindexed.

        Raises UnknownRegistration, Releasing, StateUnwritable, BaselineInUse unless forced.
        """
        return await self._begin(registration_id, OperationKind.PURGE, self._purge, force=force)

    async def _begin(
        self, registration_id: str, kind: OperationKind, work: Callable[[Lease], Awaitable[None]], *, force: bool
    ) -> Operation:
        lease = self._registry.lease(registration_id)
        lease.require_active()
        if not force and (overlays := self._registry.overlays_of(lease.registration.path)):
            names = ", ".join(sorted(overlay.registration.id for overlay in overlays))
            raise BaselineInUse(f"Worktrees build on this primary checkout: {names}. Release them first, or force it.")
        operation = Operation(str(uuid.uuid4()), registration_id, kind, utc_now())
        # First on disk: one that could not be written must not be shown, since nothing carries it out.
        await self._state.operations.save(operation)
        self._known[operation.id] = operation
        self._under_way.setdefault(lease.registration.path, {})[operation.id] = operation
        self._nursery.start_soon(self._run, operation, lease, work)
        self._changes.bump()
        return operation

    async def _run(self, operation: Operation, lease: Lease, work: Callable[[Lease], Awaitable[None]]) -> None:
        path = lease.registration.path
        async with AsyncExitStack() as if_cancelled:
            if_cancelled.push_async_callback(self._end, operation, path, INTERRUPTED)
            error = await self._carry_out(operation, lease, work)
            if_cancelled.pop_all()
        await self._end(operation, path, error)

    async def _carry_out(
        self, operation: Operation, lease: Lease, work: Callable[[Lease], Awaitable[None]]
    ) -> str | None:
        """Do the work; return why it failed, None if it did not."""
        error: str | None = None
        try:
            await work(lease)
        except* Closing:
            error = INTERRUPTED
        except* SemindexError as group:
            error = str(first_of(group))
        except* Exception:
            error = "An unexpected error; see the log."
            logger.exception("the %s of %s failed", operation.kind, operation.registration_id)
        return error

    async def _reindex(self, lease: Lease) -> None:
        workspace = await self._registry.wake(lease)
        await workspace.reindex()
        status = await workspace.settled()
        if status.state is not State.INDEXED:
            raise ScanFailed(status.message if status.state is State.ERROR else INTERRUPTED)

    async def _purge(self, lease: Lease) -> None:
        await self._registry.put_to_rest(lease)

    async def _end(self, operation: Operation, path: str, error: str | None) -> None:
        state = OperationState.COMPLETED if error is None else OperationState.FAILED
        # First in memory: it has ended, whether that can be written or not.
        ended = self._known[operation.id] = evolve(operation, state=state, completed_at=utc_now(), error=error)
        self._under_way[path].pop(operation.id)
        if not self._under_way[path]:
            del self._under_way[path]
        self._forget_the_oldest()
        self._changes.bump()
        async with grace_period(LAST_WORD, "writing the end of an operation"):
            try:
                await self._state.operations.save(ended)
            except SemindexError as trouble:
                # The next start finds it still running, and says that it was interrupted.
                logger.warning("the end of the operation %s was not written: %s", operation.id, trouble)

    def _forget_the_oldest(self) -> None:
        ended = [known.id for known in self._known.values() if known.state is not OperationState.RUNNING]
        for operation_id in ended[:-KEPT_OPERATIONS]:
            del self._known[operation_id]
