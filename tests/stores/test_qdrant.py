"""The store on a Qdrant server: the conformance suite, and what only a server far away can do.

SEMINDEX_TEST_QDRANT_URL names a real server to run the suite against (SEMINDEX_TEST_QDRANT_API_KEY its key); every
collection on it is deleted.
"""

import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx  # noqa: ASYNC127 - qdrant-client is built on it
import httpx2
import numpy as np
import pytest
import trio
from attrs import define
from trio.testing import MockClock

from semindex.model.errors import StoreRejected, StoreUnavailable
from semindex.model.ids import METADATA_POINT_ID, point_id
from semindex.model.points import CollectionMetadata
from semindex.model.profiles import ChunkingProfile
from semindex.ports import VectorStore
from semindex.stores.qdrant import QdrantVectorStore, open_qdrant_store
from semindex.stores.qdrant_calls import CollectionExists, parse_url
from semindex.testing.doubles import Fault, Faulty, InProcess
from semindex.testing.qdrant_double import QdrantDouble, open_qdrant_double
from tests.stores.conformance import WS, VectorStoreConformance, payload, points, put, vectors

KEY = "key-of-the-qdrant-tests"
RECORDED = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "parity" / "qdrant_rest.json").read_text(encoding="utf-8")
)["rest"]
RECORDED_COLLECTION = "ws-9dad1e4e08b0b11c"


class TestQdrantVectorStore(VectorStoreConformance):
    @pytest.fixture
    async def store(self, qdrant_server: tuple[str, str | None]) -> AsyncIterator[VectorStore]:
        url, key = qdrant_server
        async with open_qdrant_store(parse_url(url), key, call_timeout=30, concurrency=8) as store:
            for name in await store.collections():
                await store.drop(name)
            yield store


# One double for each test, without a socket


@define
class Bed:
    """A double and a store on it."""

    store: QdrantVectorStore
    faulty: Faulty
    server: QdrantDouble

    def requests(self, part: str) -> list[str]:
        return [request for request in self.faulty.requests if part in request]


@pytest.fixture
async def bed(directory: Path) -> AsyncIterator[Bed]:
    async with opened(directory) as bed:
        yield bed


@asynccontextmanager
async def opened(directory: Path, *, key: str | None = None, **options: Any) -> AsyncIterator[Bed]:
    """Open a double that wants a key, and a store on it."""
    async with open_qdrant_double(directory, api_key=KEY) as faulty:
        settings: dict[str, Any] = {
            "call_timeout": 30,
            "concurrency": 8,
            "transport": InProcess(faulty, httpx),
        } | options
        async with open_qdrant_store(parse_url("http://qdrant.test:6333"), key or KEY, **settings) as store:
            assert isinstance(faulty.application, QdrantDouble)
            yield Bed(store, faulty, faulty.application)


async def filled(bed: Bed) -> None:
    await bed.store.create(WS, 2)
    await put(bed.store, "a.py", [1, 0])


async def test_a_collection_is_created_as_the_engine_page_says(autojump_clock: MockClock, bed: Bed) -> None:
    await bed.store.create(WS, 2)

    created = bed.server.created[WS]
    assert created["vectors"] == {"size": 2, "distance": "Cosine", "on_disk": True}
    assert created["hnsw_config"] == {"m": 16, "ef_construct": 100, "on_disk": True}
    assert created["on_disk_payload"] is True
    assert set(created["indexes"]) == {"type", "filePath", *(f"pathSegments.{number}" for number in range(5))}


async def test_the_search_structure_may_be_that_of_the_reference_engine(
    autojump_clock: MockClock, directory: Path
) -> None:
    async with opened(directory, hnsw_m=64, hnsw_ef_construct=512) as bed:
        await bed.store.create(WS, 2)

        assert bed.server.created[WS]["hnsw_config"] == {"m": 64, "ef_construct": 512, "on_disk": True}


async def test_a_wrong_key_is_unavailable_and_told_without_the_key(autojump_clock: MockClock, directory: Path) -> None:
    async with opened(directory, key="another-key") as bed:
        with pytest.raises(StoreUnavailable, match="refuses the API key") as caught:
            await bed.store.describe(WS)

    assert "another-key" not in f"{caught.value!r} {bed.store!r} {vars(bed.store)!r}"


async def test_what_answers_in_the_place_of_the_server_is_not_taken_for_an_empty_one(
    autojump_clock: MockClock, bed: Bed
) -> None:
    await filled(bed)
    bed.faulty.script(Fault(status=404, body="default backend - 404", times=None))

    for call in (bed.store.describe(WS), bed.store.drop(WS), put(bed.store, "b.py", [1, 0])):
        with pytest.raises(StoreUnavailable, match=r"http://qdrant\.test:6333 is no Qdrant server"):
            await call

    bed.faulty.script()
    assert await points(bed.store) == 1


async def test_a_collection_that_was_made_although_the_answer_was_lost_is_used(
    autojump_clock: MockClock, bed: Bed
) -> None:
    bed.faulty.script(Fault(where=f"PUT /collections/{WS}", cut=5))

    await bed.store.create(WS, 2)

    assert await points(bed.store) == 0
    made = [request for request in bed.faulty.requests if request.split("?")[0] == f"PUT /collections/{WS}"]
    assert len(made) == 2


async def test_a_collection_that_somebody_else_made_meanwhile_is_not_taken_for_ours(
    autojump_clock: MockClock, bed: Bed
) -> None:
    bed.faulty.script(Fault(where=f"PUT /collections/{WS}", status=503, delay=1))
    async with trio.open_nursery() as nursery:

        async def make_another() -> None:
            await trio.sleep(0.5)
            await filled(Bed(bed.store, bed.faulty, bed.server))

        nursery.start_soon(make_another)
        with pytest.raises(CollectionExists):
            await bed.store.create(WS, 2)

    assert await points(bed.store) == 1


CALLS_THAT_MAY_BE_REPEATED: dict[str, Callable[[VectorStore], Awaitable[object]]] = {
    "upsert": lambda store: put(store, "b.py", [0, 1]),
    "delete": lambda store: store.delete_files(WS, ["b.py"]),
    "metadata": lambda store: store.write_metadata(WS, {"a": 1}),
    "search": lambda store: store.search(WS, vectors([1, 0])[0], limit=5, min_score=0),
    "describe": lambda store: store.describe(WS),
    "texts": lambda store: store.stored_texts(WS),
    "files": lambda store: store.file_points(WS),
    "collections": lambda store: store.collections(),
}


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=503),
        Fault(status=500, body='{"status": {"error": "panic"}}'),
        Fault(status=429, headers={"retry-after": "3"}),
        Fault(status=429, headers={"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        Fault(status=429),
        Fault(cut=0),
        Fault(cut=20),
    ],
    ids=["503", "500", "429 with seconds", "429 with a date", "429", "no body", "half a body"],
)
async def test_a_failure_that_passes_costs_nothing_but_time(autojump_clock: MockClock, bed: Bed, fault: Fault) -> None:
    await filled(bed)
    for name, call in CALLS_THAT_MAY_BE_REPEATED.items():
        expected = await call(bed.store)
        bed.faulty.script(fault)
        asked = len(bed.faulty.requests)

        assert str(await call(bed.store)) == str(expected), name

        assert len(bed.faulty.requests) > asked + 1
        assert await points(bed.store) == (2 if name == "upsert" else 1)


async def test_a_server_that_hangs_is_unavailable_in_time(autojump_clock: MockClock, bed: Bed) -> None:
    await filled(bed)
    bed.faulty.script(Fault(hangs=True, times=None))
    for call in CALLS_THAT_MAY_BE_REPEATED.values():
        began = trio.current_time()

        with pytest.raises(StoreUnavailable, match="within 30 s"):
            await call(bed.store)

        assert trio.current_time() - began == pytest.approx(30)


async def test_an_answer_that_makes_no_sense_is_unavailable_and_not_quoted(autojump_clock: MockClock, bed: Bed) -> None:
    await filled(bed)
    bed.faulty.script(Fault(status=200, body='{"result": {"points": "def settle_invoice()"}}', times=None))

    with pytest.raises(StoreUnavailable, match="its answer makes no sense") as caught:
        await bed.store.search(WS, vectors([1, 0])[0], limit=5, min_score=0)

    assert "settle_invoice" not in str(caught.value)


async def test_a_request_that_a_proxy_finds_too_large_is_written_in_halves(autojump_clock: MockClock, bed: Bed) -> None:
    await bed.store.create(WS, 2)
    bed.faulty.script(Fault(where="PUT /collections/ws-0123456789abcdef/points", status=413, times=3))

    await put(bed.store, "a.py", *[[1, number] for number in range(8)])

    assert await points(bed.store) == 8


async def test_a_single_point_that_is_too_large_is_rejected(autojump_clock: MockClock, bed: Bed) -> None:
    await bed.store.create(WS, 2)
    bed.faulty.script(Fault(where="/points", status=413, times=None))

    with pytest.raises(StoreRejected, match="too large"):
        await put(bed.store, "a.py", [1, 0])


async def test_points_of_large_dimensions_go_in_smaller_requests(autojump_clock: MockClock, bed: Bed) -> None:
    await bed.store.create(WS, 4096)
    rows = np.eye(20, 4096, dtype=np.float32)

    await bed.store.upsert(
        WS, [str(uuid.UUID(int=n)) for n in range(20)], rows, [payload("a.py", n) for n in range(20)]
    )

    assert len(bed.requests(f"PUT /collections/{WS}/points")) == 3
    assert await points(bed.store) == 20


async def test_a_collection_of_the_reference_engine_gets_its_missing_index_when_it_is_opened(
    autojump_clock: MockClock, bed: Bed
) -> None:
    await replay(bed, "initialize: collection missing", WS)
    assert "filePath" not in bed.server.created[WS]["indexes"]
    ids = [point_id("a")]
    await bed.store.upsert(WS, ids, vectors([1, 0, 0, 0]), [payload("src/a.py")])
    with pytest.raises(StoreRejected, match="Index required"):
        await bed.store.delete_files(WS, ["src/a.py"])

    await bed.store.open(WS)
    await bed.store.delete_files(WS, ["src/a.py"])

    assert await points(bed.store) == 0
    assert len(bed.requests("/index")) == 6 + 1


async def test_every_write_is_waited_for(autojump_clock: MockClock, bed: Bed) -> None:
    await filled(bed)
    await bed.store.write_metadata(WS, {"a": 1})
    await bed.store.delete_files(WS, ["a.py"])

    writes = [*bed.requests("/index"), *bed.requests("PUT /collections/ws-0123456789abcdef/"), *bed.requests("/delete")]
    assert len(writes) > 9
    assert [request for request in writes if not request.endswith("?wait=true")] == []


async def test_opening_a_collection_that_has_its_indexes_changes_nothing(autojump_clock: MockClock, bed: Bed) -> None:
    await filled(bed)
    made = len(bed.requests("/index"))

    await bed.store.open(WS)

    assert len(bed.requests("/index")) == made


async def test_a_failure_is_told_at_the_first_try_and_not_only_when_the_call_is_given_up(
    autojump_clock: MockClock, directory: Path
) -> None:
    told = list[str]()
    async with opened(directory, failed=lambda error, _seconds: told.append(str(error))) as bed:
        bed.faulty.script(Fault(status=503, body='{"status": {"error": "starting"}}'))
        await bed.store.collections()

    assert told == ["The Qdrant server http://qdrant.test:6333 fails (HTTP 503): starting"]


# The reference engine


async def replay(bed: Bed, name: str, collection: str) -> list[httpx2.Response]:
    """Send the requests that the reference engine sent in a situation, to another collection; return the answers."""
    [recorded] = [case for case in RECORDED if case["name"] == name]
    answers = []
    async with httpx2.AsyncClient(transport=InProcess(bed.faulty), base_url="http://qdrant.test:6333") as client:
        for request in recorded["requests"]:
            path = request["path"].replace(RECORDED_COLLECTION, collection)
            answers.append(
                await client.request(
                    request["method"],
                    path,
                    json=request.get("body"),
                    headers={"api-key": KEY, "user-agent": "Kilo-Code"},
                )
            )
    return answers


@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case["name"])
async def test_the_double_answers_whatever_the_reference_engine_asked(
    autojump_clock: MockClock, bed: Bed, case: dict[str, Any]
) -> None:
    if "missing" not in case["name"]:
        await bed.store.create(WS, 4)

    answers = await replay(bed, case["name"], WS)

    exists = "missing" not in case["name"]
    for answer in answers:
        method = answer.request.method
        exists = {"DELETE": False, "PUT": True}.get(method, exists) if answer.request.url.path.endswith(WS) else exists
        assert answer.status_code == (200 if exists or method == "DELETE" else 404), answer.request.url


async def test_points_of_the_reference_engine_are_found_and_deleted(autojump_clock: MockClock, bed: Bed) -> None:
    await replay(bed, "initialize: collection missing", WS)
    await replay(bed, "upsertPoints", WS)
    await replay(bed, "markIndexingComplete", WS)
    await bed.store.open(WS)

    info = await bed.store.describe(WS)
    assert info is not None
    assert info.metadata is not None
    assert info.metadata["indexing_complete"] is True
    assert info.points == 2
    [hit] = await bed.store.search(WS, vectors([1, 0, 0, 0])[0], limit=5, min_score=0.5)
    assert (hit.file_path, hit.start_line, hit.end_line, hit.code_chunk) == ("src/a/b.ts", 1, 2, "code")
    await bed.store.delete_files(WS, ["src/a/b.ts"])
    assert await points(bed.store) == 1


def test_what_we_store_is_what_the_reference_engine_stores() -> None:
    [recorded] = [case for case in RECORDED if case["name"] == "upsertPoints"]
    [marked] = [case for case in RECORDED if case["name"] == "markIndexingComplete"]
    theirs = recorded["requests"][0]["body"]["points"][0]["payload"]
    ours = payload("src/a/b.ts", 1, text="code", file_hash="h")
    metadata = CollectionMetadata(
        "openai", "text-embedding-3-small", 4, True, ChunkingProfile.KILO, "cell"
    ).to_payload()
    metadata_of_theirs = marked["requests"][0]["body"]["points"][0]

    assert ours.keys() == theirs.keys()
    assert ours["pathSegments"] == theirs["pathSegments"]
    assert metadata_of_theirs["id"] == METADATA_POINT_ID
    assert {**metadata, "completed_at": "<ms epoch>"} == {
        **metadata_of_theirs["payload"],
        "chunking_profile": "kilo",
        "cell_id": "cell",
    }


async def test_a_collection_of_ours_is_one_that_the_reference_engine_goes_on_with(
    autojump_clock: MockClock, bed: Bed
) -> None:
    """It looks at the vectors' size and the metadata point, and makes the collection anew if either is not its own."""
    await bed.store.create(WS, 4)
    await bed.store.write_metadata(
        WS, CollectionMetadata("openai", "text-embedding-3-small", 4, True, ChunkingProfile.KILO, "cell").to_payload()
    )

    collection, metadata, *indexes = [
        answer.json()["result"] for answer in await replay(bed, "initialize: exists, compatible metadata", WS)
    ]

    assert collection["config"]["params"]["vectors"]["size"] == 4
    assert collection["points_count"] == 1
    stored = metadata[0]["payload"]
    assert (stored["type"], stored["index_schema"], stored["indexing_complete"]) == ("metadata", 2, True)
    assert stored["embedding_provider"] == "openai"
    assert stored["embedding_model_id"] == "text-embedding-3-small"
    assert stored["embedding_dimension"] == 4
    assert [index["status"] for index in indexes] == ["completed"] * 6


async def test_a_double_that_is_started_again_has_what_it_had(autojump_clock: MockClock, directory: Path) -> None:
    async with opened(directory) as bed:
        await filled(bed)
    async with opened(directory) as bed:
        assert await points(bed.store) == 1
        await bed.store.delete_files(WS, ["a.py"])
        assert await points(bed.store) == 0
