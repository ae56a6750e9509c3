"""The vector store in memory: the exact twin of the real ones.

Owns nothing but dictionaries, and starts no thread, so that tests may run it under a virtual clock. Scores are exact
cosines. Every call is a checkpoint before it does anything, and none after: what it did is seen at once and whole.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import trio
from attrs import define, field

from semindex.model.errors import CollectionMissing, StoreRejected
from semindex.model.points import METADATA_TYPE, Hit, Payload
from semindex.ports import CollectionInfo, StoredTexts, Vectors
from semindex.stores.checks import (
    check_dimension,
    check_ids,
    check_name,
    check_points,
    check_query,
    check_text,
    joined,
)
from semindex.stores.filters import lies_below

TEXTS_PER_PAGE = 256


@define
class _Collection:
    dimension: int
    vectors: dict[str, Vectors] = field(factory=dict)
    payloads: dict[str, Payload] = field(factory=dict)
    metadata: Mapping[str, object] | None = None
    matrix: Vectors | None = None
    """The vectors in the order of the dictionary, made by the first search after a change."""


class MemoryVectorStore:
    """A :class:`~semindex.ports.VectorStore` whose collections live as long as it does."""

    def __init__(self) -> None:
        """Make a store without collections."""
        self._collections: dict[str, _Collection] = {}

    async def describe(self, collection: str) -> CollectionInfo | None:
        """Return what is known of a collection; None if it does not exist."""
        await trio.lowlevel.checkpoint()
        check_name(collection)
        found = self._collections.get(collection)
        return None if found is None else CollectionInfo(found.dimension, len(found.payloads), found.metadata)

    async def create(self, collection: str, dimension: int) -> None:
        """Create an empty collection."""
        await trio.lowlevel.checkpoint()
        check_name(collection)
        check_dimension(dimension)
        if collection in self._collections:
            raise StoreRejected(f"The collection {collection} exists already.")
        self._collections[collection] = _Collection(dimension)

    async def open(self, collection: str) -> None:
        """Check that the collection exists."""
        await self._find(collection)

    async def write_metadata(self, collection: str, payload: Mapping[str, object]) -> None:
        """Replace the metadata."""
        found = await self._find(collection)
        check_text(payload)
        found.metadata = {**payload, "type": METADATA_TYPE}

    async def upsert(self, collection: str, ids: Sequence[str], vectors: Vectors, payloads: Sequence[Payload]) -> None:
        """Write points, scaled to length 1 as the engine does."""
        found = await self._find(collection)
        check_points(found.dimension, ids, vectors, payloads)
        for point, vector, payload in zip(ids, vectors, payloads, strict=True):
            found.vectors[point] = _unit(vector)
            found.payloads[point] = payload.copy()
        found.matrix = None

    async def delete_files(self, collection: str, paths: Sequence[str]) -> None:
        """Delete the points of exactly these files."""
        found = await self._find(collection)
        joined(paths)
        gone = set(paths)
        for point in [point for point, payload in found.payloads.items() if payload["filePath"] in gone]:
            del found.vectors[point], found.payloads[point]
        found.matrix = None

    async def search(
        self,
        collection: str,
        vector: Vectors,
        *,
        limit: int,
        min_score: float,
        segments: Sequence[str] = (),
        exclude: Collection[str] = (),
    ) -> list[Hit]:
        """Return the best of all points, found by looking at every one."""
        found = await self._find(collection)
        check_query(found.dimension, vector)
        joined(segments)
        joined(exclude)
        if found.matrix is None:
            found.matrix = np.array(list(found.vectors.values()), np.float32).reshape(-1, found.dimension)
        scores = found.matrix @ _unit(vector)
        payloads = list(found.payloads.values())
        hits: list[Hit] = []
        for row in np.argsort(-scores, kind="stable"):
            if len(hits) >= limit or scores[row] < np.float32(min_score):
                break
            path = payloads[row]["filePath"]
            if path not in exclude and lies_below(path, segments):
                hit = Hit.from_payload(float(scores[row]), payloads[row])
                hits += [hit] if hit else []
        return hits

    async def fetch_vectors(self, collection: str, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return copies of the vectors that are there."""
        found = await self._find(collection)
        check_ids(ids)
        return {point: found.vectors[point].copy() for point in ids if point in found.vectors}

    async def file_points(self, collection: str) -> dict[str, dict[str, int]]:
        """Count the points of each file and hash."""
        found = await self._find(collection)
        files: dict[str, dict[str, int]] = {}
        for payload in found.payloads.values():
            hashes = files.setdefault(payload["filePath"], {})
            hashes[payload["fileHash"]] = hashes.get(payload["fileHash"], 0) + 1
        return files

    async def stored_texts(self, collection: str, after: str | None = None) -> StoredTexts:
        """Return the next texts in the order of their ids."""
        found = await self._find(collection)
        ids = sorted(point for point in found.payloads if after is None or point > after)
        page = ids[:TEXTS_PER_PAGE]
        rows = np.array([found.vectors[point] for point in page], np.float32).reshape(-1, found.dimension)
        following = page[-1] if len(ids) > len(page) else None
        return StoredTexts(tuple(found.payloads[point]["codeChunk"] for point in page), rows, following)

    async def flush(self, collection: str) -> None:
        """Check that the collection exists."""
        await self._find(collection)

    async def optimize(self, collection: str) -> None:
        """Check that the collection exists."""
        await self._find(collection)

    async def close(self, collection: str) -> None:
        """Do nothing: memory is freed by dropping."""
        await trio.lowlevel.checkpoint()
        check_name(collection)

    async def drop(self, collection: str) -> bool:
        """Delete a collection; return whether there was one."""
        await trio.lowlevel.checkpoint()
        check_name(collection)
        return self._collections.pop(collection, None) is not None

    async def collections(self) -> list[str]:
        """Return the names of all collections, sorted."""
        await trio.lowlevel.checkpoint()
        return sorted(self._collections)

    async def _find(self, collection: str) -> _Collection:
        await trio.lowlevel.checkpoint()
        check_name(collection)
        found = self._collections.get(collection)
        if found is None:
            raise CollectionMissing(collection)
        return found


def _unit(vector: Vectors) -> Vectors:
    length = np.linalg.norm(vector)
    return np.asarray(vector / length if length else vector, np.float32).copy()
