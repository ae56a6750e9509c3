"""In-memory twins of the cell's state, without threads or files, for tests under a virtual clock.

Every call is a checkpoint first and then happens at once: a call that was cancelled has changed nothing.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
import trio

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
