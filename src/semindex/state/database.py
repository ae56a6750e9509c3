"""One SQLite file: opening, checking and migrating it, and the one thread that uses it. The only module with SQLite.

Writers do not queue one transaction behind another: whatever arrives while a transaction runs is carried out together
in the next one, each piece within a savepoint of its own. A write that was cancelled while it waited never happens; one
that was cancelled while it ran happens as a whole, or not at all.

The write-ahead log is written before a call returns and is not forced to the disk: kill -9 undoes nothing, a power
failure may undo the last transactions but never half of one.
"""

import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import trio

from semindex.model.errors import StateDamaged, StateUnwritable, StateVersion
from semindex.shielding import shielded
from semindex.state.schema import CELL, Schema

Connection = sqlite3.Connection
T = TypeVar("T")

CLOSE_BOUND = 10.0
"""Seconds: closing copies the write-ahead log into the file, which a slow disk may drag out; what is cut off is done at
the next start."""

_BUSY_TIMEOUT = 5.0
"""Seconds to wait for somebody who looks into the file with other tools."""

_LOG_LIMIT = 64 * 2**20
"""Bytes to which the write-ahead log shrinks again after a large transaction."""

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}
_UNWRITABLE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
}


class _Write(Generic[T]):
    """A piece of a transaction and what became of it."""

    def __init__(self, work: Callable[[Connection], T]) -> None:
        self._work = work
        self._result: T
        self._error: Exception | None = None
        self.settled = False

    def attempt(self, connection: Connection) -> None:
        """Do the work within a savepoint, so that its failure does not touch its neighbours."""
        connection.execute("SAVEPOINT piece")
        try:
            self._result = self._work(connection)
        except Exception as error:
            if not connection.in_transaction:  # SQLite gave the whole transaction up
                raise
            connection.execute("ROLLBACK TO piece")
            self._error = error
        connection.execute("RELEASE piece")

    def settle(self, error: Exception | None = None) -> None:
        """Note that the transaction is over, and the error if it failed as a whole."""
        self._error = error or self._error
        self.settled = True

    def result(self) -> T:
        """Return what the work returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._result


class Database:
    """An open file. Calls may run at the same time; they are carried out one at a time, in a thread."""

    def __init__(
        self, path: Path, identity: tuple[int, int] | None, connection: Connection, limiter: trio.CapacityLimiter
    ) -> None:
        self._path = path
        self._identity = identity
        self._connection = connection
        self._limiter = limiter
        self._turn = trio.Lock()
        self._waiting: list[_Write[Any]] = []
        self._closed = False

    @classmethod
    async def open(cls, path: Path, schema: Schema) -> "Database":
        """Open a database as :func:`open_database` does; whoever calls this calls :meth:`aclose` too."""
        limiter = trio.CapacityLimiter(1)
        connection, identity = await trio.to_thread.run_sync(_open, path, schema, limiter=limiter)
        return cls(path, identity, connection, limiter)

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Return what ``work`` returns. It runs in a thread, outside of any transaction, and must be short."""
        with _translating(self._path):
            return await self._in_thread(work, self._connection)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Return what ``work`` returns once the transaction that it was part of is safe from kill -9.

        Raises StateUnwritable or StateDamaged, and then has changed nothing.
        """
        write = _Write(work)
        self._waiting.append(write)
        try:
            # Whoever gets the turn first carries out all that wait; the others find their work done.
            async with self._turn:
                if not write.settled:
                    await self._in_thread(self._commit)
        finally:
            self._waiting.remove(write)
        with _translating(self._path):
            return write.result()

    async def aclose(self) -> None:
        """Close the file once the running call is over; waits at most :data:`CLOSE_BOUND`, cancelled or not."""
        if self._closed:
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        self._closed = True
        with shielded(CLOSE_BOUND, f"closing {self._path}"):
            await trio.to_thread.run_sync(self._connection.close, limiter=self._limiter, abandon_on_cancel=True)

    async def _in_thread(self, function: Callable[..., T], *arguments: object) -> T:
        if self._closed:
            raise trio.ClosedResourceError(f"{self._path} was closed")
        return await trio.to_thread.run_sync(function, *arguments, limiter=self._limiter)

    def _commit(self) -> None:
        batch = tuple(self._waiting)  # now, not when the thread was asked for: the cancelled have left until then
        failure: sqlite3.Error | StateUnwritable | None = None
        try:
            self._require_in_place()
            with _transaction(self._connection):
                for write in batch:
                    write.attempt(self._connection)
        except (sqlite3.Error, StateUnwritable) as error:
            failure = error
        for write in batch:
            write.settle(failure)

    def _require_in_place(self) -> None:
        """Refuse to write a file that has lost its name: all of it would be gone with this process."""
        if _identity(self._path) != self._identity:
            message = f"{self._path} was removed or replaced while it was in use; put it back, or restart the cell."
            raise StateUnwritable(message)


@asynccontextmanager
async def open_database(path: Path, schema: Schema = CELL) -> AsyncIterator[Database]:
    """Open a database, making or migrating it if need be.

    Raises StateDamaged or StateVersion, and then has left the file and its log as they were; StateUnwritable if the
    disk is full or may not be written.
    """
    database = await Database.open(path, schema)
    try:
        yield database
    finally:
        await database.aclose()


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from all others of this machine; None if there is none of this name."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _open(path: Path, schema: Schema) -> tuple[Connection, tuple[int, int] | None]:
    with _translating(path):
        if _has_content(path):
            _examine(path, schema)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        connection = _connect(path, "rw")
        try:
            _prepare(connection, path, schema)
        except BaseException:
            connection.close()
            raise
        return connection, _identity(path)


def _has_content(path: Path) -> bool:
    """Say whether the file holds anything, and refuse what SQLite would quietly begin anew."""
    if path.exists() and not path.is_file():
        raise StateDamaged(f"{path} is not a file: move it away, or choose another directory.")
    size = _size(path)
    if not size and _size(path, "-wal"):
        raise StateDamaged(
            f"{path} is gone, but its log {path.name}-wal is not: put the file back, or move the log away."
        )
    return size > 0


def _examine(path: Path, schema: Schema) -> None:
    """Check a file without changing it; even closing a writable connection would change a file that has a log."""
    if _size(path, "-journal"):
        return  # a start was killed before the file had a log, thus before it held anything
    with closing(_connect(path, "ro" if _size(path, "-wal") else "ro&immutable=1")) as connection:
        _known_version(connection, path, schema)
        verdict = _pragma(connection, "quick_check(1)") if schema.checked else "ok"
        if verdict != "ok":
            raise StateDamaged(_damaged(path, str(verdict)))


def _known_version(connection: Connection, path: Path, schema: Schema) -> int:
    """Return the version of a file, 0 if it is empty, and refuse what is not ours or too new."""
    application = _pragma(connection, "application_id")
    if application == 0 and not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
        return 0
    if application != schema.application_id:
        raise StateDamaged(_damaged(path, "it is a database of another kind"))
    version = int(_pragma(connection, "user_version"))
    if version > schema.version:
        raise StateVersion(
            f"{path} was made by a newer semindex (version {version}, this one knows {schema.version}): "
            "upgrade semindex, or choose another state directory."
        )
    return version


def _prepare(connection: Connection, path: Path, schema: Schema) -> None:
    version = _known_version(connection, path, schema)
    _pragma(connection, f"page_size = {schema.page_size}")
    _pragma(connection, "synchronous = NORMAL")
    _pragma(connection, "journal_mode = WAL")
    _pragma(connection, f"journal_size_limit = {_LOG_LIMIT}")
    if version < schema.version:
        if version:
            _keep_copy(connection, path.with_name(f"{path.name}.before-v{schema.version}"))
        with _transaction(connection):
            _migrate(connection, schema, version)
    _pragma(connection, "foreign_keys = ON")


def _migrate(connection: Connection, schema: Schema, version: int) -> None:
    for step in schema.migrations[version:]:
        for statement in step:
            connection.execute(statement)
    _pragma(connection, f"application_id = {schema.application_id}")
    _pragma(connection, f"user_version = {schema.version}")


def _keep_copy(connection: Connection, copy: Path) -> None:
    partial = copy.with_name(copy.name + ".partial")
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    connection.execute("VACUUM INTO ?", (str(partial),))
    partial.replace(copy)


@contextmanager
def _transaction(connection: Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # after some errors SQLite has rolled back by itself
            connection.execute("ROLLBACK")
        raise


def _connect(path: Path, mode: str) -> Connection:
    return sqlite3.connect(
        f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=_BUSY_TIMEOUT,
        isolation_level=None,  # transactions begin where we say so
        check_same_thread=False,  # the limiter keeps it to one thread at a time
    )


def _pragma(connection: Connection, text: str) -> Any:
    row = connection.execute(f"PRAGMA {text}").fetchone()
    return row[0] if row else None


def _size(path: Path, suffix: str = "") -> int:
    try:
        return path.with_name(path.name + suffix).stat().st_size
    except FileNotFoundError:
        return 0


def _damaged(path: Path, why: str) -> str:
    return (
        f"{path} is damaged ({why}) and was left as it is: restore it from a copy, or move it and {path.name}-wal away."
    )


@contextmanager
def _translating(path: Path) -> Iterator[None]:
    """Turn what the outside world did to the file into the port's errors; our own faults stay what they are."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the kind of error, the rest its detail
        is_undecodable = isinstance(error, sqlite3.OperationalError) and code == 0  # raised by Python, not by SQLite
        if code in _DAMAGED or is_undecodable:
            raise StateDamaged(_damaged(path, str(error))) from error
        if code in _UNWRITABLE or isinstance(error, OSError):
            raise StateUnwritable(
                f"{path} cannot be used ({error}): see that the disk has room and that the directory can be written."
            ) from error
        raise
