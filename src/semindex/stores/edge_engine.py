"""The embedded vector engine behind one open collection; runs in the worker process only.

The only module that imports ``qdrant_edge``. It knows no domain terms: filters are the JSON objects of Qdrant's REST
interface, keys and ids come from the caller. The engine holds the interpreter's lock during every call, and raises
nothing more precise than ``Exception``; a panic of it is not even that.

A process that is killed at any instant has stored every update that returned: the engine writes each to its log first
(its version 0.8 did not read that log again; 0.9 does, and a test watches that it goes on to).
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
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
    Memory,
    PayloadSchemaType,
    Point,
    Query,
    QueryRequest,
    ScrollRequest,
    SearchParams,
    UpdateOperation,
)

from semindex.stores import edge_files
from semindex.stores.edge_files import Record
from semindex.stores.edge_protocol import Settings

SEARCH_THREADS = 2
"""Threads of each open collection; the engine's own choice follows the number of cores."""

FLUSH_EVERY = 10_000
"""Points written between flushes. Opening after a crash replays what was not flushed, at 0.1 s per 1,000 points."""

FULL_SCAN_KB = 10_000
"""Size of vectors below which a filtered search looks at each: the engine's own default, which has to be given."""


class WithVectors(NamedTuple):
    """A result that comes with vectors."""

    result: object
    vectors: bytes
    """Float32 components, one vector after another."""


class Shard:
    """One open collection."""

    def __init__(self, directory: Path, record: Record, engine: EdgeShard, indexed_keys: Sequence[str]) -> None:
        """Take over an engine's shard, and make the payload indexes that it lacks."""
        self.record = self._stored_record = record
        self._directory = directory
        self._engine = engine
        self._unflushed = 0
        present = engine.info().payload_schema
        for key in indexed_keys:
            if key not in present:
                engine.update(UpdateOperation.create_field_index(key, PayloadSchemaType.Keyword))

    @classmethod
    def create(cls, directory: Path, record: Record, settings: Settings) -> "Shard":
        """Create a collection in a directory that holds its record and nothing else."""
        config = EdgeConfig(
            # Cold: an open collection does not take 32 MB of page cache for vectors that it does not have.
            EdgeVectorParams(record.dimension, Distance.Cosine, memory=Memory.Cold),
            hnsw_config=HnswIndexConfig(settings.hnsw_m, settings.hnsw_ef_construct, FULL_SCAN_KB),
            max_search_threads=SEARCH_THREADS,
        )
        shard = cls(directory, record, EdgeShard.create(str(directory), config), settings.indexed_keys)
        shard.flush()
        shard.keep_record(record._replace(ready=True))
        return shard

    @classmethod
    def load(cls, directory: Path, record: Record, settings: Settings) -> "Shard":
        """Open a collection; replays what a process that was killed had not flushed."""
        return cls(directory, record, EdgeShard.load(str(directory)), settings.indexed_keys)

    def keep_record(self, record: Record) -> None:
        """Write the collection's record if it has changed."""
        self.record = record
        if record != self._stored_record:
            edge_files.write_record(self._directory, record)
            self._stored_record = record

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
            raise ValueError("an empty filter would delete every point")
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

    def vectors(self, ids: list[str]) -> WithVectors:
        """Return the ids that are there, and their vectors."""
        found = self._engine.retrieve([*ids], False, True)
        return WithVectors([str(record.id) for record in found], _floats(record.vector for record in found))

    def payload(self, point_id: str) -> object:
        """Return the payload of one point, or None."""
        found = self._engine.retrieve([point_id], True, False)
        return found[0].payload if found else None

    def page(
        self, matching: Mapping[str, Any], fields: list[str] | bool, offset: str | None, limit: int
    ) -> WithVectors:
        """Return one page of points, in the order of their ids, and their vectors.

        The result holds ``[id, payload]`` of each, and the id at which the next page begins, None after the last.
        """
        found, following = self._engine.scroll(
            ScrollRequest(offset, limit, filter=to_filter(matching), with_payload=fields, with_vector=True)
        )
        rows = [[str(record.id), record.payload] for record in found]
        return WithVectors(
            [rows, None if following is None else str(following)], _floats(record.vector for record in found)
        )

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
        self.keep_record(self.record)

    def _update(self, operation: UpdateOperation, written: int) -> None:
        """Apply an update that writes so many points, and count those that it replaces or deletes."""
        before = self._engine.info().points_count
        self._engine.update(operation)
        removed = before + written - self._engine.info().points_count
        self.record = self.record._replace(removed=self.record.removed + removed)
        self._unflushed += written
        if self._unflushed >= FLUSH_EVERY:
            self.flush()


def to_filter(source: Mapping[str, Any]) -> Filter:
    """Translate the JSON object of a REST filter."""
    must, should, must_not = (_conditions(source.get(clause, ())) for clause in ("must", "should", "must_not"))
    return Filter(must, should, must_not)


def _floats(vectors: Iterable[Any]) -> bytes:
    """Join vectors; those of points without named ones are lists."""
    floats = array("f")
    for vector in vectors:
        floats.extend(vector)
    return floats.tobytes()


def _conditions(sources: Sequence[Mapping[str, Any]]) -> list[Any] | None:
    """Translate a clause; None for an empty one, since to the engine an empty ``should`` is one that never holds."""
    return [_condition(source) if "key" in source else to_filter(source) for source in sources] or None


def _condition(source: Mapping[str, Any]) -> FieldCondition:
    match = source["match"]
    return FieldCondition(source["key"], MatchAny(list(match["any"])) if "any" in match else MatchValue(match["value"]))
