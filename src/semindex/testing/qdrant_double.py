"""A Qdrant server's double: its REST protocol, as far as semindex and the reference engine use it, on the real engine.

Filters, scores and stored vectors are those of the embedded engine, whose code runs in the double's own process. Strict
mode is on: a filter over a key without an index is refused, as hosted servers do and self-hosted ones do not, although
the engine would answer it. To try semindex without a server: ``python -m semindex.testing.qdrant_double --port 6333``.
"""

import argparse
import importlib.metadata
import json
import tempfile
import uuid
from array import array
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from semindex.stores.edge_protocol import Settings
from semindex.stores.edge_shards import Shards
from semindex.stores.filters import INDEXED_KEYS
from semindex.testing.doubles import Faulty, main
from semindex.testing.qdrant_bodies import Json, Refusal, checked_id, fields_of, keys_of, record_of, rows_of

VERSION = "1.17.1"
ANYTHING = {"must_not": [{"key": "type", "match": {"value": "\0 matches nothing"}}]}
"""A filter that every point passes; the engine's own empty one is refused, lest it delete everything by mistake."""
NO_THRESHOLD = -2.0
_JSON = TypeAdapter[Any](Any)
"""Reads JSON in a quarter of the time that the standard library takes."""


class QdrantDouble:
    """The server; an ASGI application. What it stores stays in its directory."""

    def __init__(self, directory: Path, *, api_key: str | None = None, strict: bool = True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        engine = importlib.metadata.version("qdrant-edge-py")
        self._shards = Shards(Settings(str(directory / "shards"), engine, [*INDEXED_KEYS], 16, 100))
        self._file = directory / "collections.json"
        self.created: dict[str, Json] = json.loads(self._file.read_text()) if self._file.exists() else {}
        """What each collection was created with and under ``indexes`` the keys that clients made indexes for."""
        self._api_key = api_key
        self._strict = strict
        one = "/collections/{name}"
        self._router = Router(
            [
                Route("/", self._greeting),
                Route("/healthz", self._health),
                self._route("GET", "/collections", self._names),
                self._route("PUT", one, self._create),
                self._route("GET", one, self._info),
                self._route("DELETE", one, self._drop),
                self._route("PUT", f"{one}/index", self._index),
                self._route("PUT", f"{one}/points", self._upsert),
                self._route("POST", f"{one}/points", self._retrieve),
                self._route("POST", f"{one}/points/delete", self._delete),
                self._route("POST", f"{one}/points/query", self._query),
                self._route("POST", f"{one}/points/count", self._count),
                self._route("POST", f"{one}/points/scroll", self._scroll),
            ],
            redirect_slashes=False,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of somebody who has the key."""
        if scope["type"] == "http" and not self._is_allowed(Request(scope)):
            refusal = PlainTextResponse("Must provide an API key or an Authorization bearer token", 401)
            await refusal(scope, receive, send)
        else:
            await self._router(scope, receive, send)

    def close(self) -> None:
        """Close every collection."""
        self._shards.close_all()

    def _is_allowed(self, request: Request) -> bool:
        keys = (request.headers.get("api-key"), request.headers.get("authorization", "").removeprefix("Bearer "))
        return self._api_key is None or self._api_key in keys or request.url.path == "/healthz"

    def _route(self, method: str, path: str, call: Callable[[str, Json], Any]) -> Route:
        async def endpoint(request: Request) -> Response:
            content = await request.body()
            try:
                try:
                    body = _JSON.validate_json(content) if content else {}
                except ValueError:
                    raise Refusal(400, "Format error in JSON body") from None
                result = call(request.path_params.get("name", ""), body)
            except Refusal as refusal:
                return JSONResponse({"status": {"error": str(refusal)}, "time": 0.0}, refusal.status)
            return JSONResponse({"result": result, "status": "ok", "time": 0.0})

        return Route(path, endpoint, methods=[method])

    async def _greeting(self, _: Request) -> Response:
        return JSONResponse({"title": "qdrant - vector search engine", "version": VERSION})

    async def _health(self, _: Request) -> Response:
        return PlainTextResponse("healthz check passed")

    # Collections

    def _names(self, _: str, __: Json) -> Json:
        return {"collections": [{"name": name} for name in self.created]}

    def _create(self, name: str, body: Json) -> bool:
        if name in self.created:
            raise Refusal(409, f"Wrong input: Collection `{name}` already exists!")
        size = body.get("vectors", {}).get("size")
        if not isinstance(size, int) or not 1 <= size <= 65536:
            raise Refusal(422, "Validation error in JSON body: [vectors.size: value invalid, must be from 1 to 65536]")
        self._shards.drop(name)
        self._shards.create(name, size, uuid.uuid4().hex)
        self._keep(name, {**body, "indexes": []})
        return True

    def _info(self, name: str, _: Json) -> Json:
        created, points = self._find(name), self._shards.get(name).count(ANYTHING)
        return {
            "status": "green",
            "optimizer_status": "ok",
            "indexed_vectors_count": 0,
            "points_count": points,
            "segments_count": 2,
            "config": {
                "params": {
                    "vectors": created["vectors"],
                    "shard_number": 1,
                    "replication_factor": 1,
                    "write_consistency_factor": 1,
                    "on_disk_payload": created.get("on_disk_payload", True),
                },
                "hnsw_config": {
                    "m": 16,
                    "ef_construct": 100,
                    "full_scan_threshold": 10000,
                    "max_indexing_threads": 0,
                    "on_disk": False,
                    **(created.get("hnsw_config") or {}),
                },
                "optimizer_config": {
                    "deleted_threshold": 0.2,
                    "vacuum_min_vector_number": 1000,
                    "default_segment_number": 0,
                    "flush_interval_sec": 5,
                },
            },
            "payload_schema": {key: {"data_type": "keyword", "points": points} for key in created["indexes"]},
        }

    def _drop(self, name: str, _: Json) -> bool:
        existed = self.created.pop(name, None) is not None
        self._shards.drop(name)
        self._save()
        return existed

    def _index(self, name: str, body: Json) -> Json:
        created, schema = self._find(name), body.get("field_schema")
        if (schema.get("type") if isinstance(schema, dict) else schema) != "keyword":
            raise Refusal(400, "This double knows keyword indexes only")
        if body["field_name"] not in created["indexes"]:
            self._keep(name, {**created, "indexes": [*created["indexes"], body["field_name"]]})
        return _done()

    # Points

    def _upsert(self, name: str, body: Json) -> Json:
        size = self._find(name)["vectors"]["size"]
        if (batch := body.get("batch")) is not None:
            ids, vectors, payloads = batch["ids"], batch["vectors"], batch.get("payloads") or [{}] * len(batch["ids"])
        else:
            points = body.get("points") or []
            ids, vectors, payloads = (
                [point["id"] for point in points],
                [point["vector"] for point in points],
                [point.get("payload") or {} for point in points],
            )
        floats = array("f")
        for point, vector in zip(ids, vectors, strict=True):
            checked_id(point)
            if len(vector) != size:
                raise Refusal(400, f"Wrong input: Vector dimension error: expected dim: {size}, got {len(vector)}")
            floats.extend(array("f", vector))
        if ids:
            self._shards.get(name).upsert(ids, memoryview(floats), payloads)
        return _done()

    def _retrieve(self, name: str, body: Json) -> list[Json]:
        self._find(name)
        shard, ids = self._shards.get(name), [checked_id(point) for point in body["ids"]]
        present, blob = shard.vectors(ids)
        assert isinstance(present, list)
        vectors = dict(zip(present, rows_of(blob, len(present)), strict=True))
        found = [{"id": point, "payload": shard.payload(point)} for point in ids if point in vectors]
        return [record_of(each, vectors[each["id"]], body, with_payload=True) for each in found]

    def _delete(self, name: str, body: Json) -> Json:
        self._find(name)
        matching = body.get("filter")
        if matching is None:
            raise Refusal(400, "This double deletes by filter only")
        self._check_filter(name, matching)
        self._shards.get(name).delete(matching if any(matching.values()) else ANYTHING)
        return _done()

    def _query(self, name: str, body: Json) -> Json:
        size, query = self._find(name)["vectors"]["size"], body["query"]
        vector = query["nearest"] if isinstance(query, dict) else query
        if body.get("limit", 10) < 1:
            raise Refusal(422, "Validation error in JSON body: [limit: value 0 invalid, must be 1 or larger]")
        if len(vector) != size:
            raise Refusal(400, f"Wrong input: Vector dimension error: expected dim: {size}, got {len(vector)}")
        threshold, shard = body.get("score_threshold"), self._shards.get(name)
        hits = shard.query(
            memoryview(array("f", vector)),
            self._matching(name, body),
            fields_of(body.get("with_payload")),
            min(body.get("limit", 10), shard.count(ANYTHING) + 1),
            NO_THRESHOLD if threshold is None else threshold,
            (body.get("params") or {}).get("hnsw_ef") or 128,
            without="",
        )
        points = [{"id": point, "version": 0, "score": score, "payload": payload} for point, score, payload in hits]
        return {"points": points}

    def _count(self, name: str, body: Json) -> Json:
        self._find(name)
        return {"count": self._shards.get(name).count(self._matching(name, body))}

    def _scroll(self, name: str, body: Json) -> Json:
        self._find(name)
        fields = fields_of(body.get("with_payload", True))
        limit = body.get("limit") or 10
        result, blob = self._shards.get(name).page(self._matching(name, body), fields, body.get("offset"), limit)
        assert isinstance(result, list)
        rows, following = result
        records = [
            record_of({"id": point, "payload": payload}, vector, body, with_payload=True)
            for (point, payload), vector in zip(rows, rows_of(blob, len(rows)), strict=True)
        ]
        return {"points": records, "next_page_offset": following}

    # Rules

    def _find(self, name: str) -> Json:
        if name not in self.created:
            raise Refusal(404, f"Not found: Collection `{name}` doesn't exist!")
        return self.created[name]

    def _matching(self, name: str, body: Json) -> Mapping[str, Any]:
        matching: Mapping[str, Any] = body.get("filter") or ANYTHING
        if matching is not ANYTHING:
            self._check_filter(name, matching)
        return matching

    def _check_filter(self, name: str, matching: Mapping[str, Any]) -> None:
        missing = next((key for key in keys_of(matching) if key not in self.created[name]["indexes"]), None)
        if self._strict and missing is not None:
            raise Refusal(
                400,
                f'Bad request: Index required but not found for "{missing}" of one of the following types: [keyword]. '
                "Help: Create an index for this key or use a different filter.",
            )

    def _keep(self, name: str, created: Json) -> None:
        self.created[name] = created
        self._save()

    def _save(self) -> None:
        self._file.write_text(json.dumps(self.created))


def _done() -> Json:
    return {"operation_id": 0, "status": "completed"}


@asynccontextmanager
async def open_qdrant_double(
    directory: Path, *, api_key: str | None = None, strict: bool = True
) -> AsyncIterator[Faulty]:
    """Open a double that keeps its collections in a directory, with faults that can be scripted."""
    server = QdrantDouble(directory, api_key=api_key, strict=strict)
    try:
        yield Faulty(server)
    finally:
        server.close()


@asynccontextmanager
async def _opened(arguments: argparse.Namespace) -> AsyncIterator[Faulty]:
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary if arguments.directory is None else arguments.directory)
        async with open_qdrant_double(
            directory, api_key=arguments.api_key, strict=not arguments.lenient
        ) as application:
            yield application


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--directory", metavar="DIR", help="keeps the collections (default: none is kept)")
    options.add_argument("--api-key", metavar="KEY", help="what clients have to show (default: nothing)")
    options.add_argument("--lenient", action="store_true", help="answer filters over keys without an index, too")
    main("The Qdrant double", options, _opened)
