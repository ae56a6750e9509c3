"""Opening the collection of a workspace: is it there, is it ours, does it hold what the ledger says?"""

import logging
import time
from collections.abc import Callable, Mapping

import trio
from attrs import evolve, frozen

from semindex.engine.filetable import FILES_PER_STEP, FileTable
from semindex.model.errors import ForeignCollection, StoreUnavailable
from semindex.model.points import CollectionMetadata
from semindex.model.profiles import ChunkingProfile, EmbeddingProfile
from semindex.model.status import FileRecord, FileState
from semindex.ports import Ledger, VectorStore

logger = logging.getLogger(__name__)


def wall_clock_ms() -> int:
    """Return Unix milliseconds, for people to read."""
    return time.time_ns() // 1_000_000


@frozen
class Opened:
    """What was found."""

    is_new: bool
    """Nothing is stored: records of earlier runs mean nothing."""
    is_complete: bool
    """A build was finished at some time."""
    repairs: tuple[FileRecord, ...] = ()
    """Records that contradict the store, marked dirty."""


class CollectionKeeper:
    """Opens, creates and describes one collection."""

    def __init__(
        self,
        store: VectorStore,
        name: str,
        embedding: EmbeddingProfile,
        chunking: ChunkingProfile,
        cell_id: str,
        *,
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self.name = name
        self._store = store
        self._embedding = embedding
        self._chunking = chunking
        self._cell_id = cell_id
        self._clock_ms = clock_ms
        self._exists = False

    async def open(self, table: FileTable) -> Opened:
        """Open an existing collection, or report that there is none to use.

        A collection of ours whose vectors are of another embedding profile is dropped, never searched. Raises
        ForeignCollection for one that another cell, or the reference engine, has made.
        """
        info = await self._store.describe(self.name)
        if info is None:
            self._exists = False
            return Opened(is_new=True, is_complete=False)
        metadata = CollectionMetadata.from_payload(info.metadata or {})
        if metadata.cell_id != self._cell_id and (info.metadata is not None or info.points):
            raise ForeignCollection(
                f"The collection {self.name} was not made by this cell. Take it over explicitly, or purge it by name."
            )
        if not metadata.matches(self._embedding) or info.dimension != self._embedding.dimension:
            logger.warning("collection %s holds vectors of another model and is built anew", self.name)
            await self._store.drop(self.name)
            self._exists = False
            return Opened(is_new=True, is_complete=False)
        await self._store.open(self.name)
        self._exists = True
        repairs: tuple[FileRecord, ...] = ()
        if info.points != table.chunks or any(record.dirty for record in table):
            repairs = tuple(await contradictions(table, await self._store.file_points(self.name)))
        return Opened(is_new=False, is_complete=metadata.indexing_complete, repairs=repairs)

    async def ensure(self) -> None:
        """Create the collection if it does not exist."""
        if not self._exists:
            await self._store.create(self.name, self._embedding.dimension)
            await self.describe(complete=False)
            self._exists = True

    async def describe(self, *, complete: bool) -> None:
        """Write the metadata point: whether the index is whole, and whose it is."""
        metadata = CollectionMetadata(
            self._embedding.provider,
            self._embedding.model,
            self._embedding.dimension,
            complete,
            self._chunking,
            self._cell_id,
            self._clock_ms(),
        )
        await self._store.write_metadata(self.name, metadata.to_payload())

    @property
    def exists(self) -> bool:
        """Say whether the collection is there, as far as this process knows."""
        return self._exists


async def contradictions(table: FileTable, stored: Mapping[str, Mapping[str, int]]) -> list[FileRecord]:
    """Return the records, marked dirty, of files of which the store holds something else than the ledger says."""
    found = []
    for number, record in enumerate(list(table)):
        if number % FILES_PER_STEP == 0:
            await trio.lowlevel.checkpoint()
        expected = {record.file_hash: record.chunks} if record.chunks else {}
        if record.dirty or stored.get(record.path, {}) != expected:
            found.append(evolve(record, dirty=True))
    found += [FileRecord(path, FileState.PENDING, dirty=True) for path in stored if path not in table]
    return found


async def purge_collection(store: VectorStore, ledger: Ledger, name: str) -> None:
    """Delete a collection and its ledger, and ask the store whether the collection is gone.

    Raises StoreUnavailable if it is not; whatever was deleted stays deleted, and a repetition does the rest.
    """
    await store.drop(name)
    if await store.describe(name) is not None:
        raise StoreUnavailable(f"The collection {name} is still there after its deletion.")
    await ledger.clear()
