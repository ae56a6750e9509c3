"""Taking over a collection that another cell or the reference engine has made, without embedding anything again.

First every vector goes into the embedding cache, under the text that it stands for: whatever is chunked again
later, under another profile say, finds it there. Then the files that the store and the reference engine's own
account agree on enter the ledger. Last the collection gets our cell id; until then nothing has been changed in it,
and a repetition is right.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping

import trio
from attrs import evolve

from semindex.core.known_models import known_model
from semindex.engine.collection import is_foreign
from semindex.engine.pacing import paced
from semindex.engine.remembering import remember_all
from semindex.engine.tools import Tools
from semindex.model.errors import ForeignCollection
from semindex.model.points import CollectionMetadata
from semindex.model.profiles import EmbeddingProfile
from semindex.model.status import FileRecord, FileState
from semindex.ports import CollectionInfo

logger = logging.getLogger(__name__)

ReferenceHashes = Callable[[], Awaitable[Mapping[str, str]]]
"""Returns relative path → file hash of what the reference engine knows to be stored whole; empty if none is known."""


async def no_hashes() -> Mapping[str, str]:
    """Know no file of the reference engine's."""
    await trio.lowlevel.checkpoint()
    return {}


async def adopt(collection: str, tools: Tools, cell_id: str, hashes: ReferenceHashes, *, is_overlay: bool) -> bool:
    """Make a collection ours if it is somebody else's; return whether it was.

    Raises ForeignCollection if its vectors are not those of the present embedder, and what the ports raise.
    """
    info = await tools.store.describe(collection)
    if info is None or not is_foreign(info, cell_id):
        return False
    metadata = CollectionMetadata.from_payload(info.metadata or {})
    profile = tools.scheduler.profile
    _require_same_space(collection, info, metadata, profile)
    await tools.store.open(collection)
    await remember_all(collection, tools)
    stored = await tools.store.file_points(collection)
    records = []
    async for path, file_hash in paced((await hashes()).items()):
        points = stored.get(path, {})
        if points.keys() == {file_hash} or not (points or is_overlay):
            chunks, chunking = points.get(file_hash, 0), metadata.chunking_profile.version
            records.append(FileRecord(path, FileState.INDEXED, file_hash, chunks=chunks, chunking=chunking))
    await tools.ledger.apply(records)
    ours = evolve(
        metadata,
        embedding_provider=profile.provider,
        cell_id=cell_id,
        query_prefix=profile.query_prefix,
        document_prefix=profile.document_prefix,
    )
    await tools.store.write_metadata(collection, ours.to_payload())
    logger.info("collection %s is taken over: %d points, %d files known", collection, info.points, len(records))
    return True


def _require_same_space(
    collection: str, info: CollectionInfo, metadata: CollectionMetadata, profile: EmbeddingProfile
) -> None:
    """Raise ForeignCollection unless the vectors were made by the model, dimension and document prefix of this profile.

    By whom the model is provided does not change its vectors. The reference engine has no document prefix of its own:
    it puts a model's query prefix before everything.
    """
    known = known_model(metadata.embedding_model_id)
    prefix = metadata.document_prefix
    if metadata.cell_id is None and known is not None:
        prefix = known.query_prefix
    told = evolve(
        metadata,
        embedding_provider=profile.provider,
        query_prefix=profile.query_prefix,
        document_prefix=prefix,
    )
    differences = told.differences(profile)
    if info.dimension != profile.dimension and not differences:
        differences = [f"vector size {info.dimension} became {profile.dimension}"]
    if differences:
        raise ForeignCollection(
            f"The collection {collection} cannot be taken over, because its {', its '.join(differences)}. "
            f"Configure what it was made with, or delete it: indexctl orphans --purge {collection}."
        )
