"""The embedded vector engine, one shard per collection; runs in the worker process only.

The only module that imports ``qdrant_edge``. It knows no domain terms: filters are the JSON objects of Qdrant's REST
interface, keys and ids come from the caller. The engine holds the interpreter's lock during every call.

A process that is killed at any instant has stored every update that returned: the engine writes each to its log first
(its version 0.8 did not read that log again; 0.9 does, and a test watches that it goes on to).
"""

import contextlib
import re
import sys
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    HnswIndexConfig,
    MatchAny,
    MatchValue,
    PayloadSchemaType,
    Point,
    Query,
    QueryRequest,
    ScrollRequest,
    SearchParams,
    UpdateOperation,
)

from semindex.stores import edge_files
from semindex.stores.edge_files import LAYOUT, Record
from semindex.stores.edge_protocol import ErrorKind, Settings

OPEN_SHARDS = 8
"""Collections held open. Each takes some 10 descriptors and 70 MB of page cache, and 0.1 s to open again."""

SEARCH_THREADS = 2
"""Threads of each open collection; the engine's own choice follows the number of cores."""

FLUSH_EVERY = 10_000
"""Points written between flushes. Opening after a crash replays what was not flushed, at 0.1 s per 1,000 points."""

FULL_SCAN_KB = 10_000
"""Size of vectors below which a filtered search looks at each: the engine's own default, which has to be given."""

_PASSING_OS_ERRORS = {1, 5, 11, 12, 13, 23, 24, 28, 30, 122}
"""EPERM, EIO, EAGAIN, ENOMEM, EACCES, ENFILE, EMFILE, ENOSPC, EROFS, EDQUOT: they say nothing about the files."""


class Refused(Exception):
    """An operation that was not done."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        """Say why in one sentence."""
        super().__init__(message)
        self.kind = kind


class FoundVectors(NamedTuple):
    """Vectors by id."""

    ids: list[str]
    vectors: bytes
    """Float32 components, one vector after another."""


class Shard:
    """One open collection."""

    def __init__(self, directory: Path, engine: EdgeShard, record: Record) -> None:
        """Take over an engine's shard."""
        self.record = self._stored_record = record
        self._directory = directory
        self._engine = engine
        self._unflushed = 0

    def dimension(self) -> int:
        """Return the dimension of the vectors."""
        return self.record.dimension

    def upsert(self, ids: Sequence[str], vectors: "memoryview[float]", payloads: Sequence[dict[str, Any]]) -> None:
        """Write points; ``vectors`` holds theirs one after another."""
        size = self.record.dimension
        points = [
            Point(point, vectors[index * size : (index + 1) * size], payload)  # type: ignore[arg-type]  # any sequence of floats will do
            for index, (point, payload) in enumerate(zip(ids, payloads, strict=True))
        ]
        self._update(UpdateOperation.upsert_points(points), len(points))

    def delete(self, matching: Mapping[str, Any]) -> None:
        """Delete the points that a filter matches."""
        if not any(matching.values()):
            raise Refused(ErrorKind.REJECTED, "An empty filter would delete every point.")
        self._update(UpdateOperation.delete_points_by_filter(to_filter(matching)), 0)

    def query(
        self,
        vectors: "memoryview[float]",
        matching: Mapping[str, Any],
        fields: list[str],
        limit: int,
        threshold: float,
        ef: int,
        without: str,
        names: Sequence[str] = (),
    ) -> list[tuple[str, float, object]]:
        """Return (id, score, payload) of the points nearest to the vector, best first.

        Payloads are cut to ``fields``; points whose field ``without`` is one of ``names`` are left out.
        """
        if names:
            matching = {**matching, "must_not": [*matching["must_not"], {"key": without, "match": {"any": names}}]}
        found = self._engine.query(
            QueryRequest(
                limit,
                query=Query.Nearest(vectors),  # type: ignore[arg-type]  # any sequence of floats will do
                with_payload=fields,
                filter=to_filter(matching),
                score_threshold=threshold,
                params=SearchParams(hnsw_ef=ef),
            )
        )
        return [(str(hit.id), hit.score, hit.payload) for hit in found]

    def vectors(self, ids: list[str]) -> FoundVectors:
        """Return the vectors of those ids that are there."""
        found = self._engine.retrieve([*ids], False, True)
        floats = array("f")
        for record in found:
            floats.extend(record.vector)  # type: ignore[arg-type]  # the vector of a point without named ones is a list
        return FoundVectors([str(record.id) for record in found], floats.tobytes())

    def payload(self, point_id: str) -> object:
        """Return the payload of one point, or None."""
        found = self._engine.retrieve([point_id], True, False)
        return found[0].payload if found else None

    def tally(
        self, matching: Mapping[str, Any], fields: list[str], offset: str | None, limit: int
    ) -> tuple[list[list[object]], str | None]:
        """Count one page of points by the values of some fields.

        Returns rows of the values and their count, and the id at which the next page begins, None after the last.
        """
        found, following = self._engine.scroll(
            ScrollRequest(offset, limit, filter=to_filter(matching), with_payload=fields)
        )
        counts: dict[tuple[object, ...], int] = {}
        for record in found:
            payload = record.payload or {}
            values = tuple(payload.get(field) for field in fields)
            counts[values] = counts.get(values, 0) + 1
        return [[*values, count] for values, count in counts.items()], None if following is None else str(following)

    def count(self, matching: Mapping[str, Any]) -> int:
        """Count the points that a filter matches."""
        return self._engine.count(CountRequest(exact=True, filter=to_filter(matching)))

    def gauge(self) -> dict[str, int]:
        """Return the numbers that decide whether optimising is worth it."""
        info = self._engine.info()
        return {
            "points": info.points_count,
            "indexed": info.indexed_vectors_count,
            "removed": self.record.removed,
            "dimension": self.record.dimension,
        }

    def flush(self) -> None:
        """Make everything durable."""
        self._engine.flush()
        self._unflushed = 0

    def optimize(self) -> None:
        """Build search structures, and be rid of removed points. Takes minutes for a large collection."""
        self._engine.optimize()
        self.record = self.record._replace(removed=0)

    def close(self) -> None:
        """Flush and free, and keep the count of removed points."""
        self._engine.close()
        if self.record != self._stored_record:
            edge_files.write_record(self._directory, self.record)

    def _update(self, operation: UpdateOperation, written: int) -> None:
        """Apply an update that writes so many points, and count those that it replaces or deletes."""
        before = self._engine.info().points_count
        self._engine.update(operation)
        removed = before + written - self._engine.info().points_count
        self.record = self.record._replace(removed=self.record.removed + removed)
        self._unflushed += written
        if self._unflushed >= FLUSH_EVERY:
            self.flush()


class Shards:
    """All collections below one directory, of which the most recently used are open."""

    def __init__(self, settings: Settings) -> None:
        """Open nothing yet."""
        self.root = Path(settings.directory)
        self._settings = settings
        self._open: OrderedDict[str, Shard] = OrderedDict()

    def get(self, name: str) -> Shard:
        """Return an open collection, loading it if need be. Raises Refused."""
        shard = self._open.get(name)
        if shard is None:
            record = self._inspect(name)
            if record is None:
                raise Refused(ErrorKind.MISSING, f"The collection {name} does not exist.")
            shard = Shard(self.root / name, self._load(name), record)
            self._keep(name, shard)
        self._open.move_to_end(name)
        return shard

    def create(self, name: str, dimension: int, token: str) -> None:
        """Create a collection; a repetition with the same token, after a reply that was lost, does nothing."""
        existing = self._inspect(name)
        if existing is not None:
            if existing.token == token:
                return
            raise Refused(ErrorKind.REJECTED, f"The collection {name} exists already.")
        directory = self.root / name
        record = Record(self._settings.engine, dimension, token)
        edge_files.begin(directory, record)
        config = EdgeConfig(
            EdgeVectorParams(dimension, Distance.Cosine),
            hnsw_config=HnswIndexConfig(self._settings.hnsw_m, self._settings.hnsw_ef_construct, FULL_SCAN_KB),
            max_search_threads=SEARCH_THREADS,
        )
        engine = EdgeShard.create(str(directory), config)
        self._ensure_indexes(engine)
        engine.flush()
        record = record._replace(ready=True)
        edge_files.write_record(directory, record)
        self._keep(name, Shard(directory, engine, record))

    def close(self, name: str) -> None:
        """Close a collection if it is open."""
        shard = self._open.pop(name, None)
        if shard is not None:
            shard.close()

    def close_all(self) -> None:
        """Close every open collection."""
        for name in list(self._open):
            self.close(name)

    def drop(self, name: str) -> bool:
        """Delete a collection; return whether there was one."""
        with contextlib.suppress(Exception):  # what cannot be flushed, on a full disk say, can still be deleted
            self.close(name)
        return edge_files.discard(self.root / name)

    def names(self) -> list[str]:
        """Return the names of all collections, sorted."""
        return edge_files.names(self.root)

    def _inspect(self, name: str) -> Record | None:
        """Return the record of a collection; None if there is no collection, or its creation was cut short."""
        directory = self.root / name
        if not edge_files.exists(directory):
            return None
        record = edge_files.read_record(directory)
        if record is None:
            raise self._set_aside(directory, "its record is missing or unreadable")
        if not record.ready:
            edge_files.discard(directory)
            return None
        if (record.engine, record.layout) != (self._settings.engine, LAYOUT):
            made, own = f"{record.engine}/{record.layout}", f"{self._settings.engine}/{LAYOUT}"
            raise self._set_aside(directory, f"engine {made} made it, and this is {own}")
        return record

    def _load(self, name: str) -> EdgeShard:
        directory = self.root / name
        try:
            engine = EdgeShard.load(str(directory))
            self._ensure_indexes(engine)
        except Exception as error:
            if "WouldBlock" in str(error):
                message = f"The store in {self.root} is in use by another process; stop that one first."
                raise Refused(ErrorKind.UNAVAILABLE, message) from error
            if may_pass(error):
                raise Refused(ErrorKind.UNAVAILABLE, f"The collection {name} cannot be opened now: {error}") from error
            raise self._set_aside(directory, str(error)) from error
        return engine

    def _ensure_indexes(self, engine: EdgeShard) -> None:
        present = engine.info().payload_schema
        for key in self._settings.indexed_keys:
            if key not in present:
                engine.update(UpdateOperation.create_field_index(key, PayloadSchemaType.Keyword))

    def _set_aside(self, directory: Path, why: str) -> Refused:
        aside = edge_files.set_aside(directory)
        message = f"The collection {directory.name} could not be used ({why}) and was set aside as {aside}."
        sys.stderr.write(message + "\n")
        sys.stderr.flush()
        return Refused(ErrorKind.DAMAGED, message)

    def _keep(self, name: str, shard: Shard) -> None:
        self._open[name] = shard
        while len(self._open) > OPEN_SHARDS:
            self.close(next(iter(self._open)))


def to_filter(source: Mapping[str, Any]) -> Filter:
    """Translate the JSON object of a REST filter."""
    must, should, must_not = (_conditions(source.get(clause, ())) for clause in ("must", "should", "must_not"))
    return Filter(must, should, must_not)


def _conditions(sources: Sequence[Mapping[str, Any]]) -> list[Any] | None:
    """Translate a clause; None for an empty one, since the engine takes an empty ``should`` for one that never holds."""
    return [_condition(source) if "key" in source else to_filter(source) for source in sources] or None


def _condition(source: Mapping[str, Any]) -> FieldCondition:
    match = source["match"]
    return FieldCondition(source["key"], MatchAny(list(match["any"])) if "any" in match else MatchValue(match["value"]))


def may_pass(error: Exception) -> bool:
    """Say whether an error is one of the operating system that says nothing about the files themselves."""
    if isinstance(error, OSError):
        return error.errno in _PASSING_OS_ERRORS
    named = re.search(r"\(os error (\d+)\)", str(error))
    return named is not None and int(named[1]) in _PASSING_OS_ERRORS
