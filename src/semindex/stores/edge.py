"""The embedded vector store: Qdrant's engine in a child process, one directory per collection.

Owns the port's side of it: what each call means in terms of the worker's operations, in batches that keep the event
loop responsive. The engine holds the interpreter's lock during every call, up to minutes, which is why it is kept out
of this process; :mod:`semindex.stores.edge_supervisor` keeps the child alive.
"""

import importlib.metadata
import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import trio

from semindex.model.errors import CollectionMissing, ConfigurationError, StoreRejected, StoreUnavailable
from semindex.model.ids import METADATA_POINT_ID
from semindex.model.limits import HNSW_EF_CONSTRUCT, HNSW_M
from semindex.model.points import METADATA_TYPE, Hit, Payload
from semindex.ports import CollectionInfo, StoredTexts, Vectors
from semindex.stores import edge_files
from semindex.stores.checks import (
    check_dimension,
    check_ids,
    check_name,
    check_points,
    check_query,
    check_text,
    joined,
)
from semindex.stores.edge_gates import Gates
from semindex.stores.edge_optimizer import Optimizer
from semindex.stores.edge_protocol import ErrorKind, Settings
from semindex.stores.edge_supervisor import CALL_DEADLINE, WorkerHealth, WorkerSupervisor
from semindex.stores.filters import (
    CHUNKS_ONLY,
    DEEP_PATHS,
    HIT_FIELDS,
    INDEXED_KEYS,
    SEARCH_EF,
    deep_paths,
    delete_filters,
    score_threshold,
    search_filter,
)

POINTS_PER_CALL = 256
"""Points written or vectors fetched by one call of the worker: some 4 ms of encoding, and at most 30 ms of its time."""

TALLY_PAGE = 4_000
"""Points counted by one call of the worker, some 25 ms of its time, so that searches go on in between."""

HITS_AT_ONCE = 2_000
"""Hits made between two checkpoints, some 3 ms of work; a search whose hits are mostly masked asks for many more."""


class EdgeVectorStore:
    """A :class:`~semindex.ports.VectorStore` in a child process; made by :func:`open_edge_store`."""

    def __init__(self, settings: Settings, worker: WorkerSupervisor, *, patience: float) -> None:
        """Use this worker; ``patience`` is how many seconds a call waits while its collection is copied."""
        self._settings = settings
        self._worker = worker
        self._gates = Gates(patience)
        self._optimizer = Optimizer(settings, self._gates, self._call)
        self._dimensions: dict[str, int] = {}

    @property
    def health(self) -> WorkerHealth:
        """Return the state of the worker now."""
        return self._worker.health

    async def describe(self, collection: str) -> CollectionInfo | None:
        """Return what is known of a collection; None if it has no directory, or was set aside as damaged."""
        check_name(collection)
        async with self._gates.shared(collection):
            try:
                dimension = await self._call("dimension", collection)
                points = await self._call("count", collection, matching=CHUNKS_ONLY)
                metadata = await self._call("payload", collection, point_id=METADATA_POINT_ID)
            except CollectionMissing:
                return None
        return CollectionInfo(dimension, points, metadata)

    async def create(self, collection: str, dimension: int) -> None:
        """Create an empty collection with all payload indexes."""
        check_name(collection)
        check_dimension(dimension)
        async with self._writing(collection):
            await self._call("create", collection, dimension=dimension, token=uuid.uuid4().hex)
        self._dimensions[collection] = dimension

    async def open(self, collection: str) -> None:
        """Load a collection."""
        check_name(collection)
        async with self._gates.shared(collection):
            await self._open(collection)

    async def write_metadata(self, collection: str, payload: Mapping[str, object]) -> None:
        """Replace the metadata point, whose vector is zero."""
        check_name(collection)
        check_text(payload)
        async with self._writing(collection):
            zero = np.zeros(await self._dimension(collection), np.float32)
            stored = [{**payload, "type": METADATA_TYPE}]
            await self._call("upsert", collection, vectors=_bytes(zero), ids=[METADATA_POINT_ID], payloads=stored)

    async def upsert(self, collection: str, ids: Sequence[str], vectors: Vectors, payloads: Sequence[Payload]) -> None:
        """Write points, in batches: after an error some may be written, and repeating the call is right."""
        check_name(collection)
        async with self._writing(collection):
            check_points(await self._dimension(collection), ids, vectors, payloads)
            for start in range(0, len(ids), POINTS_PER_CALL):
                batch = slice(start, start + POINTS_PER_CALL)
                await self._call(
                    "upsert",
                    collection,
                    vectors=_bytes(vectors[batch]),
                    ids=list(ids[batch]),
                    payloads=[_stored(payload) for payload in payloads[batch]],
                )

    async def delete_files(self, collection: str, paths: Sequence[str]) -> None:
        """Delete the points of exactly these files."""
        check_name(collection)
        async with self._writing(collection):
            await self._dimension(collection)
            joined(paths)
            for matching in delete_filters(paths):
                await self._call("delete", collection, matching=matching)

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
        """Return the best hits."""
        check_name(collection)
        async with self._gates.shared(collection):
            check_query(await self._dimension(collection), vector)
            joined(segments)
            rows = await self._call(
                "query",
                collection,
                vectors=_bytes(vector),
                names=joined(exclude),
                matching=search_filter(segments, deep=True),
                without="filePath",
                fields=HIT_FIELDS,
                limit=limit,
                threshold=score_threshold(min_score),
                ef=SEARCH_EF,
            )
        hits: list[Hit] = []
        for start in range(0, len(rows), HITS_AT_ONCE):
            batch = rows[start : start + HITS_AT_ONCE]
            hits += [hit for _, score, payload in batch if (hit := Hit.from_payload(score, payload or {}))]
            await trio.lowlevel.checkpoint()
        return hits

    async def fetch_vectors(self, collection: str, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors that are stored, scaled to length 1."""
        check_name(collection)
        check_ids(ids)
        vectors: dict[str, Vectors] = {}
        async with self._gates.shared(collection):
            dimension = await self._dimension(collection)
            for start in range(0, len(ids), POINTS_PER_CALL):
                batch = list(ids[start : start + POINTS_PER_CALL])
                present, blob = await self._exchange("vectors", collection, ids=batch)
                rows = np.frombuffer(blob, "<f4").reshape(-1, dimension)
                vectors |= {point: row.copy() for point, row in zip(present, rows, strict=True)}
        return vectors

    async def file_points(self, collection: str) -> dict[str, dict[str, int]]:
        """Count the points of each file and hash, page by page: what is written meanwhile may be counted or not."""
        check_name(collection)
        files: dict[str, dict[str, int]] = {}
        offset: str | None = None
        async with self._gates.shared(collection):
            while True:
                rows, offset = await self._call(
                    "tally",
                    collection,
                    matching=CHUNKS_ONLY,
                    fields=["filePath", "fileHash"],
                    offset=offset,
                    limit=TALLY_PAGE,
                )
                for path, file_hash, points in rows:
                    hashes = files.setdefault(str(path), {})
                    hashes[str(file_hash)] = hashes.get(str(file_hash), 0) + points
                if offset is None:
                    return files

    async def stored_texts(self, collection: str, after: str | None = None) -> StoredTexts:
        """Return one page of texts and vectors."""
        check_name(collection)
        async with self._gates.shared(collection):
            dimension = await self._dimension(collection)
            (rows, following), blob = await self._exchange(
                "page", collection, matching=CHUNKS_ONLY, fields=["codeChunk"], offset=after, limit=POINTS_PER_CALL
            )
        texts = tuple(str((payload or {}).get("codeChunk") or "") for _, payload in rows)
        return StoredTexts(texts, np.frombuffer(blob, "<f4").reshape(-1, dimension), following)

    async def flush(self, collection: str) -> None:
        """Make what was written durable against a power failure."""
        check_name(collection)
        async with self._gates.shared(collection):
            await self._call("flush", collection)

    async def optimize(self, collection: str) -> None:
        """Build search structures on a copy, if it is worth it; searches go on, and a write gives it up for now."""
        check_name(collection)
        await self._optimizer.optimize(collection)

    async def close(self, collection: str) -> None:
        """Flush, and free what an open collection holds."""
        check_name(collection)
        async with self._gates.shared(collection):
            await self._call("close", collection)

    async def drop(self, collection: str) -> bool:
        """Delete a collection's directory for good, with what was set aside of it as damaged."""
        check_name(collection)
        await self._optimizer.forget(collection)
        async with self._gates.shared(collection):
            self._dimensions.pop(collection, None)
            existed: bool = await self._call("drop", collection)
            return existed

    async def collections(self) -> list[str]:
        """Return the names of all collections, sorted."""
        names: list[str] = await self._call("names", "")
        return names

    @asynccontextmanager
    async def _writing(self, collection: str) -> AsyncIterator[None]:
        await self._optimizer.give_way(collection)
        async with self._gates.shared(collection):
            yield

    async def _dimension(self, collection: str) -> int:
        """Return the dimension, which also makes sure that the collection is there."""
        known = self._dimensions.get(collection)
        return await self._open(collection) if known is None else known

    async def _open(self, collection: str) -> int:
        dimension: int = await self._call("dimension", collection)
        self._dimensions[collection] = dimension
        return dimension

    async def _call(
        self, operation: str, collection: str, *, vectors: bytes = b"", names: bytes = b"", **arguments: object
    ) -> Any:
        """Return the result of an operation, as decoded from JSON."""
        result, _ = await self._exchange(operation, collection, vectors=vectors, names=names, **arguments)
        return result

    async def _exchange(
        self, operation: str, collection: str, *, vectors: bytes = b"", names: bytes = b"", **arguments: object
    ) -> tuple[Any, bytes]:
        """Return the result of an operation and the vectors that came with it, or raise what went wrong."""
        request = {
            "operation": operation,
            "collection": collection,
            "arguments": arguments,
            "floats": len(vectors),
        }
        *parts, last = await self._worker.call(request, vectors + names)
        rows: list[Any] = []
        for part in parts:
            rows += part.json()["result"]
            await trio.lowlevel.checkpoint()
        reply = last.json()
        match reply.get("error"):
            case None:
                return rows + reply["result"] if parts else reply["result"], last.blob
            case ErrorKind.MISSING:
                self._dimensions.pop(collection, None)
                raise CollectionMissing(collection)
            case ErrorKind.DAMAGED:
                self._dimensions.pop(collection, None)
                raise CollectionMissing(collection, f" any more: {reply['message']}")
            case ErrorKind.UNAVAILABLE:
                raise StoreUnavailable(reply["message"])
            case _:
                raise StoreRejected(reply["message"])


@asynccontextmanager
async def open_edge_store(
    directory: Path,
    *,
    hnsw_m: int = HNSW_M,
    hnsw_ef_construct: int = HNSW_EF_CONSTRUCT,
    call_deadline: float = CALL_DEADLINE,
) -> AsyncIterator[EdgeVectorStore]:
    """Open the embedded store whose collections lie below ``directory``, which need not exist yet.

    The worker starts at once, and the first call waits for it. On leaving, it closes its collections and ends, also
    when cancelled; calls that others still have under way raise StoreUnavailable. As with any nursery, an error of
    the body comes out in an ExceptionGroup. Raises ConfigurationError if the engine is not installed.
    """
    try:
        engine = importlib.metadata.version("qdrant-edge-py")
    except importlib.metadata.PackageNotFoundError:
        message = "The embedded vector store has no engine for this platform; use a Qdrant server (QDRANT_URL) instead."
        raise ConfigurationError(message) from None
    settings = Settings(str(directory), engine, [*INDEXED_KEYS, DEEP_PATHS], hnsw_m, hnsw_ef_construct)
    await trio.to_thread.run_sync(edge_files.recover, directory)
    supervisor = WorkerSupervisor(settings, call_deadline=call_deadline)
    async with trio.open_nursery() as nursery:
        await nursery.start(supervisor.run)
        yield EdgeVectorStore(settings, supervisor, patience=call_deadline)
        nursery.cancel_scope.cancel()


def _bytes(vectors: Vectors) -> bytes:
    return np.ascontiguousarray(vectors, "<f4").tobytes()


def _stored(payload: Payload) -> Mapping[str, object]:
    """Return a payload with what the embedded store adds for paths with many segments."""
    deep = deep_paths(payload["filePath"])
    return {**payload, DEEP_PATHS: deep} if deep else payload
