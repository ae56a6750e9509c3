"""Registrations, and what is retained of released ones, in the cell's database."""

from functools import partial
from typing import Any

from semindex.model.errors import UnknownRegistration
from semindex.model.registrations import Lifecycle, Registration, Retained
from semindex.state.columns import to_flag, to_text, to_time, upsert
from semindex.state.database import Connection, Database

_SAVE = upsert(
    "registrations",
    "id",
    "path",
    "baseline_path",
    "created_at",
    "lifecycle",
    "purge_on_release",
    "project_id",
    "workspace_id",
    "device",
    "purge",
)
_RETAIN = upsert("retained", "path", "baseline_path", "since", "ttl")


class SqliteRegistrations:
    """Implements :class:`semindex.ports.Registrations`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_all(self) -> list[Registration]:
        """Return all registrations, the oldest first."""
        return await self._database.read(_load_all)

    async def save(self, registration: Registration) -> None:
        """Write a registration, replacing one of the same id; what was retained of its path is adopted by it."""
        await self._database.write(partial(_save, registration=registration))

    async def set_lifecycle(self, registration_id: str, lifecycle: Lifecycle, purge: bool | None = None) -> None:
        """Write where a registration stands and what its release is to do. Raises UnknownRegistration."""
        if not await self._database.write(
            partial(_set_lifecycle, key=registration_id, lifecycle=lifecycle, purge=purge)
        ):
            raise UnknownRegistration.of(registration_id)

    async def delete(self, registration_id: str, retained: Retained | None = None) -> bool:
        """Forget a registration and its tokens, in the same instant retain its data; return whether there was one."""
        return await self._database.write(partial(_delete, key=registration_id, retained=retained))

    async def load_retained(self) -> list[Retained]:
        """Return what is kept without a registration, the oldest first."""
        return await self._database.read(_load_retained)

    async def discard_retained(self, path: str) -> bool:
        """Forget that a path's data are kept; return whether they were."""
        return await self._database.write(partial(_discard_retained, path=path))


def _load_all(connection: Connection) -> list[Registration]:
    rows = connection.execute(
        """SELECT id, path, baseline_path, created_at, lifecycle, purge_on_release, project_id, workspace_id, device,
            purge
        FROM registrations ORDER BY created_at, id"""
    )
    return [
        Registration(
            key,
            path,
            baseline_path,
            to_time(created_at),
            Lifecycle(lifecycle),
            to_flag(on_release),
            project_id,
            workspace_id,
            None if device is None else int(device),
            to_flag(purge),
        )
        for key, path, baseline_path, created_at, lifecycle, on_release, project_id, workspace_id, device, purge in rows
    ]


def _save(connection: Connection, registration: Registration) -> None:
    row: tuple[Any, ...] = (
        registration.id,
        registration.path,
        registration.baseline_path,
        to_text(registration.created_at),
        registration.lifecycle.value,
        registration.purge_on_release,
        registration.project_id,
        registration.workspace_id,
        None if registration.device is None else str(registration.device),
        registration.purge,
    )
    connection.execute(_SAVE, row)
    connection.execute("DELETE FROM retained WHERE path = ?", (registration.path,))


def _set_lifecycle(connection: Connection, key: str, lifecycle: Lifecycle, purge: bool | None) -> bool:
    changed = connection.execute(
        "UPDATE registrations SET lifecycle = ?, purge = ? WHERE id = ?", (lifecycle.value, purge, key)
    )
    return changed.rowcount > 0


def _delete(connection: Connection, key: str, retained: Retained | None) -> bool:
    deleted = connection.execute("DELETE FROM registrations WHERE id = ?", (key,)).rowcount > 0
    if retained is not None:
        connection.execute(_RETAIN, (retained.path, retained.baseline_path, to_text(retained.since), retained.ttl))
    return deleted


def _load_retained(connection: Connection) -> list[Retained]:
    rows = connection.execute("SELECT path, baseline_path, since, ttl FROM retained ORDER BY since, path")
    return [Retained(path, baseline_path, to_time(since), ttl) for path, baseline_path, since, ttl in rows]


def _discard_retained(connection: Connection, path: str) -> bool:
    return connection.execute("DELETE FROM retained WHERE path = ?", (path,)).rowcount > 0
