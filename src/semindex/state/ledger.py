"""The ledger of one workspace: path → what is known of the file, in the cell's database."""

from collections.abc import Sequence
from functools import partial

import trio
from attrs import astuple

from semindex.model.chunks import Signature
from semindex.model.status import FileRecord, FileState
from semindex.state.database import Connection, Database

SLICE = 2000
"""Records that one call of the database reads or deletes, so that no other workspace waits long for its turn."""

_BEFORE_ALL = 0
"""In SQLite's order every number comes before every blob."""

_Row = tuple[bytes, str, str | None, str | None, int, str, int, int, bytes | None]


class SqliteLedger:
    """Implements :class:`semindex.ports.Ledger`. Two objects for one workspace are the same ledger."""

    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    async def load(self) -> dict[str, FileRecord]:
        """Return all records by path; what is written meanwhile may be among them or not."""
        records: dict[str, FileRecord] = {}
        after: bytes | int = _BEFORE_ALL
        while True:
            last, page = await self._database.read(partial(_page, workspace=self._workspace, after=after))
            records.update(page)
            if last is None:
                return records
            after = last

    async def apply(self, records: Sequence[FileRecord], forget: Sequence[str] = ()) -> None:
        """Remove paths, then write records, in one transaction; when this returns a crash does not undo it."""
        if not records and not forget:
            await trio.lowlevel.checkpoint()
            return
        await self._database.write(
            partial(_apply, workspace=self._workspace, records=tuple(records), forget=tuple(forget))
        )

    async def clear(self) -> None:
        """Remove every record: at once for whoever looks, and from the file in slices.

        If it is cut short in between, :func:`sweep` removes the rest at the next start.
        """
        await self._database.write(partial(_detach, workspace=self._workspace))
        await sweep(self._database)


async def sweep(database: Database) -> None:
    """Delete, slice by slice, what was cleared."""
    while await database.write(_sweep_slice):
        pass


def _page(connection: Connection, workspace: str, after: bytes | int) -> tuple[bytes | None, dict[str, FileRecord]]:
    """Return one slice of the records behind a path, and the last path unless the slice is the last one."""
    rows: list[_Row] = connection.execute(
        """SELECT path, state, file_hash, signature, chunks, chunking, dirty, inherited, reason FROM files
        WHERE ledger = (SELECT id FROM ledgers WHERE path = ?) AND path > ? ORDER BY path LIMIT ?""",
        (workspace, after, SLICE),
    ).fetchall()
    shared: dict[str, str] = {}  # thousands of files have the same few values here
    page = {record.path: record for record in (_record(row, shared) for row in rows)}
    return rows[-1][0] if len(rows) == SLICE else None, page


def _apply(connection: Connection, workspace: str, records: Sequence[FileRecord], forget: Sequence[str]) -> None:
    ledger = _ledger(connection, workspace)
    connection.executemany(
        "DELETE FROM files WHERE ledger = ? AND path = ?", ((ledger, _bytes(path)) for path in forget)
    )
    connection.executemany(
        "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        ((ledger, *_row(record)) for record in records),
    )


def _ledger(connection: Connection, workspace: str) -> int:
    found = connection.execute("SELECT id FROM ledgers WHERE path = ?", (workspace,)).fetchone()
    if found is None:
        found = connection.execute("INSERT INTO ledgers (path) VALUES (?) RETURNING id", (workspace,)).fetchone()
    return int(found[0])


def _detach(connection: Connection, workspace: str) -> None:
    connection.execute("UPDATE ledgers SET path = NULL WHERE path = ?", (workspace,))


def _sweep_slice(connection: Connection) -> bool:
    """Delete one slice of a detached ledger; return whether there may be more."""
    detached = connection.execute("SELECT id FROM ledgers WHERE path IS NULL LIMIT 1").fetchone()
    if detached is None:
        return False
    deleted = connection.execute(
        "DELETE FROM files WHERE ledger = ? AND path IN (SELECT path FROM files WHERE ledger = ? LIMIT ?)",
        (*detached, *detached, SLICE),
    ).rowcount
    if deleted < SLICE:
        connection.execute("DELETE FROM ledgers WHERE id = ?", detached)
    return True


def _row(record: FileRecord) -> _Row:
    return (
        _bytes(record.path),
        record.state.value,
        record.file_hash,
        None if record.signature is None else " ".join(map(str, astuple(record.signature))),
        record.chunks,
        record.chunking,
        int(record.dirty),
        int(record.inherited),
        None if record.reason is None else _bytes(record.reason),
    )


def _record(row: _Row, shared: dict[str, str]) -> FileRecord:
    path, state, file_hash, signature, chunks, chunking, dirty, inherited, reason = row
    return FileRecord(
        _text(path),
        FileState(state),
        file_hash,
        None if signature is None else Signature(*map(int, signature.split())),
        chunks,
        shared.setdefault(chunking, chunking),
        bool(dirty),
        bool(inherited),
        None if reason is None else _text(reason),
    )


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
