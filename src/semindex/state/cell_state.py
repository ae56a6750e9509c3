"""All that a cell's database holds, opened as one thing."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from semindex.clock import utc_now
from semindex.state.columns import to_text
from semindex.state.database import Connection, Database, open_database
from semindex.state.ledger import SqliteLedger, sweep
from semindex.state.operations import SqliteOperations
from semindex.state.registrations import SqliteRegistrations
from semindex.state.tokens import SqliteTokens


class SqliteCellState:
    """Implements :class:`semindex.ports.CellState`."""

    def __init__(self, database: Database, cell_id: str) -> None:
        self.cell_id = cell_id
        self.registrations = SqliteRegistrations(database)
        self.operations = SqliteOperations(database)
        self.tokens = SqliteTokens(database)
        self._database = database

    def ledger(self, workspace: str) -> SqliteLedger:
        """Return the ledger of a workspace, given its canonical path; the same one for every call."""
        return SqliteLedger(self._database, workspace)

    async def ledgers(self) -> list[str]:
        """Return the workspaces whose ledger holds records, sorted."""
        return await self._database.read(_ledgers)


@asynccontextmanager
async def open_cell_state(path: Path) -> AsyncIterator[SqliteCellState]:
    """Open the state of a cell, making it if there is none, and bring to an end what a crash has cut short.

    Raises as :func:`semindex.state.database.open_database` does.
    """
    async with open_database(path) as database:
        state = SqliteCellState(database, await database.write(_cell_id))
        await state.operations.interrupt_running(utc_now())
        await sweep(database)
        yield state


def _cell_id(connection: Connection) -> str:
    known = connection.execute("SELECT id FROM cell").fetchone()
    if known is None:
        known = (str(uuid.uuid4()),)
        connection.execute("INSERT INTO cell VALUES (?, ?)", (*known, to_text(utc_now())))
    return str(known[0])


def _ledgers(connection: Connection) -> list[str]:
    rows = connection.execute(
        """SELECT path FROM ledgers
        WHERE path IS NOT NULL AND EXISTS (SELECT 1 FROM files WHERE ledger = ledgers.id) ORDER BY path"""
    )
    return [path for (path,) in rows]
