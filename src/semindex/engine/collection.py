"""Opening the collection of a workspace: is it there, is it ours, does it hold what the ledger says?"""

import logging
from collections.abc import Mapping

import trio
from attrs import evolve, frozen

from semindex.clock import utc_now
from semindex.engine.filetable import FILES_PER_STEP, FileTable
from semindex.model.errors import ForeignCollection, SemindexError, StoreUnavailable
from semindex.model.points import CollectionMetadata
from semindex.model.profiles import ChunkingProfile, EmbeddingProfile
from semindex.model.status import FileRecord, FileState
from semindex.ports import CollectionInfo, Ledger, VectorStore

logger = logging.getLogger(__name__)


PURGE_GRACE = 10.0
"""Seconds for deleting the data of a workspace."""


@frozen
class Opened:
    """What was found."""

    is_new: bool
    """Nothing is stored: records of earlier runs mean nothing."""
    is_complete: bool
    """A build was finished at some time."""
    repairs: tuple[FileRecord, ...] = ()
    """Records that contradict the store, marked dirty."""
    change: str | None = None
    """What was configured anew since the index was built, and what follows from it, one sentence."""


class CollectionKeeper:
    """Opens, creates and describes one collection."""

    def __init__(
        self,
        store: VectorStore,
        name: str,
        embedding: EmbeddingProfile,
        chunking: ChunkingProfile,
        cell_id: str,
    ) -> None:
        self.name = name
        self._store = store
        self._embedding = embedding
        self._chunking = chunking
        self._cell_id = cell_id
        self.exists = False
        """Whether the collection is there, as far as this process knows."""
        self.is_complete = False
        """Whether its metadata say that a build under the present profiles was finished."""
        self.is_outdated = False
        """Whether a collection of another embedding lies where this one belongs."""
        self._may_be_open = False

    async def open(self, table: FileTable) -> Opened:
        """Open an existing collection, or report that there is none to use.

        A collection of ours whose vectors are of another embedding profile is never searched; it stays until the first
        vectors of the present one are there, which shows that the embedder is what it is configured to be. Raises
        ForeignCollection for one that another cell, or the reference engine, has made.
        """
        self.exists = self.is_complete = self.is_outdated = False
        info = await self._store.describe(self.name)
        if info is None:
            return Opened(is_new=True, is_complete=False)
        self._may_be_open = True
        metadata = CollectionMetadata.from_payload(info.metadata or {})
        if is_foreign(info, self._cell_id):
            raise ForeignCollection(
                f"The collection {self.name} was not made by this cell. Register the workspace with --adopt, or delete "
                f"the collection: indexctl orphans --purge {self.name}."
            )
        if differences := self._differences(info, metadata):
            self.is_outdated = True
            change = f"The index is built anew, because its {', its '.join(differences)}."
            if info.metadata is None:  # its making was cut short before anything was stored in it
                return Opened(is_new=True, is_complete=False)
            logger.warning("collection %s: %s", self.name, change)
            return Opened(is_new=True, is_complete=False, change=change)
        await self._store.open(self.name)
        is_same = metadata.chunking_profile is self._chunking
        self.exists, self.is_complete = True, metadata.indexing_complete and is_same
        repairs: tuple[FileRecord, ...] = ()
        if info.points != table.chunks or any(record.dirty for record in table):
            repairs = tuple(await contradictions(table, await self._store.file_points(self.name)))
        was, own = metadata.chunking_profile.value, self._chunking.value
        rechunked = (
            None if is_same else f"Files are chunked anew one by one, because the profile {was!r} became {own!r}."
        )
        return Opened(is_new=False, is_complete=metadata.indexing_complete, repairs=repairs, change=rechunked)

    def _differences(self, info: CollectionInfo, metadata: CollectionMetadata) -> list[str]:
        if found := metadata.differences(self._embedding):
            return found
        size, own = info.dimension, self._embedding.dimension
        return [] if size == own else [f"vector size {size} became {own}"]

    async def ensure(self) -> None:
        """Create the collection unless it exists; replace an outdated one; complete one whose creation was cut off."""
        if not self.exists:
            self._may_be_open = True
            if self.is_outdated:
                await self._store.drop(self.name)
                self.is_outdated = False
            if await self._store.describe(self.name) is None:
                await self._store.create(self.name, self._embedding.dimension)
            await self.describe(complete=False)
            self.exists = True

    async def describe(self, *, complete: bool) -> None:
        """Write the metadata point: whether the index is whole, and whose it is."""
        metadata = CollectionMetadata(
            self._embedding.provider,
            self._embedding.model,
            self._embedding.dimension,
            complete,
            self._chunking,
            self._cell_id,
            round(1000 * utc_now().timestamp()),
            query_prefix=self._embedding.query_prefix,
            document_prefix=self._embedding.document_prefix,
        )
        await self._store.write_metadata(self.name, metadata.to_payload())
        self.is_complete = complete

    async def close(self) -> None:
        """Free what the store holds open of the collection, however far its opening came."""
        if self._may_be_open:
            self._may_be_open = False
            try:
                await self._store.close(self.name)
            except SemindexError as error:
                logger.info("a collection was not closed: %s", error)  # the next opening puts right whatever that left


def is_foreign(info: CollectionInfo, cell_id: str) -> bool:
    """Say whether a collection was made by another cell or by the reference engine."""
    is_blank = info.metadata is None and not info.points
    return not is_blank and CollectionMetadata.from_payload(info.metadata or {}).cell_id != cell_id


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


async def purge_collection(
    store: VectorStore, ledger: Ledger, name: str, cell_id: str, *, grace: float = PURGE_GRACE
) -> None:
    """Delete the collection of a workspace and its ledger, and ask the store whether the collection is gone.

    One that another cell made stays: nothing in it is ours. Raises StoreUnavailable if the collection is still there,
    or after ``grace`` seconds; whatever was deleted stays deleted, and a repetition does the rest.
    """
    with trio.move_on_after(grace) as scope:
        await _purge(store, ledger, name, cell_id)
    if scope.cancelled_caught:
        raise StoreUnavailable(f"Deleting the data took longer than {grace:g} seconds.")


async def _purge(store: VectorStore, ledger: Ledger, name: str, cell_id: str) -> None:
    info = await store.describe(name)
    if info is not None and is_foreign(info, cell_id):
        logger.warning("collection %s was not made by this cell and is left as it is", name)
    else:
        # Also where there seems to be nothing: a deletion cut short by kill -9 left files that only another one finds.
        await store.drop(name)
        if await store.describe(name) is not None:
            raise StoreUnavailable(f"The collection {name} is still there after its deletion.")
    await ledger.clear()
