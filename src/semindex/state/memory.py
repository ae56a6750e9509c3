"""In-memory twins of the cell's state, without threads or files, for tests under a virtual clock.

Every call is a checkpoint first and then happens at once: a call that was cancelled has changed nothing.
"""

import uuid
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime

import numpy as np
import trio
from attrs import evolve

from semindex.clock import utc_now
from semindex.model.errors import UnknownRegistration
from semindex.model.limits import KEPT_OPERATIONS
from semindex.model.registrations import (
    INTERRUPTED,
    Lifecycle,
    Operation,
    OperationState,
    Registration,
    Retained,
    TokenRecord,
)
from semindex.model.status import FileRecord
from semindex.ports import CacheCounters, Vectors


class MemoryLedger:
    """Implements :class:`semindex.ports.Ledger`; a "restart" is another object over the same ``records``."""

    def __init__(self, records: dict[str, FileRecord] | None = None) -> None:
        self._records = {} if records is None else records

    async def load(self) -> dict[str, FileRecord]:
        """Return all records by path."""
        await trio.lowlevel.checkpoint()
        return dict(self._records)

    async def apply(self, records: Sequence[FileRecord], forget: Sequence[str] = ()) -> None:
        """Remove paths, then write records."""
        await trio.lowlevel.checkpoint()
        for path in forget:
            self._records.pop(path, None)
        self._records.update((record.path, record) for record in records)

    async def clear(self) -> None:
        """Remove every record."""
        await trio.lowlevel.checkpoint()
        self._records.clear()


class MemoryEmbeddingCache:
    """Implements :class:`semindex.ports.EmbeddingCache`; counts the bytes of vectors and digests."""

    def __init__(self, max_bytes: int = 2**30) -> None:
        self._max_bytes = max_bytes
        self._vectors: OrderedDict[tuple[str, bytes], Vectors] = OrderedDict()
        self._hits = self._misses = self._bytes = 0

    async def get(self, space: str, digests: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Return the vectors that are there, shape [dimension] each, read-only."""
        await trio.lowlevel.checkpoint()
        found = {}
        for digest in dict.fromkeys(digests):
            if (space, digest) in self._vectors:
                self._vectors.move_to_end((space, digest))
                found[digest] = self._vectors[space, digest]
                self._hits += 1
            else:
                self._misses += 1
        return found

    async def put(self, space: str, digests: Sequence[bytes], vectors: Vectors) -> None:
        """Keep vectors, shape [len(digests), dimension]; makes room by dropping the least recently used."""
        await trio.lowlevel.checkpoint()
        if len(digests) != len(vectors):
            raise ValueError(f"{len(vectors)} vectors for {len(digests)} digests")
        for digest, vector in zip(digests, vectors.astype(np.float32), strict=True):
            self._drop((space, digest))
            vector.setflags(write=False)
            self._vectors[space, digest] = vector
            self._bytes += vector.nbytes + len(digest)
        while self._bytes > self._max_bytes:
            self._drop(next(iter(self._vectors)))

    async def counters(self) -> CacheCounters:
        """Return how it is used and how large it is."""
        await trio.lowlevel.checkpoint()
        return CacheCounters(self._hits, self._misses, self._bytes)

    def _drop(self, key: tuple[str, bytes]) -> None:
        if key in self._vectors:
            vector = self._vectors.pop(key)
            self._bytes -= vector.nbytes + len(key[1])


class MemoryRegistrations:
    """Implements :class:`semindex.ports.Registrations`."""

    def __init__(self, tokens: dict[str, TokenRecord]) -> None:
        self._registrations: dict[str, Registration] = {}
        self._retained: dict[str, Retained] = {}
        self._tokens = tokens

    async def load_all(self) -> list[Registration]:
        """Return all registrations, the oldest first."""
        await trio.lowlevel.checkpoint()
        return sorted(self._registrations.values(), key=lambda each: (each.created_at, each.id))

    async def save(self, registration: Registration) -> None:
        """Write a registration, replacing one of the same id; what was retained of its path is adopted by it."""
        await trio.lowlevel.checkpoint()
        self._registrations[registration.id] = registration
        self._retained.pop(registration.path, None)

    async def set_lifecycle(self, registration_id: str, lifecycle: Lifecycle, purge: bool | None = None) -> None:
        """Write where a registration stands and what its release is to do. Raises UnknownRegistration."""
        await trio.lowlevel.checkpoint()
        known = self.require(registration_id)
        self._registrations[registration_id] = evolve(known, lifecycle=lifecycle, purge=purge)

    async def delete(self, registration_id: str, retained: Retained | None = None) -> bool:
        """Forget a registration and its tokens, in the same instant retain its data; return whether there was one."""
        await trio.lowlevel.checkpoint()
        for token in [token for token in self._tokens.values() if token.registration_id == registration_id]:
            del self._tokens[token.id]
        if retained is not None:
            self._retained[retained.path] = retained
        return self._registrations.pop(registration_id, None) is not None

    async def load_retained(self) -> list[Retained]:
        """Return what is kept without a registration, the oldest first."""
        await trio.lowlevel.checkpoint()
        return sorted(self._retained.values(), key=lambda each: (each.since, each.path))

    async def discard_retained(self, path: str) -> bool:
        """Forget that a path's data are kept; return whether they were."""
        await trio.lowlevel.checkpoint()
        return self._retained.pop(path, None) is not None

    def require(self, registration_id: str) -> Registration:
        """Return a registration. Raises UnknownRegistration."""
        if registration_id not in self._registrations:
            raise UnknownRegistration.of(registration_id)
        return self._registrations[registration_id]


class MemoryOperations:
    """Implements :class:`semindex.ports.Operations`."""

    def __init__(self) -> None:
        self._operations: dict[str, Operation] = {}

    async def load_all(self) -> list[Operation]:
        """Return all operations, the oldest first."""
        await trio.lowlevel.checkpoint()
        return self._sorted()

    async def save(self, operation: Operation) -> None:
        """Write an operation, replacing one of the same id; of those that ended only the latest are kept."""
        await trio.lowlevel.checkpoint()
        self._operations[operation.id] = operation
        ended = [each for each in self._sorted() if each.state is not OperationState.RUNNING]
        for each in ended[:-KEPT_OPERATIONS]:
            del self._operations[each.id]

    async def interrupt_running(self, at: datetime) -> None:
        """Write down that the operations still running have failed, since the process that ran them is gone."""
        await trio.lowlevel.checkpoint()
        for key, operation in self._operations.items():
            if operation.state is OperationState.RUNNING:
                self._operations[key] = evolve(
                    operation, state=OperationState.FAILED, completed_at=at, error=INTERRUPTED
                )

    def _sorted(self) -> list[Operation]:
        return sorted(self._operations.values(), key=lambda each: (each.started_at, each.id))


class MemoryTokens:
    """Implements :class:`semindex.ports.Tokens`."""

    def __init__(self, tokens: dict[str, TokenRecord], registrations: MemoryRegistrations) -> None:
        self._tokens = tokens
        self._registrations = registrations

    async def load_all(self) -> list[TokenRecord]:
        """Return all tokens, the oldest first."""
        await trio.lowlevel.checkpoint()
        return sorted(self._tokens.values(), key=lambda each: (each.created_at, each.id))

    async def add(self, token: TokenRecord) -> None:
        """Keep a new token. Raises UnknownRegistration."""
        await trio.lowlevel.checkpoint()
        self._registrations.require(token.registration_id)
        self._tokens[token.id] = token

    async def delete(self, registration_id: str, token_id: str) -> bool:
        """Forget a token of this registration; return whether there was one."""
        await trio.lowlevel.checkpoint()
        token = self._tokens.get(token_id)
        if token is None or token.registration_id != registration_id:
            return False
        del self._tokens[token_id]
        return True


class MemoryCellState:
    """Implements :class:`semindex.ports.CellState`."""

    def __init__(self) -> None:
        self.cell_id = str(uuid.uuid4())
        tokens: dict[str, TokenRecord] = {}
        self.registrations = MemoryRegistrations(tokens)
        self.operations = MemoryOperations()
        self.tokens = MemoryTokens(tokens, self.registrations)
        self._ledgers: dict[str, dict[str, FileRecord]] = {}

    def ledger(self, workspace: str) -> MemoryLedger:
        """Return the ledger of a workspace, given its canonical path; the same one for every call."""
        return MemoryLedger(self._ledgers.setdefault(workspace, {}))

    async def ledgers(self) -> list[str]:
        """Return the workspaces whose ledger holds records, sorted."""
        await trio.lowlevel.checkpoint()
        return sorted(workspace for workspace, records in self._ledgers.items() if records)

    async def restart(self) -> None:
        """Do what opening the state again does."""
        await self.operations.interrupt_running(utc_now())
