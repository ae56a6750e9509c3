"""Search tokens: credentials bound to one registration, for agents whose client cannot tell its roots."""

import secrets
import uuid

from semindex.clock import utc_now
from semindex.leasing import Lease
from semindex.model.errors import UnknownToken
from semindex.model.registrations import TokenRecord, token_digest
from semindex.ports import CellState
from semindex.registry import Registry


class SearchTokens:
    """The tokens of a cell; a token itself is shown once and never kept.

    A token belongs to the lease for which it was made, not to the id: it is worthless as soon as that is released.
    """

    def __init__(self, state: CellState, registry: Registry) -> None:
        self._state = state
        self._registry = registry
        self._by_digest: dict[bytes, tuple[TokenRecord, Lease]] = {}
        self._revoked: set[str] = set()
        """Ids of tokens that open nothing any more, though the state may still hold them."""

    async def load(self) -> None:
        """Read the tokens of earlier runs; the registrations must have been restored."""
        leases = {lease.registration.id: lease for lease in self._registry.leases()}
        for record in await self._state.tokens.load_all():
            if record.registration_id in leases:
                self._by_digest[record.digest] = (record, leases[record.registration_id])

    def find(self, token: str) -> TokenRecord | None:
        """Return the record of a token that opens something.

        Looking up a digest tells nothing of the tokens that exist, however long it takes.
        """
        record, lease = self._by_digest.get(token_digest(token), (None, None))
        if record is None or lease is None or record.id in self._revoked or not self._registry.holds(lease):
            return None
        return record

    async def create(self, registration_id: str, label: str = "") -> tuple[str, TokenRecord]:
        """Make a token and return it with its record. Raises UnknownRegistration."""
        lease = self._registry.lease(registration_id)
        token = secrets.token_urlsafe(32)
        record = TokenRecord(str(uuid.uuid4()), registration_id, token_digest(token), label, utc_now())
        await self._state.tokens.add(record)
        self._forget_released()
        self._by_digest[record.digest] = (record, lease)
        return token, record

    def list(self, registration_id: str) -> list[TokenRecord]:
        """Return the tokens of a registration, the oldest first. Raises UnknownRegistration."""
        lease = self._registry.lease(registration_id)
        return [record for record, owner in self._by_digest.values() if owner is lease]

    async def revoke(self, registration_id: str, token_id: str) -> None:
        """Make a token worthless, at once. Raises UnknownRegistration, UnknownToken.

        If it cannot be deleted now it stays listed, so that a repetition tries again.
        """
        record = next((token for token in self.list(registration_id) if token.id == token_id), None)
        if record is None:
            raise UnknownToken(f"The registration {registration_id} has no token {token_id}.")
        self._revoked.add(token_id)
        await self._state.tokens.delete(registration_id, token_id)
        self._by_digest.pop(record.digest, None)
        self._revoked.discard(token_id)

    def _forget_released(self) -> None:
        for digest, (_, lease) in list(self._by_digest.items()):
            if not self._registry.holds(lease):
                del self._by_digest[digest]
