"""Search tokens: credentials bound to one registration, for agents whose client cannot tell its roots."""

import secrets
import uuid
from datetime import UTC, datetime

from semindex.model.errors import UnknownToken
from semindex.model.registrations import TokenRecord, token_digest
from semindex.ports import CellState
from semindex.registry import Registry


class SearchTokens:
    """The tokens of a cell; a token itself is shown once and never kept."""

    def __init__(self, state: CellState, registry: Registry) -> None:
        self._state = state
        self._registry = registry
        self._by_digest: dict[bytes, TokenRecord] = {}

    async def load(self) -> None:
        """Read the tokens of earlier runs."""
        self._by_digest = {token.digest: token for token in await self._state.tokens.load_all()}

    def registration_of(self, token: str) -> str | None:
        """Return the registration that a token is bound to; None if it is unknown, or its registration is gone.

        Looking up a digest tells nothing of the tokens that exist, however long it takes.
        """
        record = self._by_digest.get(token_digest(token))
        if record is None or record.registration_id not in {lease.registration.id for lease in self._registry.leases()}:
            return None
        return record.registration_id

    async def create(self, registration_id: str, label: str = "") -> tuple[str, TokenRecord]:
        """Make a token and return it with its record. Raises UnknownRegistration."""
        self._registry.lease(registration_id)
        token = secrets.token_urlsafe(32)
        record = TokenRecord(str(uuid.uuid4()), registration_id, token_digest(token), label, datetime.now(UTC))
        await self._state.tokens.add(record)
        self._by_digest[record.digest] = record
        return token, record

    def list(self, registration_id: str) -> list[TokenRecord]:
        """Return the tokens of a registration, the oldest first. Raises UnknownRegistration."""
        self._registry.lease(registration_id)
        return [record for record in self._by_digest.values() if record.registration_id == registration_id]

    async def revoke(self, registration_id: str, token_id: str) -> None:
        """Make a token worthless. Raises UnknownRegistration, UnknownToken."""
        record = next((token for token in self.list(registration_id) if token.id == token_id), None)
        if record is None:
            raise UnknownToken(f"The registration {registration_id} has no token {token_id}.")
        del self._by_digest[record.digest]
        await self._state.tokens.delete(registration_id, token_id)
