"""A small kind of database, for tests of how databases are handled."""

from collections.abc import Callable
from pathlib import Path

from semindex.state.database import Connection, open_database
from semindex.state.schema import Schema

NOTES = Schema(application_id=1234, migrations=(("CREATE TABLE notes (text TEXT NOT NULL)",),))


def writing(*texts: str | None) -> Callable[[Connection], None]:
    """Return work that writes notes; None is refused by the table."""

    def work(connection: Connection) -> None:
        for text in texts:
            connection.execute("INSERT INTO notes (text) VALUES (?)", (text,))

    return work


def notes(connection: Connection) -> list[str]:
    return [text for (text,) in connection.execute("SELECT text FROM notes ORDER BY rowid")]


async def write_notes(path: Path, *texts: str) -> None:
    async with open_database(path, NOTES) as database:
        for text in texts:
            await database.write(writing(text))


async def read_notes(path: Path, schema: Schema = NOTES) -> list[str]:
    async with open_database(path, schema) as database:
        return await database.read(notes)
