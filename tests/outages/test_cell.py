"""A whole cell over both doubles and real sockets: a day in its life, its outages, and how it keeps its credentials."""

import json
import logging
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from attrs import define, field

from semindex import janitor
from semindex.config import CellConfig
from semindex.embedders import patience
from semindex.model.ids import METADATA_POINT_ID, reference_cache_file
from semindex.model.profiles import ChunkingProfile
from semindex.model.status import State
from semindex.observe import health
from semindex.stores import qdrant_calls
from semindex.testing.doubles import Fault, Faulty, served
from semindex.testing.embedder_double import EmbedderDouble
from semindex.testing.qdrant_double import QdrantDouble, open_qdrant_double
from semindex.testing.served import Served, served_cell

PATIENCE = 120.0
QDRANT_KEY, EMBEDDER_KEY = "qdrant-key-in-the-environment", "embedder-key-in-the-environment"
WRONG_KEYS = ["qdrant-key-in-the-file", "embedder-key-in-the-file"]
USER_INFO = "user-of-the-url:password-of-the-url"
HELIOTROPE = "# Heliotrope authentication validates bearer credentials before it dispatches the request.\n"
VERMILION = "# The vermilion settlement ledger reconciles every completed invoice once a night.\n"
DOWN = Fault(status=503, times=None)


@define
class World:
    """What outlives a cell."""

    home: Path
    embedder: Faulty
    endpoint: EmbedderDouble
    qdrant: Faulty
    embedder_url: str
    qdrant_url: str
    said: list[str] = field(factory=list)
    """All that was answered to clients."""

    @property
    def tree(self) -> Path:
        return self.home / "tree"

    def config(self) -> CellConfig:
        """The configuration of a fleet's cell; the keys in it are overridden by the environment."""
        return CellConfig.model_validate_json(
            json.dumps(
                {
                    "stateDirectory": str(self.home / "state"),
                    "cacheDirectory": str(self.home / "cache"),
                    "allowedRoots": [str(self.tree)],
                    "indexing": {
                        "model": "deterministic-test-embedding",
                        "dimension": 32,
                        "openai-compatible": {
                            "baseUrl": self.embedder_url.replace("://", f"://{USER_INFO}@") + "/v1",
                            "apiKey": WRONG_KEYS[1],
                        },
                        "qdrant": {"url": self.qdrant_url, "apiKey": WRONG_KEYS[0]},
                        "searchMinScore": 0.3,
                    },
                    "shutdown": {"requestGraceMs": 200, "drainGraceMs": 500},
                    "workers": 1,
                }
            )
        )

    @property
    def collections(self) -> list[str]:
        assert isinstance(self.qdrant.application, QdrantDouble)
        return list(self.qdrant.application.created)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real time: whatever pauses, pauses shortly."""
    for module, name, seconds in [
        (patience, "FIRST_PAUSE", 0.01),
        (qdrant_calls, "FIRST_PAUSE", 0.01),
        (health, "PROBE_PAUSE", 0.05),
        (janitor, "RELEASE_INTERVAL", 0.1),
    ]:
        monkeypatch.setattr(module, name, seconds)
    for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("SEMANTIC_INDEX_QDRANT_API_KEY", QDRANT_KEY)
    monkeypatch.setenv("SEMANTIC_INDEX_EMBEDDER_API_KEY", EMBEDDER_KEY)


@asynccontextmanager
async def world(home: Path, directory: Path) -> AsyncIterator[World]:
    endpoint = EmbedderDouble(32, EMBEDDER_KEY)
    embedder = Faulty(endpoint)
    async with (
        open_qdrant_double(directory, api_key=QDRANT_KEY) as qdrant,
        served(embedder) as embedder_url,
        served(qdrant) as qdrant_url,
    ):
        (home / "tree").mkdir()
        (home / "tree" / "auth.py").write_text(HELIOTROPE)
        yield World(home, embedder, endpoint, qdrant, embedder_url, qdrant_url)


@define
class Client:
    """A client of the control API that writes down what it is told."""

    served: Served
    said: list[str]

    async def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        headers = {"authorization": f"Bearer {self.served.control_token}"}
        async with httpx2.AsyncClient(base_url=self.served.url, headers=headers, timeout=60, verify=False) as client:
            response = await client.request(method, path, json=body)
        self.said.append(f"{response.headers} {response.text}")
        return response.status_code, response.json() if path != "/metrics" else response.text

    async def search(self, query: str) -> tuple[int, Any]:
        return await self.call("POST", "/v1/search", {"registrationId": "tree", "query": query})

    async def until(self, path: str, holds: Callable[[int, Any], bool]) -> Any:
        """Ask until the answer is as wanted."""
        while True:
            status, answer = await self.call("GET", path)
            if holds(status, answer):
                return answer
            await trio.sleep(0.02)

    async def until_indexed(self) -> Any:
        return await self.until("/v1/registrations/tree", lambda _, answer: answer["state"] == State.INDEXED)

    async def until_health(self, status: int) -> Any:
        return await self.until("/healthz", lambda code, _: code == status)


@asynccontextmanager
async def running(at: World) -> AsyncIterator[Client]:
    async with served_cell(at.config()) as cell:
        yield Client(cell, at.said)


def best(answer: tuple[int, Any]) -> str | None:
    """The file of the best hit; in 32 dimensions there may be others."""
    status, content = answer
    assert status == 200, content
    return content["results"][0]["filePath"] if content["results"] else None


@pytest.mark.usefixtures("quick")
async def test_a_day_in_the_life_of_a_cell(
    tmp_path: Path, fast_directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with trio.fail_after(PATIENCE):
        async with world(tmp_path, fast_directory) as at:
            await first_day(at)
            await store_goes_down(at)
            await both_are_down_at_the_start(at)
            await release_while_the_store_is_down(at)
            assert at.collections == []
            documents = [text for text in at.endpoint.texts if text in (HELIOTROPE.strip(), VERMILION.strip())]
            assert sorted(documents) == sorted([HELIOTROPE.strip(), VERMILION.strip()])

            log = "\n".join(
                f"{record.getMessage()} {''.join(traceback.format_exception(*record.exc_info)) if record.exc_info else ''}"
                for record in caplog.records
            )
            told = "\n".join([*at.said, log, repr(at.config()), str(at.config())])
            for secret in (QDRANT_KEY, EMBEDDER_KEY, *WRONG_KEYS, *USER_INFO.split(":")):
                assert secret not in told
            assert "Heliotrope" not in log


async def first_day(at: World) -> None:
    """Register, build, search, edit; both keys are those of the environment."""
    async with running(at) as client:
        status, _ = await client.call("PUT", "/v1/registrations/tree", {"path": str(at.tree)})
        assert status == 200
        await client.until_indexed()
        assert best(await client.search("heliotrope bearer credentials")) == "auth.py"
        (at.tree / "ledger.py").write_text(VERMILION)
        assert best(await client.search("vermilion settlement ledger")) == "ledger.py"
        answer = await client.until("/v1/status", lambda _, answer: answer["phase"] == "ready")
        for dependency in ("embedder", "store"):
            assert answer["dependencies"][dependency]["reachable"] is True
            assert answer["dependencies"][dependency]["latencyMs"] > 0
        assert len(at.collections) == 1
        await client.call("GET", "/metrics")


async def store_goes_down(at: World) -> None:
    """Searches say what is wrong, health says it too, edits wait, and all comes back by itself."""
    async with running(at) as client:
        await client.until_indexed()
        at.qdrant.script(DOWN)
        status, answer = await client.search("heliotrope bearer credentials")
        assert (status, answer["code"]) == (503, "store_unavailable")
        assert (await client.until_health(503))["status"] == "degraded"
        _, answer = await client.call("GET", "/v1/status")
        assert answer["dependencies"]["store"]["reachable"] is False
        assert "503" in answer["dependencies"]["store"]["lastError"]
        assert "vector store" in answer["message"]

        at.embedder.script(DOWN)
        await client.search("a question that nobody has asked before")
        await client.until("/v1/status", lambda _, answer: not answer["dependencies"]["embedder"]["reachable"])
        at.qdrant.script()
        assert best(await client.search("heliotrope bearer credentials")) == "auth.py"
        status, answer = await client.search("another question that nobody has asked before")
        assert (status, answer["code"]) == (503, "embedder_unavailable")
        at.embedder.script()
        assert (await client.until_health(200))["status"] == "ready"
        assert best(await client.search("another heliotrope question")) == "auth.py"


async def both_are_down_at_the_start(at: World) -> None:
    """Nothing is forgotten, nothing is embedded again."""
    at.qdrant.script(DOWN)
    at.embedder.script(DOWN)
    async with running(at) as client:
        _, answer = await client.call("GET", "/v1/registrations")
        assert [each["id"] for each in answer["registrations"]] == ["tree"]
        await client.until("/v1/registrations/tree", lambda _, answer: answer["state"] == State.ERROR)
        status, answer = await client.search("heliotrope bearer credentials")
        assert (status, answer["code"]) == (503, "store_unavailable")
        at.qdrant.script()
        await client.until_indexed()
        assert best(await client.search("heliotrope bearer credentials")) == "auth.py"
        at.embedder.script()
        await client.until_health(200)


async def release_while_the_store_is_down(at: World) -> None:
    """It is refused, stays begun, and is finished when the store is back."""
    async with running(at) as client:
        await client.until_indexed()
        at.qdrant.script(DOWN)
        status, answer = await client.call("DELETE", "/v1/registrations/tree?purge=true")
        assert (status, answer["code"]) == (503, "store_unavailable")
        _, answer = await client.call("GET", "/v1/registrations/tree")
        assert answer["lifecycle"] == "releasing"
        status, answer = await client.search("heliotrope bearer credentials")
        assert (status, answer["code"]) == (409, "releasing")
        at.qdrant.script()
        await client.until("/v1/registrations/tree", lambda status, _: status == 404)


@pytest.mark.usefixtures("quick")
async def test_a_collection_of_the_reference_engine_is_adopted_through_the_api(
    tmp_path: Path, fast_directory: Path
) -> None:
    with trio.fail_after(PATIENCE):
        async with world(tmp_path, fast_directory) as at:
            await make_as_the_reference_engine_does(at)
            sent = len(at.endpoint.texts)
            async with running(at) as client:
                await client.call("PUT", "/v1/registrations/tree", {"path": str(at.tree)})
                answer = await client.until("/v1/registrations/tree", lambda _, answer: answer["state"] == State.ERROR)
                assert "was not made by this cell" in answer["message"]

                await client.call("PUT", "/v1/registrations/tree", {"path": str(at.tree), "adopt": True})
                answer = await client.until_indexed()
                assert answer["totalChunks"] == 1
                assert answer["embeddedChunks"] == 0
                assert best(await client.search("heliotrope bearer credentials")) == "auth.py"
            documents = [text for text in at.endpoint.texts[sent:] if "Heliotrope" in text]
            assert documents == []


async def make_as_the_reference_engine_does(at: World) -> None:
    """Leave a collection and a cache file behind as the reference engine would have."""
    config = at.config()
    kilo = config.model_copy(update={"indexing": config.indexing.model_copy(update={"profile": ChunkingProfile.KILO})})
    async with served_cell(kilo) as cell:
        client = Client(cell, at.said)
        await client.call("PUT", "/v1/registrations/tree", {"path": str(at.tree)})
        registration = await client.until_indexed()
        _, files = await client.call("GET", "/v1/registrations/tree/files")
        await client.call("DELETE", "/v1/registrations/tree?purge=false")
    headers = {"api-key": QDRANT_KEY}
    async with httpx2.AsyncClient(base_url=at.qdrant_url, headers=headers, verify=False) as http:
        points = f"/collections/{registration['collection']}/points"
        [metadata] = (await http.post(points, json={"ids": [METADATA_POINT_ID]})).json()["result"]
        for ours in ("cell_id", "chunking_profile"):
            del metadata["payload"][ours]
        await http.put(points, json={"points": [metadata | {"vector": [0] * 32}]})
    hashes = {str(at.tree / file["path"]): file["fileHash"] for file in files["files"]}
    cache = trio.Path(at.home / "cache")
    await (cache / reference_cache_file(str(at.tree))).write_text(json.dumps(hashes))
    for file in [*await cache.glob("embeddings*"), *await trio.Path(at.home / "state").glob("cell.sqlite*")]:
        await file.unlink()
