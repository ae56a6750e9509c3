"""A cell with its doors open, from its start to its end, in this process."""

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from semindex.cell.cell import Cell
from semindex.http import hypercorn_fixes, listener, requests
from semindex.model.answers import DependencyStatus
from semindex.service import restore
from semindex.testing.cells import config_below
from tests.http.conftest import CONTROL_TOKEN, MCP_TOKEN
from tests.http.doors import opened


async def test_a_cell_answers_while_it_starts_but_knows_of_no_registration_yet(tmp_path: Path) -> None:
    async with opened(config_below(tmp_path, tmp_path)) as open_:

        async def shown(route: str) -> tuple[int, str]:
            response = await open_.http.get(route)
            return response.status_code, response.json().get("code") or response.json()["status"]

        assert [await shown(route) for route in ("/healthz", "/readyz")] == [(200, "starting"), (503, "starting")]
        assert await shown("/v1/registrations/unknown") == (503, "starting")
        early = await open_.http.put("/v1/registrations/early", json={"path": str(tmp_path)})
        assert (early.status_code, early.json()["code"]) == (503, "starting")
        # Before it is known who owns what, everything would look like an orphan.
        assert await shown("/v1/registrations") == (503, "starting")
        assert await shown("/v1/orphans") == (503, "starting")

        await restore(open_.cell)

        assert [await shown(route) for route in ("/healthz", "/readyz")] == [(200, "ready"), (200, "ready")]
        assert await shown("/v1/registrations/unknown") == (404, "unknown_registration")

        open_.cell.store_health = lambda: DependencyStatus(reachable=False, last_error="It has gone.")
        assert [await shown(route) for route in ("/healthz", "/readyz")] == [(503, "degraded"), (503, "degraded")]
        status = (await open_.http.get("/v1/status")).json()
        assert status["dependencies"]["store"] == {"reachable": False, "lastError": "It has gone."}


async def test_who_waits_for_a_change_is_answered_when_the_end_begins(tmp_path: Path) -> None:
    answers: list[dict[str, Any]] = []
    async with trio.open_nursery() as clients:
        config = config_below(tmp_path, tmp_path)
        async with opened(config) as open_:
            await restore(open_.cell)

            async def wait() -> None:
                answers.append((await open_.http.get("/v1/status", params={"wait": "25"})).json())

            for _ in range(5):
                clients.start_soon(wait)
            await until_held(open_.cell, 5)
            open_.cell.begin_stopping()
            while len(answers) < 5:
                await trio.testing.wait_all_tasks_blocked()

    assert [answer["phase"] for answer in answers] == ["stopping"] * 5


async def until_held(cell: Cell, count: int) -> None:
    """Wait until so many clients are kept waiting."""
    while len(cell.changes._bumps) < count:  # nothing else tells
        await trio.testing.wait_all_tasks_blocked()


async def test_agents_are_told_that_the_cell_is_ending(tmp_path: Path) -> None:
    async with opened(config_below(tmp_path, tmp_path)) as open_:
        await restore(open_.cell)
        open_.cell.begin_stopping()
        response = await open_.http.post("/mcp", headers={"Authorization": MCP_TOKEN}, json={})

    assert (response.status_code, response.json()["code"]) == (503, "stopping")


async def test_the_search_of_a_client_that_has_gone_is_given_up(tmp_path: Path) -> None:
    begun, given_up = trio.Event(), trio.Event()

    class Searches:
        async def search(self, *_arguments: object, **_options: object) -> None:
            begun.set()
            try:
                await trio.sleep_forever()
            finally:
                given_up.set()

    async with opened(config_below(tmp_path, tmp_path)) as open_:
        open_.cell.searches = Searches()  # type: ignore[assignment]  # the one call that is made
        stream = await trio.open_tcp_stream("127.0.0.1", open_.port)
        body = b'{"registrationId": "x", "query": "y"}'
        head = f"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nAuthorization: {CONTROL_TOKEN}\r\nContent-Length: {len(body)}"
        await stream.send_all(f"{head}\r\n\r\n".encode() + body)
        await begun.wait()
        await stream.aclose()

        await given_up.wait()


@pytest.mark.parametrize(("sent", "expected"), [
    (b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nAuthorization: %s\r\nContent-Length: 9\r\n\r\n{", b"HTTP/1.1 408 "),
    (b"GET /v1/status HTTP/1.1\r\nHost: loc", b""),
    (b"", b""),
], ids=["body", "head", "nothing"])  # fmt: skip
async def test_half_a_request_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes, expected: bytes
) -> None:
    monkeypatch.setattr(requests, "BODY_TIMEOUT", 0.05)
    monkeypatch.setattr(hypercorn_fixes, "LINGER_TIMEOUT", 0.05)
    monkeypatch.setattr(listener, "IDLE_TIMEOUT", 0.05)
    async with opened(config_below(tmp_path, tmp_path)) as open_:
        async with await trio.open_tcp_stream("127.0.0.1", open_.port) as stream:
            await stream.send_all(sent.replace(b"%s", CONTROL_TOKEN.encode()))

            received = b"".join([data async for data in stream])

    assert received.startswith(expected)
    assert bool(received) == bool(expected)


async def test_what_nobody_expected_is_logged_and_not_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: object) -> bytes:
        raise ZeroDivisionError("a detail that is nobody's business")

    async with opened(config_below(tmp_path, tmp_path)) as open_:
        open_.cell.metrics = fail
        response = await open_.http.get("/metrics")

    assert (response.status_code, response.json()["code"]) == (500, "internal")
    assert "business" not in response.text
    [record] = [record for record in caplog.records if record.exc_info]
    assert record.getMessage().split()[1] in response.json()["error"]
