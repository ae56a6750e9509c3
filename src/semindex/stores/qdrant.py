"""The vector store on a Qdrant server, through qdrant-client's REST interface, which runs on Trio.

Collections, payloads and filters are those of the reference engine, so that an index made by one can be read by the
other. Two differences are deliberate: the search structure is the smaller one unless configured otherwise (measured:
seven times cheaper to build, equal recall), and ``filePath`` has an index, since a delete has to hit exactly one file.
Importing this module takes a second: whoever may do without a server imports it late.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, ParamSpec, TypeVar

import httpx  # noqa: ASYNC127 - qdrant-client is built on it
import numpy as np
import trio
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from semindex.model.errors import CollectionMissing, StoreRejected
from semindex.model.ids import METADATA_POINT_ID
from semindex.model.limits import HNSW_EF_CONSTRUCT, HNSW_M
from semindex.model.points import INDEXED_SEGMENTS, METADATA_TYPE, Hit, Payload
from semindex.ports import CollectionInfo, StoredTexts, TryFailed, Vectors, ignore_failure
from semindex.shielding import shielded
from semindex.stores.checks import (
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
from semindex.stores.qdrant_calls import (
    Answered,
    Attempts,
    CollectionExists,
    RequestTooLarge,
    ServerUrl,
    Unanswered,
)

_filter = models.Filter.model_validate
P = ParamSpec("P")
T = TypeVar("T")

POINTS_PER_REQUEST = 64
FLOATS_PER_REQUEST = 32_768
"""Points of one request, and components of their vectors: a larger one would keep the loop for more than 10 ms."""
POINTS_PER_PAGE = 1000
"""Points of one page where only few fields of each are asked for."""
DECIMALS = 9
"""Of a component on the wire: what a float32 between -1 and 1 can mean, in half the digits that it would take."""
CLOSE_TIMEOUT = 2.0
"""Seconds for closing connections while everything is being cancelled."""


class QdrantVectorStore:
    """Implements :class:`semindex.ports.VectorStore`; see :func:`open_qdrant_store`."""

    def __init__(self, client: AsyncQdrantClient, attempts: Attempts, hnsw: models.HnswConfigDiff) -> None:
        self._client = client
        self._attempts = attempts
        self._hnsw = hnsw
        self._dimensions: dict[str, int] = {}

    async def describe(self, collection: str) -> CollectionInfo | None:
        """Return what is known of a collection; None only if the server says that there is none."""
        check_name(collection)
        try:
            size, _ = await self._look(collection)
            counted = await self._call(self._client.count, collection, _filter(CHUNKS_ONLY), exact=True)
            found = await self._call(self._client.retrieve, collection, [METADATA_POINT_ID], with_payload=True)
        except CollectionMissing:
            return None
        return CollectionInfo(size, counted.count, found[0].payload if found else None)

    async def create(self, collection: str, dimension: int) -> None:
        """Create an empty collection with all payload indexes, before the first point."""
        check_name(collection)
        check_dimension(dimension)
        vectors = models.VectorParams(size=dimension, distance=models.Distance.COSINE, on_disk=True)
        make = partial(
            self._client.create_collection, collection, vectors, hnsw_config=self._hnsw, on_disk_payload=True
        )
        tries = 0

        async def create() -> object:
            nonlocal tries
            tries += 1
            return await _translated(make)

        refusal: CollectionExists | None = None
        try:
            await self._attempts(create, collection)
        except CollectionExists as error:
            # An earlier try may have made it although its answer was lost.
            if tries == 1:
                raise
            refusal = error
        await self.open(collection)
        if refusal is not None:
            counted = await self._call(self._client.count, collection, exact=True)
            if counted.count or self._dimensions[collection] != dimension:
                raise refusal

    async def open(self, collection: str) -> None:
        """Make sure that the collection exists and that its payload indexes do; repeating that is harmless."""
        check_name(collection)
        self._dimensions[collection], indexed = await self._look(collection)
        for key in INDEXED_KEYS:
            if key not in indexed:
                keyword = models.PayloadSchemaType.KEYWORD
                await self._call(self._client.create_payload_index, collection, key, keyword, wait=True)

    async def write_metadata(self, collection: str, payload: Mapping[str, object]) -> None:
        """Replace the metadata point, whose vector is zero."""
        check_name(collection)
        check_text(payload)
        zero = np.zeros((1, await self._dimension(collection)), np.float32)
        await self._write(collection, [METADATA_POINT_ID], zero, [{**payload, "type": METADATA_TYPE}])

    async def upsert(self, collection: str, ids: Sequence[str], vectors: Vectors, payloads: Sequence[Payload]) -> None:
        """Write points, in requests that each are stored when they are answered."""
        check_name(collection)
        dimension = await self._dimension(collection)
        check_points(dimension, ids, vectors, payloads)
        size = max(1, min(POINTS_PER_REQUEST, FLOATS_PER_REQUEST // dimension))
        for start in range(0, len(ids), size):
            part = slice(start, start + size)
            await self._write(collection, ids[part], vectors[part], payloads[part])

    async def delete_files(self, collection: str, paths: Sequence[str]) -> None:
        """Delete the points of exactly these files."""
        check_name(collection)
        joined(paths)
        await self._dimension(collection)
        for matching in delete_filters(paths):
            selector = models.FilterSelector(filter=_filter(matching))
            await self._call(self._client.delete, collection, selector, wait=True)

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
        """Return the best hits; below a prefix deeper than the indexes, more are asked for until enough are right."""
        check_name(collection)
        check_query(await self._dimension(collection), vector)
        joined(segments)
        joined(exclude)
        matching = _filter(search_filter(segments, exclude))
        asked = limit
        while asked:
            response = await self._call(
                self._client.query_points,
                collection,
                vector.tolist(),
                query_filter=matching,
                search_params=models.SearchParams(hnsw_ef=SEARCH_EF),
                limit=asked,
                with_payload=list(HIT_FIELDS),
                score_threshold=score_threshold(min_score),
            )
            found = [Hit.from_payload(point.score, point.payload or {}) for point in response.points]
            hits = [hit for hit in found if hit is not None and lies_below(hit.file_path, segments)]
            if len(hits) >= limit or len(found) < asked or len(segments) <= INDEXED_SEGMENTS:
                return hits[:limit]
            asked *= 4
        return []

    async def fetch_vectors(self, collection: str, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors that are stored, scaled to length 1."""
        check_name(collection)
        check_ids(ids)
        await self._dimension(collection)
        vectors: dict[str, Vectors] = {}
        for start in range(0, len(ids), POINTS_PER_REQUEST):
            part = list(ids[start : start + POINTS_PER_REQUEST])
            points = await self._call(self._client.retrieve, collection, part, with_payload=False, with_vectors=True)
            vectors |= {str(point.id): np.asarray(point.vector, np.float32) for point in points}
        return vectors

    async def file_points(self, collection: str) -> dict[str, dict[str, int]]:
        """Count the points of each file and hash, page by page: what is written meanwhile may be counted or not."""
        check_name(collection)
        await self._dimension(collection)
        files: dict[str, dict[str, int]] = {}
        offset: Any = None
        while True:
            points, offset = await self._scroll(collection, ["filePath", "fileHash"], offset, POINTS_PER_PAGE)
            for point in points:
                payload = point.payload or {}
                hashes = files.setdefault(str(payload.get("filePath")), {})
                file_hash = str(payload.get("fileHash"))
                hashes[file_hash] = hashes.get(file_hash, 0) + 1
            if offset is None:
                return files

    async def stored_texts(self, collection: str, after: str | None = None) -> StoredTexts:
        """Return one page of texts and vectors."""
        check_name(collection)
        dimension = await self._dimension(collection)
        points, following = await self._scroll(collection, ["codeChunk"], after, POINTS_PER_REQUEST, with_vectors=True)
        texts = tuple(str((point.payload or {}).get("codeChunk") or "") for point in points)
        vectors = np.array([point.vector for point in points], np.float32).reshape(-1, dimension)
        return StoredTexts(texts, vectors, None if following is None else str(following))

    async def flush(self, collection: str) -> None:
        """Do nothing: every write has waited until the server had it."""
        check_name(collection)
        await self._dimension(collection)

    async def optimize(self, collection: str) -> None:
        """Do nothing: the server builds its search structures by itself."""
        check_name(collection)
        await self._dimension(collection)

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
            return bool(await self._call(self._client.delete_collection, collection))
        except CollectionMissing:
            return False

    async def collections(self) -> list[str]:
        """Return the names of all collections of the server, sorted."""
        found = await self._attempts(partial(_translated, self._client.get_collections))
        return sorted(each.name for each in found.collections)

    async def _look(self, collection: str) -> tuple[int, Collection[str]]:
        """Return a collection's dimension and the keys that have an index of ours."""
        info = await self._call(self._client.get_collection, collection)
        vectors, keyword = info.config.params.vectors, models.PayloadSchemaType.KEYWORD
        if not isinstance(vectors, models.VectorParams):
            raise StoreRejected(f"The collection {collection} has named vectors, which semindex never makes.")
        return vectors.size, {key for key, index in info.payload_schema.items() if index.data_type == keyword}

    async def _dimension(self, collection: str) -> int:
        """Return the dimension, which also makes sure that the collection was there once."""
        if collection not in self._dimensions:
            self._dimensions[collection], _ = await self._look(collection)
        else:
            await trio.lowlevel.checkpoint()
        return self._dimensions[collection]

    async def _write(
        self, collection: str, ids: Sequence[str], vectors: Vectors, payloads: Sequence[Mapping[str, Any]]
    ) -> None:
        """Write points; where a proxy finds them too large, in halves."""
        rows = np.round(vectors.astype(np.float64), DECIMALS).tolist()
        batch = models.Batch(ids=[*ids], vectors=rows, payloads=[dict(payload) for payload in payloads])
        try:
            await self._call(self._client.upsert, collection, batch, wait=True)
        except RequestTooLarge:
            if len(ids) == 1:
                raise
            for part in (slice(len(ids) // 2), slice(len(ids) // 2, None)):
                await self._write(collection, ids[part], vectors[part], payloads[part])

    async def _scroll(
        self, collection: str, fields: list[str], offset: Any, limit: int, *, with_vectors: bool = False
    ) -> tuple[list[models.Record], Any]:
        matching, order = _filter(CHUNKS_ONLY), None
        return await self._call(
            self._client.scroll, collection, matching, limit, order, offset, fields, with_vectors=with_vectors
        )

    async def _call(self, method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Carry out a call of the client whose first argument is a collection that is expected to exist."""
        return await self._attempts(partial(_translated, method, *args, **kwargs), str(args[0]))


async def _translated(method: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a method of the client with its errors translated; what they say may hold anything, and is not passed on."""
    try:
        return await method(*args, **kwargs)
    except UnexpectedResponse as error:
        raise Answered(error.status_code or 500, error.content) from error
    except ResourceExhaustedResponse as error:
        raise Answered(429, b"", float(error.retry_after_s)) from error
    except ResponseHandlingException as error:
        is_transport = isinstance(error.source, httpx.TransportError)
        raise Unanswered(type(error.source).__name__ if is_transport else "its answer makes no sense") from error
    except QdrantException as error:
        raise Answered(429, b"") from error  # with a Retry-After that the client cannot read


@asynccontextmanager
async def open_qdrant_store(
    server: ServerUrl,
    api_key: str | None,
    *,
    call_timeout: float,
    concurrency: int,
    hnsw_m: int = HNSW_M,
    hnsw_ef_construct: int = HNSW_EF_CONSTRUCT,
    failed: TryFailed = ignore_failure,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[QdrantVectorStore]:
    """Open the store of a server; nothing is sent yet. ``call_timeout`` in seconds; ``transport`` replaces sockets."""
    client = AsyncQdrantClient(
        host=server.host,
        port=server.port,
        https=server.https,
        prefix=server.prefix or None,
        # As a header of our own: the client's parameter warns of plain http, which is how a loopback server is reached.
        headers={"api-key": api_key} if api_key else None,
        timeout=max(1, round(call_timeout)),
        check_compatibility=False,
        limits=httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency),
        transport=transport,
    )
    attempts = Attempts(server, call_timeout=call_timeout, concurrency=concurrency, failed=failed)
    hnsw = models.HnswConfigDiff(m=hnsw_m, ef_construct=hnsw_ef_construct, on_disk=True)
    async with AsyncExitStack() as afterwards:
        afterwards.push_async_callback(_close, client)
        yield QdrantVectorStore(client, attempts, hnsw)


async def _close(client: AsyncQdrantClient) -> None:
    with shielded(CLOSE_TIMEOUT, "closing the connections to the Qdrant server"):
        await client.close()
