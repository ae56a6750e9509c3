"""The plugin RPC: what its methods answer against what the control API does, and clients of the worst kinds."""

import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import httpx2
import pytest
import trio
import trio.testing
from attrs import define
from wsproto.frame_protocol import Opcode

from semindex.cell.cell import Cell
from semindex.http import hypercorn_fixes, rpc, serving
from semindex.http.listener import MAX_MESSAGE
from semindex.http.rpc import RpcDoor
from semindex.model.errors import UnknownOperation, UnknownRegistration
from semindex.service import restore
from semindex.testing.cells import config_below
from semindex.testing.serving import TIMEOUT, ServedCell
from tests.http.conftest import CONTROL_TOKEN, MCP_TOKEN
from tests.http.doors import opened
from tests.http.test_attacks import memory
from tests.http.websocket import WebSocket, answered, connected_to, handshake

MakeTree = Callable[..., Path]
Dial = Callable[[int], Awaitable[WebSocket]]


@asynccontextmanager
async def client_of(service: ServedCell) -> AsyncIterator[WebSocket]:
    """A client of the cell that the tests share."""
    with trio.fail_after(TIMEOUT):
        client = await connected_to(int(service.url.rpartition(":")[2]))
        async with client.stream:
            yield client


@pytest.fixture
async def http(service: ServedCell) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the control API, to compare with."""
    headers = {"Authorization": f"Bearer {CONTROL_TOKEN}"}
    async with httpx2.AsyncClient(base_url=service.url, headers=headers, timeout=TIMEOUT, verify=False) as client:
        yield client


async def settled(http: httpx2.AsyncClient, route: str, unsettled: str) -> dict[str, Any]:
    """Wait until a registration or an operation has left a state, and return its status."""
    status = (await http.get(route)).json()
    while status["state"] == unsettled:
        status = (await http.get(route, params={"wait": "25", "since": status["revision"]})).json()
    return dict(status)


@pytest.fixture
async def dial() -> AsyncIterator[Dial]:
    """Opens connections, which are closed in the end."""
    async with AsyncExitStack() as stack:

        async def connect(port: int) -> WebSocket:
            client = await connected_to(port)
            await stack.enter_async_context(client.stream)
            return client

        yield connect


@define
class Reachable:
    """A cell in this process, for tests that reach into it."""

    cell: Cell
    port: int
    door: RpcDoor

    @property
    def connections(self) -> int:
        return self.door._connections  # nothing else tells

    def hang(self) -> trio.Event:
        """Have reindexing wait for an event, and fail then."""
        go_on = trio.Event()

        async def reindex(*_arguments: object, **_options: object) -> None:
            await go_on.wait()
            raise UnknownOperation("There is none.")

        stub(self.cell, "operations", reindex=reindex)
        return go_on


def stub(cell: Cell, part: str, **calls: Any) -> None:
    """Have a part of a cell answer these calls, so that one hangs or fails at the moment that a test needs."""
    setattr(cell, part, SimpleNamespace(**calls))


@asynccontextmanager
async def reachable(tmp_path: Path, *, grace: float = 3600.0) -> AsyncIterator[Reachable]:
    """A cell whose registrations are read. An end that takes the grace is one that takes too long."""
    doors: list[RpcDoor] = []

    def make(cell: Cell) -> RpcDoor:
        doors.append(RpcDoor(cell))
        return doors[0]

    config = config_below(tmp_path, tmp_path)
    shutdown = config.shutdown.model_copy(update={"request_grace_ms": round(1000 * grace)})
    with patch.object(serving, "RpcDoor", make):
        async with opened(config.model_copy(update={"shutdown": shutdown})) as open_:
            await restore(open_.cell)
            yield Reachable(open_.cell, open_.port, doors[0])


def state_of(registration_id: str, status: dict[str, Any]) -> str | None:
    """The state of a registration, as the status of the cell tells it."""
    return next((each["state"] for each in status["registrations"] if each["id"] == registration_id), None)


def open_files(service: ServedCell) -> int:
    """How many files the process of a cell has open, its connections among them."""
    return len(os.listdir(f"/proc/{service.pid}/fd"))


async def refused(port: int) -> tuple[int, str]:
    """Ask for a WebSocket, and return the status and the word of the refusal."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        await stream.send_all(handshake())
        head, body = await answered(stream)
        async for data in stream:
            body += data
    return int(head.split()[1]), json.loads(body)["code"]


# Methods


async def test_the_status_is_that_of_the_control_api(
    service: ServedCell, http: httpx2.AsyncClient, shared: str
) -> None:
    async with client_of(service) as client:
        while True:
            before = (await http.get("/v1/status")).json()
            status = await client.call("semantic-index.status")
            if before == (await http.get("/v1/status")).json():
                break

    assert status == before
    assert shared in [registration["id"] for registration in status["registrations"]]


async def test_a_path_is_told_its_registration_or_that_it_has_none(
    service: ServedCell, http: httpx2.AsyncClient, shared: str, make_tree: MakeTree
) -> None:
    tree = make_tree()
    link = tree / "link"
    link.symlink_to(service.home / "trees" / "shared")
    async with client_of(service) as client:
        paths = [str(link.resolve()), str(link), str(tree), str(tree / "missing"), "relative", "a\0b", ""]
        found = [await client.ask("semantic-index.workspace-status", {"path": path}) for path in paths]

    expected = (await http.get(f"/v1/registrations/{shared}")).json()
    del expected["revision"]
    assert [answer.get("result", "none") for answer in found] == [expected, expected, None, None, None, None, "none"]
    assert found[-1]["error"]["code"] == -32602


async def test_of_several_registrations_of_a_path_the_oldest_is_told_and_one_whose_directory_is_gone_as_well(
    service: ServedCell, http: httpx2.AsyncClient, make_tree: MakeTree
) -> None:
    tree = make_tree()
    async with client_of(service) as client:
        for id_ in ("z-first", "a-second"):
            await client.call("semantic-index.register", id=id_, path=str(tree))
        assert (await client.call("semantic-index.workspace-status", path=str(tree)))["id"] == "z-first"

        tree.rename(tree.with_name("elsewhere"))
        assert (await client.call("semantic-index.workspace-status", path=str(tree)))["id"] == "z-first"

        for id_ in ("z-first", "a-second"):
            await client.call("semantic-index.release", id=id_, purge=True)
        assert await client.call("semantic-index.workspace-status", path=str(tree)) is None


async def test_a_workspace_is_registered_indexed_anew_and_released_as_over_http(
    service: ServedCell, http: httpx2.AsyncClient, make_tree: MakeTree
) -> None:
    tree = make_tree()
    optional = {"projectId": "prj_1", "workspaceId": "wks_1", "purgeOnRelease": False, "force": False, "adopt": False}
    async with client_of(service) as client:
        registered = await client.call("semantic-index.register", id="prj_1:primary", path=str(tree), **optional)
        await settled(http, "/v1/registrations/prj_1:primary", "Indexing")
        again = (await http.put("/v1/registrations/prj_1:primary", json={"path": str(tree)})).json()
        operation = await client.call("semantic-index.reindex", id="prj_1:primary")
        ended = await settled(http, f"/v1/operations/{operation['id']}", "running")
        receipt = await client.call("semantic-index.release", id="prj_1:primary", purge=True)

    same = ("id", "kind", "path", "createdAt", "projectId", "workspaceId", "purgeOnRelease", "collection", "references")
    assert {name: registered[name] for name in same} == {name: again[name] for name in same}
    assert registered.keys() <= again.keys() | {"operation", "lastCompletedAt", "lastUpdateAt"}
    assert (operation["kind"], operation["state"], ended["state"]) == ("reindex", "running", "completed")
    assert receipt.items() >= {"released": "prj_1:primary", "purged": True, "points": 1}.items()
    assert receipt.keys() == {
        "released",
        "purged",
        "points",
        "bytes",
        "drained",
        "cancelled",
        "durationMs",
        "worktrees",
    }
    assert (await http.get("/v1/registrations/prj_1:primary")).status_code == 404


@pytest.mark.parametrize(("method", "params", "expected"), [
    ("release", {"id": "nobody"}, (-32000, "unknown_registration")),
    ("reindex", {"id": "nobody"}, (-32000, "unknown_registration")),
    ("register", {"id": "x", "path": "/"}, (-32602, "path_refused")),
    ("register", {"id": "x", "path": "/usr"}, (-32000, "outside_roots")),
    ("register", {"id": "x", "path": "/missing"}, (-32602, "path_refused")),
    ("register", {"id": "a b", "path": "{home}"}, (-32602, "invalid")),
    ("register", {"id": "x"}, (-32602, "invalid")),
    ("register", {"id": "x", "path": "/x", "baselinePath": None}, (-32602, "invalid")),
    ("register", {"id": "x", "path": "/x", "kind": "primary"}, (-32602, "invalid")),
    ("release", {}, (-32602, "invalid")),
    ("release", {"id": 1}, (-32602, "invalid")),
    ("release", {"id": "x", "purge": "true"}, (-32602, "invalid")),
    ("release", ["x"], (-32602, "invalid")),
    ("release", None, (-32602, "invalid")),
    ("status", {"wait": 1}, (-32602, "invalid")),
    ("watch", {"since": 5}, (-32602, "invalid")),
    ("changed", {}, (-32601, "not_found")),
    ("search", {}, (-32601, "not_found")),
], ids=str)  # fmt: skip
async def test_a_refusal_has_the_number_and_the_word(
    service: ServedCell, method: str, params: Any, expected: tuple[int, str]
) -> None:
    if isinstance(params, dict) and params.get("path") == "{home}":
        params = {**params, "path": str(service.home / "trees")}
    async with client_of(service) as client:
        answer = await client.ask(f"semantic-index.{method}", params)
        await client.call("semantic-index.status")

    error = answer["error"]
    assert (error["code"], error["data"]["code"]) == expected
    assert error["message"][-1] in ".?)"


async def test_a_parameter_that_breaks_a_rule_is_named_as_over_http(
    service: ServedCell, http: httpx2.AsyncClient, shared: str
) -> None:
    over_http = (await http.put(f"/v1/registrations/{shared}", json={"path": 5})).json()
    async with client_of(service) as client:
        error = (await client.ask("semantic-index.register", {"id": shared, "path": 5}))["error"]

    assert (error["message"], error["data"]["detail"]) == (over_http["error"], over_http["detail"])


async def test_who_wants_no_answer_gets_none(
    service: ServedCell, http: httpx2.AsyncClient, make_tree: MakeTree
) -> None:
    params: dict[str, Any] = {"id": "silent", "path": str(make_tree())}
    async with client_of(service) as client:
        await client.call("semantic-index.register", **params)
        for method, sent in [("release", {"id": "silent"}), ("release", []), ("nothing", {}), ("release", {"id": ""})]:
            await client.send({"jsonrpc": "2.0", "method": f"semantic-index.{method}", "params": sent})
        while (await http.get("/v1/registrations/silent")).status_code != 404:
            await http.get("/v1/status", params={"wait": "1"})
        await client.call("semantic-index.status")  # whose answer is the first that comes

    assert client.pushed == []


@pytest.mark.parametrize(("text", "number"), [
    ("{", -32700), ("\0", -32700), ("[" * MAX_MESSAGE, -32700), ("[]", -32600), ("5", -32600), ("{}", -32600),
], ids=lambda value: str(value)[:10])  # fmt: skip
async def test_what_is_no_request_is_refused_and_the_connection_goes_on(
    service: ServedCell, text: str, number: int
) -> None:
    async with client_of(service) as client:
        await client.send(text)
        answer = await client.message()
        await client.call("semantic-index.status")

    assert (answer["id"], answer["error"]["code"]) == (None, number)


async def test_requests_are_answered_as_they_are_ready(tmp_path: Path, dial: Dial) -> None:
    async with reachable(tmp_path) as open_:
        go_on = open_.hang()
        client = await dial(open_.port)
        await client.send({"jsonrpc": "2.0", "id": "slow", "method": "semantic-index.reindex", "params": {"id": "x"}})
        await client.call("semantic-index.status")
        go_on.set()

        assert (await client.message())["id"] == "slow"


# Watching


async def test_what_is_pushed_is_the_status_of_the_control_api(
    service: ServedCell, http: httpx2.AsyncClient, make_tree: MakeTree
) -> None:
    tree = make_tree()
    async with client_of(service) as client:
        await client.call("semantic-index.watch")
        await client.push()
        await client.call("semantic-index.register", id="watched", path=str(tree))
        while state_of("watched", (await client.push())["status"]) != "Indexed":
            pass
        # What changes without a change of the index, like the health of what it needs, may come in between.
        status, pushed = None, await client.push_anew()
        while status != pushed["status"]:
            status, pushed = (await http.get("/v1/status")).json(), await client.push_anew()
        await client.call("semantic-index.release", id="watched", purge=True)

    assert pushed.keys() == {"revision", "status"}
    assert pushed["revision"] == pushed["status"]["revision"]


async def test_who_knows_the_present_is_told_of_the_next_change_and_who_does_not_at_once(
    tmp_path: Path, dial: Dial
) -> None:
    async with reachable(tmp_path) as open_:
        client = await dial(open_.port)
        now = (await client.call("semantic-index.status"))["revision"]
        assert await client.call("semantic-index.watch", since=now) == {"revision": now}
        open_.cell.changes.bump()
        after = await client.push()
        assert after["revision"] == open_.cell.revision != now

        for since in (now, "0123-4", "", after["revision"] + "0"):
            await client.call("semantic-index.watch", since=since)
            assert (await client.push())["revision"] == after["revision"]


async def test_watching_again_replaces_the_watch(tmp_path: Path, dial: Dial) -> None:
    async with reachable(tmp_path) as open_:
        client = await dial(open_.port)
        for _ in range(5):
            await client.call("semantic-index.watch", since=open_.cell.revision)
        open_.cell.changes.bump()
        await client.push()
        with trio.move_on_after(0.05):
            raise AssertionError(await client.event())


async def test_two_hundred_clients_watch_and_all_are_told(
    service: ServedCell, http: httpx2.AsyncClient, make_tree: MakeTree
) -> None:
    before = memory(service.pid)
    port, clients = int(service.url.rpartition(":")[2]), list[WebSocket]()
    with trio.fail_after(TIMEOUT):

        async def watch() -> None:
            client = await connected_to(port)
            await client.call("semantic-index.watch")
            await client.push()
            clients.append(client)

        async with trio.open_nursery() as nursery:
            for _ in range(200):
                nursery.start_soon(watch)
        await http.put("/v1/registrations/of-all", json={"path": str(make_tree())})

        async def told(client: WebSocket) -> None:
            while "of-all" not in [each["id"] for each in (await client.push())["status"]["registrations"]]:
                pass
            await client.stream.aclose()

        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(told, client)
    await http.delete("/v1/registrations/of-all", params={"purge": "true"})

    assert memory(service.pid) - before < 100 << 20


# Clients of the worst kinds


async def test_a_client_that_never_reads_is_disconnected_with_1013_while_others_are_served(
    tmp_path: Path, dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "PATIENCE", 0.2)
    monkeypatch.setattr(rpc, "PUSH_INTERVAL", 0.0)
    async with reachable(tmp_path) as open_:
        other, stalled = await dial(open_.port), await dial(open_.port)
        await stalled.send({"jsonrpc": "2.0", "id": 1, "method": "semantic-index.watch"})
        await other.call("semantic-index.watch")
        await other.push()
        while open_.connections > 1:
            open_.cell.changes.bump()
            assert (await other.push())["revision"] == open_.cell.revision
        stalled.answers_pings = False  # it is too late for that

        assert await stalled.closed() == 1013
        await other.call("semantic-index.status")


async def test_a_client_that_asks_and_never_reads_is_given_up_while_others_are_served(
    tmp_path: Path, dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "PATIENCE", 0.2)
    monkeypatch.setattr(hypercorn_fixes, "SEND_TIMEOUT", 0.2)
    async with reachable(tmp_path) as open_:
        other, flood = await dial(open_.port), await dial(open_.port)

        async def ask_without_end() -> None:
            with suppress(trio.BrokenResourceError):
                while True:
                    await flood.send({"jsonrpc": "2.0", "id": "x" * 30_000, "method": "semantic-index.status"})

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_without_end)
            while open_.connections > 1:
                await other.call("semantic-index.status")


async def test_a_burst_of_requests_is_answered_or_refused_one_by_one(service: ServedCell) -> None:
    requests = [{"jsonrpc": "2.0", "id": id_, "method": "semantic-index.status"} for id_ in range(500)]
    async with client_of(service) as client, trio.open_nursery() as nursery:

        async def send_all() -> None:
            for request in requests:
                await client.send(request)

        nursery.start_soon(send_all)
        answers = [await client.message() for _ in requests]

    assert sorted(answer["id"] for answer in answers) == list(range(500))
    words = {answer["error"]["data"]["code"] for answer in answers if "error" in answer}
    assert words <= {"too_many_requests"}


async def test_only_so_many_requests_of_a_connection_are_under_way(tmp_path: Path, dial: Dial) -> None:
    async with reachable(tmp_path) as open_:
        go_on = open_.hang()
        client, other = await dial(open_.port), await dial(open_.port)
        reindex = {"jsonrpc": "2.0", "method": "semantic-index.reindex", "params": {"id": "x"}}
        for id_ in range(rpc.MAX_IN_FLIGHT):
            await client.send({**reindex, "id": id_})
        assert await client.refusal("semantic-index.status") == (-32000, "too_many_requests")
        await other.call("semantic-index.status")

        go_on.set()
        answers = [await client.message() for _ in range(rpc.MAX_IN_FLIGHT)]
        assert {answer["error"]["data"]["code"] for answer in answers} == {"unknown_operation"}
        await client.call("semantic-index.status")


async def test_only_so_many_connections_are_taken(tmp_path: Path, dial: Dial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "MAX_CONNECTIONS", 2)
    async with reachable(tmp_path) as open_:
        first, second = await dial(open_.port), await dial(open_.port)
        assert await refused(open_.port) == (429, "too_many_connections")
        await second.call("semantic-index.status")

        await first.stream.aclose()
        while open_.connections > 1:
            await trio.testing.wait_all_tasks_blocked()
        await (await dial(open_.port)).call("semantic-index.status")


@pytest.mark.parametrize(("opcode", "size", "code"), [
    (Opcode.TEXT, MAX_MESSAGE + 1, 1009), (Opcode.TEXT, 1 << 20, 1009), (Opcode.BINARY, 1, 1003), (Opcode.BINARY, 1 << 20, 1003),
    (Opcode.CONTINUATION, 1, 1002),
])  # fmt: skip
async def test_a_message_of_the_wrong_kind_or_size_ends_the_connection_with_the_code_that_says_so(
    service: ServedCell, opcode: Opcode, size: int, code: int
) -> None:
    async with client_of(service) as client, trio.open_nursery() as nursery:
        # What is too much is read to its end all the same: a connection that is reset may not tell its code.
        nursery.start_soon(client.send_frame, opcode, b"x" * size)
        assert await client.closed() == code


async def test_a_message_as_long_as_may_be_is_taken(service: ServedCell) -> None:
    async with client_of(service) as client:
        frame = '{"jsonrpc": "2.0", "id": "%s", "method": "semantic-index.status"}'
        id_ = "x" * (MAX_MESSAGE - len(frame) + 2)
        await client.send(frame % id_)

        assert (await client.message())["id"] == id_


async def test_clients_that_come_and_go_leave_nothing_behind(service: ServedCell, http: httpx2.AsyncClient) -> None:
    before = open_files(service)
    for _ in range(300):
        async with client_of(service) as client:
            await client.send({"jsonrpc": "2.0", "id": 1, "method": "semantic-index.watch"})
    with trio.fail_after(TIMEOUT):
        while open_files(service) > before + 5:
            await http.get("/v1/status")

    assert (await http.get("/healthz")).json()["status"] == "ready"


# Coming, going, ending


async def test_a_release_goes_on_when_its_client_goes_away(tmp_path: Path, dial: Dial) -> None:
    begun, go_on, done = trio.Event(), trio.Event(), trio.Event()

    async def release(*_arguments: object, **_options: object) -> None:
        begun.set()
        await go_on.wait()
        done.set()
        raise UnknownRegistration("There is none.")

    async with reachable(tmp_path) as open_:
        stub(open_.cell, "leases", release=release)
        client = await dial(open_.port)
        await client.send({"jsonrpc": "2.0", "id": 1, "method": "semantic-index.release", "params": {"id": "x"}})
        await begun.wait()
        await client.stream.aclose()
        await trio.testing.wait_all_tasks_blocked(0.05)
        go_on.set()
        await done.wait()
        while open_.connections:
            await trio.testing.wait_all_tasks_blocked()


async def test_a_look_ends_when_its_client_goes_away(tmp_path: Path, dial: Dial) -> None:
    begun, given_up = trio.Event(), trio.Event()

    async def status() -> None:
        begun.set()
        try:
            await trio.sleep_forever()
        finally:
            given_up.set()

    async with reachable(tmp_path) as open_:
        stub(open_.cell, "cache", counters=status)
        client = await dial(open_.port)
        await client.send({"jsonrpc": "2.0", "id": 1, "method": "semantic-index.status"})
        await begun.wait()
        await client.stream.aclose()

        await given_up.wait()


async def test_everybody_is_told_of_the_end_and_nobody_holds_it_up(tmp_path: Path, dial: Dial) -> None:
    async with reachable(tmp_path) as open_:
        clients = [await dial(open_.port) for _ in range(4)]
        await clients[0].call("semantic-index.watch")
        await clients[1].send({"jsonrpc": "2.0", "id": 1, "method": "semantic-index.watch"})  # it does not read
        await clients[2].send_frame(Opcode.TEXT, b"half a mess", is_last=False)
        await trio.testing.wait_all_tasks_blocked(0.05)

    assert [await client.closed() for client in clients] == [1001] * 4


async def test_at_the_end_a_client_is_told_at_once_while_its_call_still_has_the_grace(
    tmp_path: Path, dial: Dial
) -> None:
    told, given_up = trio.Event(), trio.Event()

    async def reindex(*_arguments: object, **_options: object) -> None:
        try:
            await told.wait()
            await trio.sleep_forever()
        finally:
            given_up.set()

    async with trio.open_nursery() as nursery:
        async with reachable(tmp_path, grace=0.2) as open_:
            stub(open_.cell, "operations", reindex=reindex)
            client = await dial(open_.port)
            await client.send({"jsonrpc": "2.0", "id": 1, "method": "semantic-index.reindex", "params": {"id": "x"}})
            await client.call("semantic-index.status")

            async def be_told() -> None:
                assert await client.closed() == 1001
                assert not given_up.is_set()
                told.set()

            nursery.start_soon(be_told)

    assert told.is_set()
    assert given_up.is_set()


async def test_a_cell_that_starts_tells_its_status_and_one_that_ends_takes_nobody(tmp_path: Path, dial: Dial) -> None:
    async with opened(config_below(tmp_path, tmp_path)) as open_:
        client = await dial(open_.port)
        assert (await client.call("semantic-index.status"))["phase"] == "starting"
        for method, params in [
            ("workspace-status", {"path": str(tmp_path)}),
            ("register", {"id": "x", "path": str(tmp_path)}),
            ("release", {"id": "x"}),
            ("reindex", {"id": "x"}),
        ]:
            assert await client.refusal(f"semantic-index.{method}", **params) == (-32000, "starting")

        open_.cell.begin_stopping()
        assert (await client.call("semantic-index.status"))["phase"] == "stopping"
        assert await refused(open_.port) == (503, "stopping")


async def test_who_asks_without_an_upgrade_is_told_how(http: httpx2.AsyncClient) -> None:
    response = await http.get("/v1/rpc")

    assert (response.status_code, response.json()["code"]) == (426, "upgrade_required")
    assert response.headers["upgrade"] == "websocket"


# What is told, and what is not


async def test_what_nobody_expected_is_logged_and_not_told(
    tmp_path: Path, dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError("a detail that is nobody's business")

    async with reachable(tmp_path) as open_:
        healthy = open_.cell.cache
        stub(open_.cell, "cache", counters=fail)
        client, watcher = await dial(open_.port), await dial(open_.port)
        error = (await client.ask("semantic-index.status", {}))["error"]
        await watcher.call("semantic-index.watch")
        assert await watcher.closed() == 1011
        open_.cell.cache = healthy
        await client.call("semantic-index.status")

    assert (error["code"], error["data"]) == (-32603, {"code": "internal"})
    assert "business" not in error["message"]
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.name for record in errors] == ["semindex.http.errors", "semindex.http.rpc"]


async def test_no_log_line_holds_what_a_client_sent(service: ServedCell) -> None:
    secrets = [f"confidential marker {number}" for number in range(8000, 8005)]
    async with client_of(service) as client:
        await client.ask(secrets[0], {})
        await client.ask("semantic-index.release", {secrets[1]: 1})
        await client.ask("semantic-index.workspace-status", {"path": f"/{secrets[2]}"})
        await client.send(f'{{"jsonrpc": "{secrets[3]}"}}')
        await client.message()
        await client.send(secrets[4])
        await client.message()
        assert (await client.refusal("semantic-index.release", id="nobody-but-logged"))[0] == -32000

    log = service.log.read_text()
    assert "nobody-but-logged" in log  # refusals are logged
    for secret in [*secrets, CONTROL_TOKEN, MCP_TOKEN]:
        assert secret not in log
