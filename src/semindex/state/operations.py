"""Operations that clients started, in the cell's database."""

from datetime import datetime
from functools import partial

from semindex.model.limits import KEPT_OPERATIONS
from semindex.model.registrations import INTERRUPTED, Operation, OperationKind, OperationState
from semindex.state.columns import to_text, to_time, upsert
from semindex.state.database import Connection, Database

_SAVE = upsert("operations", "id", "registration_id", "kind", "started_at", "state", "completed_at", "error")


class SqliteOperations:
    """Implements :class:`semindex.ports.Operations`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_all(self) -> list[Operation]:
        """Return all operations, the oldest first."""
        return await self._database.read(_load_all)

    async def save(self, operation: Operation) -> None:
        """Write an operation, replacing one of the same id; of those that ended only the latest are kept."""
        await self._database.write(partial(_save, operation=operation))

    async def interrupt_running(self, at: datetime) -> None:
        """Write down that the operations still running have failed, since the process that ran them is gone."""
        await self._database.write(partial(_interrupt_running, at=at))


def _load_all(connection: Connection) -> list[Operation]:
    rows = connection.execute(
        """SELECT id, registration_id, kind, started_at, state, completed_at, error
        FROM operations ORDER BY started_at, id"""
    )
    return [
        Operation(
            key,
            registration_id,
            OperationKind(kind),
            to_time(started_at),
            OperationState(state),
            None if completed_at is None else to_time(completed_at),
            error,
        )
        for key, registration_id, kind, started_at, state, completed_at, error in rows
    ]


def _save(connection: Connection, operation: Operation) -> None:
    row = (
        operation.id,
        operation.registration_id,
        operation.kind.value,
        to_text(operation.started_at),
        operation.state.value,
        None if operation.completed_at is None else to_text(operation.completed_at),
        operation.error,
    )
    connection.execute(_SAVE, row)
    connection.execute(
        """DELETE FROM operations WHERE id IN (
            SELECT id FROM operations WHERE state <> ? ORDER BY started_at DESC, id DESC LIMIT -1 OFFSET ?
        )""",
        (OperationState.RUNNING.value, KEPT_OPERATIONS),
    )


def _interrupt_running(connection: Connection, at: datetime) -> None:
    connection.execute(
        "UPDATE operations SET state = ?, completed_at = ?, error = ? WHERE state = ?",
        (OperationState.FAILED.value, to_text(at), INTERRUPTED, OperationState.RUNNING.value),
    )
