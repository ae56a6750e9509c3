"""Search tokens in the cell's database: their digests, never the tokens."""

from functools import partial

from semindex.model.errors import UnknownRegistration
from semindex.model.registrations import TokenRecord
from semindex.state.columns import to_text, to_time
from semindex.state.database import Connection, Database


class SqliteTokens:
    """Implements :class:`semindex.ports.Tokens`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_all(self) -> list[TokenRecord]:
        """Return all tokens, the oldest first."""
        return await self._database.read(_load_all)

    async def add(self, token: TokenRecord) -> None:
        """Keep a new token. Raises UnknownRegistration."""
        await self._database.write(partial(_add, token=token))

    async def delete(self, registration_id: str, token_id: str) -> bool:
        """Forget a token of this registration; return whether there was one."""
        return await self._database.write(partial(_delete, registration_id=registration_id, token_id=token_id))


def _load_all(connection: Connection) -> list[TokenRecord]:
    rows = connection.execute(
        "SELECT id, registration_id, digest, label, created_at FROM tokens ORDER BY created_at, id"
    )
    return [
        TokenRecord(key, registration_id, digest, label, to_time(created_at))
        for key, registration_id, digest, label, created_at in rows
    ]


def _add(connection: Connection, token: TokenRecord) -> None:
    known = connection.execute("SELECT 1 FROM registrations WHERE id = ?", (token.registration_id,)).fetchone()
    if known is None:
        raise UnknownRegistration.of(token.registration_id)
    connection.execute(
        "INSERT INTO tokens VALUES (?, ?, ?, ?, ?)",
        (token.id, token.registration_id, token.digest, token.label, to_text(token.created_at)),
    )


def _delete(connection: Connection, registration_id: str, token_id: str) -> bool:
    deleted = connection.execute("DELETE FROM tokens WHERE registration_id = ? AND id = ?", (registration_id, token_id))
    return deleted.rowcount > 0
