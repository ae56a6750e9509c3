"""The doubles of both servers: they answer as the real ones do, and fail as they are told."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import numpy as np
import pytest
import trio
from trio.testing import MockClock

from semindex.embedders.hashing import hashed_tokens
from semindex.testing.doubles import Fault, Faulty, InProcess, served
from semindex.testing.embedder_double import EmbedderDouble


@asynccontextmanager
async def client(application: Faulty) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=InProcess(application), base_url="http://double.test") as http:
        yield http


async def embed(http: httpx2.AsyncClient, texts: Any, **headers: str) -> httpx2.Response:
    return await http.post("/v1/embeddings", json={"input": texts, "model": "m", "more": 1}, headers=headers)


async def test_vectors_are_those_of_the_fixture_as_base64_whatever_was_asked_for() -> None:
    async with client(Faulty(EmbedderDouble(32))) as http:
        answer = (await embed(http, ["export function getUserName", "token"])).json()
        alone = (await embed(http, "token")).json()

    assert answer["object"] == "list"
    assert [entry["index"] for entry in answer["data"]] == [0, 1]
    rows = [np.frombuffer(base64.b64decode(entry["embedding"]), "<f4") for entry in answer["data"]]
    np.testing.assert_array_equal(rows, hashed_tokens(["export function getUserName", "token"], 32))
    assert alone["data"][0]["embedding"] == answer["data"][1]["embedding"]
    assert answer["usage"] == {"prompt_tokens": 7 + 2, "total_tokens": 7 + 2}


async def test_an_endpoint_wants_its_key_and_says_how_it_is_without_one() -> None:
    async with client(Faulty(EmbedderDouble(8, "secret"))) as http:
        assert (await http.get("/healthz")).json() == {"status": "ok", "dimension": 8}
        assert (await embed(http, ["a"])).status_code == 401
        assert (await embed(http, ["a"], authorization="Bearer secret")).status_code == 200
        assert (
            await http.post("/v1/embeddings", json={}, headers={"authorization": "Bearer secret"})
        ).status_code == 400


async def test_a_fault_happens_to_the_requests_that_it_names_after_some_and_so_often() -> None:
    faulty = Faulty(EmbedderDouble(8))
    faulty.script(
        Fault(where="POST", after=1, times=2, status=503, headers={"Retry-After": "2"}),
        Fault(where="/healthz", status=500, body="no", times=None),
    )
    async with client(faulty) as http:
        answers = [await embed(http, ["a"]) for _ in range(5)]
        health = [await http.get("/healthz") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [200, 503, 503, 200, 200]
    assert answers[1].headers["retry-after"] == "2"
    assert [answer.status_code for answer in health] == [500] * 3
    assert health[0].text == "no"
    assert faulty.requests == ["POST /v1/embeddings"] * 5 + ["GET /healthz"] * 3


async def test_a_delay_and_a_hang_are_of_the_virtual_clock(autojump_clock: MockClock) -> None:
    faulty = Faulty(EmbedderDouble(8))
    faulty.script(Fault(delay=7), Fault(hangs=True))
    async with client(faulty) as http:
        await embed(http, ["a"])
        assert trio.current_time() == 7
        with trio.move_on_after(100) as scope:
            await embed(http, ["a"])

    assert scope.cancelled_caught


@pytest.mark.parametrize("over_a_socket", [False, True])
async def test_a_cut_answer_was_made_and_is_known_to_be_incomplete(over_a_socket: bool) -> None:
    double = EmbedderDouble(8)
    faulty = Faulty(double)
    faulty.script(Fault(cut=10))
    with trio.fail_after(20):
        async with served(faulty) as url:
            transport = None if over_a_socket else InProcess(faulty)
            async with httpx2.AsyncClient(transport=transport, base_url=url, trust_env=False, verify=False) as http:
                with pytest.raises(httpx2.RemoteProtocolError):
                    await embed(http, ["a"])
                assert (await embed(http, ["b"])).status_code == 200

    assert double.texts == ["a", "b"]


async def test_faults_are_scripted_and_requests_are_shown_over_http() -> None:
    faulty = Faulty(EmbedderDouble(8))
    async with client(faulty) as http:
        script = [{"status": 429, "headers": {"retry-after": "2"}, "times": None}]
        assert (await http.put("/double/faults", json=script)).status_code == 200
        assert (await embed(http, ["a"])).status_code == 429
        await http.put("/double/faults", json=[])
        assert (await embed(http, ["a"])).status_code == 200
        assert (await http.get("/double/requests")).json() == ["POST /v1/embeddings"] * 2


@pytest.mark.parametrize(
    ("options", "texts", "status"),
    [
        ({"max_texts": 2}, ["a", "b"], 200),
        ({"max_texts": 2}, ["a", "b", "c"], 413),
        ({"max_length": 3}, ["abc"], 200),
        ({"max_length": 3}, ["a", "abcd"], 400),
        ({"poison": "bad"}, ["good"], 200),
        ({"poison": "bad"}, ["good", "a bad one"], 400),
    ],
)
async def test_an_endpoint_has_limits(options: dict[str, Any], texts: list[str], status: int) -> None:
    double = EmbedderDouble(8, **options)
    async with client(Faulty(double)) as http:
        assert (await embed(http, texts)).status_code == status

    assert double.texts == (texts if status == 200 else [])
