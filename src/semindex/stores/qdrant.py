"""The vector store on a Qdrant server, through qdrant-client's REST interface, which runs on Trio.

Collections, payloads and filters are those of the reference engine, so that an index made by one can be read by the other.
Two differences are deliberate: the search structure is the smaller one unless configured otherwise (measured: seven times
cheaper to build, equal recall), and ``filePath`` has an index, since a delete has to hit exactly one file.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar, cast

import httpx
import numpy as np
import trio
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from semindex.model.errors import StoreRejected, StoreUnavailable
from semindex.model.ids import METADATA_POINT_ID
from semindex.model.points import INDEXED_SEGMENTS, METADATA_TYPE, Hit, Payload
from semindex.ports import CollectionInfo, Vectors
from semindex.stores.checks import (
    CollectionMissing,
    check_dimension,
    check_ids,
    check_name,
    check_points,
    check_query,
    check_text,
    joined,
)
from semindex.stores.filters import (
    CHUNKS_ONLY,
    HIT_FIELDS,
    INDEXED_KEYS,
    SEARCH_EF,
    delete_filters,
    lies_below,
    score_threshold,
    search_filter,
)
from semindex.stores.qdrant_calls import Answered, ServerUrl, Unanswered, attempt

T = TypeVar("T")

HNSW_M, HNSW_EF_CONSTRUCT = 16, 100
POINTS_PER_REQUEST = 64
"""Points of one upsert: building a larger request would keep the loop for too long."""
PAGE = 1000
"""Points of one page when all are listed."""


class QdrantVectorStore:
    """Implements :class:`semindex.ports.VectorStore`; see :func:`open_qdrant_store`."""

    def __init__(self, client: AsyncQdrantClient, *, hnsw_m: int, hnsw_ef_construct: int) -> None:
        self._client = client
        self._hnsw = models.HnswConfigDiff(m=hnsw_m, ef_construct=hnsw_ef_construct, on_disk=True)
        self._dimensions: dict[str, int] = {}

    async def describe(self, collection: str) -> CollectionInfo | None:
        """Return what is known of a collection; None only if the server says that there is none."""
        check_name(collection)
        try:
            dimension = await self._read_dimension(collection)
            points = await self._ask(
                lambda: self._client.count(collection, count_filter=_filter(CHUNKS_ONLY), exact=True)
            )
            found = await self._ask(lambda: self._client.retrieve(collection, [METADATA_POINT_ID], with_payload=True))
        except Answered as error:
            if error.status == 404:
                return None
            raise _rejected(error) from error
        return CollectionInfo(dimension, points.count, found[0].payload if found else None)

    async def create(self, collection: str, dimension: int) -> None:
        """Create an empty collection with all payload indexes, before the first point."""
        check_name(collection)
        check_dimension(dimension)
        vectors = models.VectorParams(size=dimension, distance=models.Distance.COSINE, on_disk=True)
        try:
            await self._ask(
                lambda: self._client.create_collection(
                    collection, vectors_config=vectors, hnsw_config=self._hnsw, on_disk_payload=True
                )
            )
        except Answered as error:
            # A create that was tried again, or another client, may have been there first: then the size decides.
            if error.status != 409 or await self._read_dimension(collection) != dimension:
                raise _rejected(error) from error
            if await self._count(collection):
                raise StoreRejected(
                    f"The collection {collection} exists already; open it, or drop it first."
                ) from error
        await self._ensure_indexes(collection)
        self._dimensions[collection] = dimension

    async def open(self, collection: str) -> None:
        """Make sure that the collection exists and that its payload indexes do; repeating that is harmless."""
        check_name(collection)
        await self._dimension(collection, again=True)
        await self._ensure_indexes(collection)

    async def write_metadata(self, collection: str, payload: Mapping[str, object]) -> None:
        """Replace the metadata point, whose vector is zero."""
        check_name(collection)
        check_text(payload)
        zero = [0.0] * await self._dimension(collection)
        await self._write(collection, [METADATA_POINT_ID], [zero], [{**payload, "type": METADATA_TYPE}])

    async def upsert(self, collection: str, ids: Sequence[str], vectors: Vectors, payloads: Sequence[Payload]) -> None:
        """Write points, in requests that each are stored when they are answered."""
        check_name(collection)
        check_points(await self._dimension(collection), ids, vectors, payloads)
        for start in range(0, len(ids), POINTS_PER_REQUEST):
            part = slice(start, start + POINTS_PER_REQUEST)
            await self._write(collection, ids[part], vectors[part].tolist(), [dict(each) for each in payloads[part]])

    async def delete_files(self, collection: str, paths: Sequence[str]) -> None:
        """Delete the points of exactly these files."""
        check_name(collection)
        joined(paths)
        await self._dimension(collection)
        for matching in delete_filters(paths):
            selector = models.FilterSelector(filter=_filter(matching))
            await self._call(collection, lambda s=selector: self._client.delete(collection, s, wait=True))

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
        """Return the best hits; below a prefix that is deeper than the indexes, more are asked for until enough are right."""
        check_name(collection)
        check_query(await self._dimension(collection), vector)
        joined(segments)
        joined(exclude)
        matching = _filter(search_filter(segments, exclude))
        asked = limit
        while True:
            response = await self._call(
                collection,
                lambda size=asked: self._client.query_points(
                    collection,
                    query=vector.tolist(),
                    query_filter=matching,
                    search_params=models.SearchParams(hnsw_ef=SEARCH_EF),
                    limit=size,
                    with_payload=list(HIT_FIELDS),
                    score_threshold=score_threshold(min_score),
                ),
            )
            found = [Hit.from_payload(point.score, point.payload or {}) for point in response.points]
            hits = [hit for hit in found if hit is not None and lies_below(hit.file_path, segments)]
            if len(hits) >= limit or len(found) < asked or len(segments) <= INDEXED_SEGMENTS:
                return hits[:limit]
            asked *= 4

    async def fetch_vectors(self, collection: str, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors that are stored."""
        check_name(collection)
        check_ids(ids)
        await self._dimension(collection)
        vectors: dict[str, Vectors] = {}
        for start in range(0, len(ids), POINTS_PER_REQUEST):
            part = list(ids[start : start + POINTS_PER_REQUEST])
            points = await self._call(
                collection, lambda p=part: self._client.retrieve(collection, p, with_payload=False, with_vectors=True)
            )
            vectors |= {str(point.id): np.asarray(point.vector, np.float32) for point in points}
        return vectors

    async def file_points(self, collection: str) -> dict[str, dict[str, int]]:
        """Count the points of each file and hash, page by page."""
        check_name(collection)
        await self._dimension(collection)
        files: dict[str, dict[str, int]] = {}
        offset: Any = None
        while True:
            points, offset = await self._call(
                collection,
                lambda at=offset: self._client.scroll(
                    collection,
                    scroll_filter=_filter(CHUNKS_ONLY),
                    limit=PAGE,
                    offset=at,
                    with_payload=["filePath", "fileHash"],
                    with_vectors=False,
                ),
            )
            for point in points:
                payload = point.payload or {}
                hashes = files.setdefault(str(payload.get("filePath")), {})
                file_hash = str(payload.get("fileHash"))
                hashes[file_hash] = hashes.get(file_hash, 0) + 1
            if offset is None:
                return files

    async def flush(self, collection: str) -> None:
        """Do nothing: every write waited until the server had it."""
        check_name(collection)
        await trio.lowlevel.checkpoint()

    async def optimize(self, collection: str) -> None:
        """Do nothing: the server builds its search structures by itself."""
        check_name(collection)
        await trio.lowlevel.checkpoint()

    async def close(self, collection: str) -> None:
        """Forget what is known of the collection here."""
        check_name(collection)
        self._dimensions.pop(collection, None)
        await trio.lowlevel.checkpoint()

    async def drop(self, collection: str) -> bool:
        """Delete a collection."""
        check_name(collection)
        self._dimensions.pop(collection, None)
        try:
            return bool(await self._ask(lambda: self._client.delete_collection(collection)))
        except Answered as error:
            if error.status == 404:
                return False
            raise _rejected(error) from error

    async def collections(self) -> list[str]:
        """Return the names of all collections of the server, sorted."""
        found = await self._ask(self._client.get_collections)
        return sorted(each.name for each in found.collections)

    async def _ensure_indexes(self, collection: str) -> None:
        for key in INDEXED_KEYS:
            await self._call(
                collection,
                lambda k=key: self._client.create_payload_index(
                    collection, k, models.PayloadSchemaType.KEYWORD, wait=True
                ),
            )

    async def _write(
        self, collection: str, ids: Sequence[str], vectors: list[list[float]], payloads: list[dict[str, Any]]
    ) -> None:
        batch = models.Batch(ids=cast("list[Any]", list(ids)), vectors=vectors, payloads=payloads)
        await self._call(collection, lambda: self._client.upsert(collection, batch, wait=True))

    async def _count(self, collection: str) -> int:
        return (await self._call(collection, lambda: self._client.count(collection, exact=True))).count

    async def _dimension(self, collection: str, *, again: bool = False) -> int:
        known = self._dimensions.get(collection)
        if known is None or again:
            known = await self._call(collection, lambda: self._read_dimension(collection))
            self._dimensions[collection] = known
        return known

    async def _read_dimension(self, collection: str) -> int:
        info = await self._ask(lambda: self._client.get_collection(collection))
        vectors = info.config.params.vectors
        if not isinstance(vectors, models.VectorParams):
            raise StoreRejected(f"The collection {collection} has named vectors, which semindex never makes.")
        return vectors.size

    async def _call(self, collection: str, call: Callable[[], Awaitable[T]]) -> T:
        """Carry out a call on a collection that is expected to exist."""
        try:
            return await self._ask(call)
        except Answered as error:
            if error.status == 404:
                self._dimensions.pop(collection, None)
                raise CollectionMissing(collection) from error
            raise _rejected(error) from error

    async def _ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """Carry out a call with the client's errors translated, and again where that may help."""

        async def translated() -> T:
            try:
                return await call()
            except UnexpectedResponse as error:
                retry_after = None
                with suppress(ValueError):
                    retry_after = float(error.headers.get("retry-after", ""))
                raise Answered(error.status_code or 500, error.content, retry_after) from error
            except ResourceExhaustedResponse as error:
                raise Answered(429, error.message.encode(), float(error.retry_after_s)) from error
            except ResponseHandlingException as error:
                source = error.source
                raise Unanswered(str(source) or type(source).__name__) from error

        return await attempt(translated)


@asynccontextmanager
async def open_qdrant_store(
    url: ServerUrl,
    api_key: str | None,
    *,
    call_timeout: float,
    concurrency: int,
    hnsw_m: int = HNSW_M,
    hnsw_ef_construct: int = HNSW_EF_CONSTRUCT,
) -> AsyncIterator[QdrantVectorStore]:
    """Open the store of a server; nothing is sent yet. ``call_timeout`` in seconds."""
    client = AsyncQdrantClient(
        host=url.host,
        port=url.port,
        https=url.https,
        prefix=url.prefix or None,
        # As a header of our own: the client's own parameter warns of plain http, which is how a loopback server is reached.
        headers={"api-key": api_key} if api_key else None,
        timeout=max(1, round(call_timeout)),
        check_compatibility=False,
        limits=httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
    )
    try:
        yield QdrantVectorStore(client, hnsw_m=hnsw_m, hnsw_ef_construct=hnsw_ef_construct)
    finally:
        with trio.move_on_after(CLOSE_TIMEOUT, shield=True):
            await client.close()


CLOSE_TIMEOUT = 2.0
"""Seconds for closing connections while everything is being cancelled."""


def _filter(matching: Mapping[str, Any]) -> models.Filter:
    return models.Filter.model_validate(matching)


def _rejected(error: Answered) -> StoreRejected | StoreUnavailable:
    return StoreRejected(f"The Qdrant server refused a call (HTTP {error.status}): {error.message}")
