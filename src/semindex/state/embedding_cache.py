"""The embedding cache: vectors by embedding space and digest, in a SQLite file of its own in the cache directory.

It may lose anything and is never in the way: damage is a miss, a full disk means that nothing is kept, and neither
reaches the caller. What it returns is what was put.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio

from semindex.model.errors import SemindexError, StateDamaged, StateUnwritable, StateVersion
from semindex.model.ids import well_formed
from semindex.ports import CacheCounters, Vectors
from semindex.shielding import shielded
from semindex.state.database import CLOSE_BOUND, Connection, Database
from semindex.state.schema import EMBEDDINGS
from semindex.state.vectors import bytes_in_use, drop, find, keep, last_generation, make_room, note_uses

logger = logging.getLogger(__name__)

DEFAULT_MAX_BYTES = 2 * 2**30

T = TypeVar("T")

_GENERATIONS = 64
"""Generations in which as many bytes are used as the cache may hold: the grain in which the last use is known."""
_UNNOTED = 1024
"""Uses that are noted together, at the latest when the cache is closed; a crash forgets at most so many."""


class SqliteEmbeddingCache:
    """Implements :class:`semindex.ports.EmbeddingCache`. Vectors returned are read-only."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._database: Database | None = None
        self._opening = trio.Lock()
        self._limiter = trio.CapacityLimiter(1)
        self._warned = False
        self._hits = self._misses = self._bytes = 0
        self._generation = self._used = 0
        self._unnoted: set[int] = set()

    async def get(self, space: str, digests: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Return the vectors that are there and undamaged, shape [dimension] each."""
        wanted = tuple(dict.fromkeys(digests))
        if not wanted:
            await trio.lowlevel.checkpoint()
            return {}
        query = partial(find, space=well_formed(space), digests=wanted, generation=self._generation)
        found = await self._attempt(lambda database: database.read(query))
        vectors = {} if found is None else found.vectors
        self._hits += len(vectors)
        self._misses += len(wanted) - len(vectors)
        if found is not None:
            self._count_use(sum(vector.nbytes for vector in vectors.values()))
            self._unnoted.update(found.unnoted)
            if found.damaged:
                logger.warning(
                    "%d damaged entries of the embedding cache %s are dropped.", len(found.damaged), self._path
                )
                await self._attempt(lambda database: database.write(partial(drop, numbers=found.damaged)))
            if len(self._unnoted) >= _UNNOTED:
                await self._attempt(self._note_uses)
        return vectors

    async def put(self, space: str, digests: Sequence[bytes], vectors: Vectors) -> None:
        """Keep vectors, shape [len(digests), dimension]; makes room by dropping the least recently used."""
        if not digests:
            await trio.lowlevel.checkpoint()
            return
        if len(digests) != len(vectors):
            raise ValueError(f"{len(vectors)} vectors for {len(digests)} digests")
        self._count_use(vectors.nbytes)
        kept, values = tuple(digests), vectors.copy()  # the caller's may change while this waits
        generation, unnoted = self._generation, self._take_unnoted()

        def work(connection: Connection) -> int:
            note_uses(connection, unnoted, generation)
            keep(connection, well_formed(space), kept, values, generation)
            return make_room(connection, self._max_bytes)

        size = await self._attempt(lambda database: database.write(work))
        if size is not None:
            self._bytes = size
            self._warned = False

    async def counters(self) -> CacheCounters:
        """Return how it is used and how large it is."""
        self._bytes = await self._attempt(lambda database: database.read(bytes_in_use)) or 0
        return CacheCounters(self._hits, self._misses, self._bytes)

    async def aclose(self) -> None:
        """Note the last uses and close the file; waits for a bounded time, cancelled or not."""
        if self._database is None:
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        with shielded(CLOSE_BOUND, "noting the last uses of the embedding cache"):
            await self._attempt(self._note_uses)
        await self._database.aclose()

    def _count_use(self, size: int) -> None:
        self._used += size
        if self._used * _GENERATIONS >= self._max_bytes:
            self._used = 0
            self._generation += 1

    async def _note_uses(self, database: Database) -> None:
        await database.write(partial(note_uses, numbers=self._take_unnoted(), generation=self._generation))

    def _take_unnoted(self) -> tuple[int, ...]:
        taken = tuple(self._unnoted)
        self._unnoted.clear()
        return taken

    async def _attempt(self, call: Callable[[Database], Awaitable[T]]) -> T | None:
        """Return what the call returns; None if the file cannot be used, which is logged once and dealt with."""
        database = None
        try:
            database = await self._opened()
            return await call(database)
        except StateUnwritable as error:
            self._warn(error)
        except (StateDamaged, StateVersion) as error:
            await self._move_aside(database, error)
        except trio.ClosedResourceError:
            pass  # another call has found damage and is replacing the file
        await trio.lowlevel.checkpoint()
        return None

    async def _opened(self) -> Database:
        async with self._opening:
            if self._database is None:
                async with AsyncExitStack() as stack:
                    database = await Database.open(self._path, EMBEDDINGS)
                    stack.push_async_callback(database.aclose)
                    self._generation = 1 + await database.read(last_generation)
                    self._bytes = await database.read(bytes_in_use)
                    stack.pop_all()  # it stays open: aclose() closes it
                    self._database = database
            return self._database

    async def _move_aside(self, database: Database | None, error: SemindexError) -> None:
        async with self._opening:
            if self._database is not database:
                return  # another call has replaced the file already
            logger.warning("The embedding cache begins anew: %s", error)
            self._database = None
            if database is not None:
                await database.aclose()
            try:
                await trio.to_thread.run_sync(_move_aside, self._path, limiter=self._limiter)
            except OSError as trouble:
                self._warn(trouble)

    def _warn(self, error: Exception) -> None:
        if not self._warned:
            self._warned = True
            logger.warning("The embedding cache keeps nothing until this is mended: %s", error)


@asynccontextmanager
async def open_embedding_cache(path: Path, max_bytes: int = DEFAULT_MAX_BYTES) -> AsyncIterator[SqliteEmbeddingCache]:
    """Open the cache, which cannot fail: a damaged file is moved aside, one that cannot be opened is tried again later.

    ``max_bytes`` bounds the bytes of the file that are in use, the write-ahead log (64 MiB at most) not counted.
    """
    cache = SqliteEmbeddingCache(path, max_bytes)
    try:
        await cache.counters()
        yield cache
    finally:
        await cache.aclose()


def _move_aside(path: Path) -> None:
    """Rename the file and its log: what is not ours, or made by a newer version, may be worth something to somebody."""
    for suffix in ("", "-wal"):
        file = path.with_name(path.name + suffix)
        if file.exists():
            file.replace(path.with_name(path.name + ".damaged" + suffix))
    path.with_name(path.name + "-shm").unlink(missing_ok=True)
