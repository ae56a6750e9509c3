"""How often the RPC pushes and how long it waits, under a clock that jumps: clients are the ends of two channels."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count, pairwise
from typing import Any, cast

import pytest
import trio
import trio.testing
from attrs import define, field
from starlette.types import Message

from semindex.cell.cell import Cell
from semindex.engine.revision import Revision
from semindex.http import rpc
from semindex.http.rpc import RpcDoor
from semindex.model.answers import CellPhase, CellStatus, DependencyStatus
from semindex.model.errors import NotReady, SemindexError

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
UP = DependencyStatus(reachable=True)


@define
class Changing:
    """What the RPC needs of a cell in which changes are all that happens."""

    changes: Revision = field(factory=Revision)
    built: int = 0
    failure: SemindexError | None = None

    @property
    def revision(self) -> str:
        return f"boot-{self.changes.value}"

    async def status(self) -> CellStatus:
        await trio.sleep(0.001)
        if self.failure is not None:
            raise self.failure
        self.built += 1
        return CellStatus(
            CellPhase.READY, "", NOW, NOW, self.revision, (), 0, 0, 0, 0, 0, 0, 0, UP, UP, missing_grammars=(), orphans=0
        )  # fmt: skip

    async def change(self, times: int, pause: float) -> None:
        for _ in range(times):
            self.changes.bump()
            await trio.sleep(pause)


@define
class Client:
    """One connection, seen by its client: what it was sent, and when."""

    _to_door: trio.MemorySendChannel[Message]
    _nursery: trio.Nursery
    delay: float = 0.0
    """Seconds after which a ping is answered."""
    stalls: bool = False
    """It takes nothing from the connection any more."""
    pushed: list[tuple[float, str]] = field(factory=list)
    answers: list[Any] = field(factory=list)
    pings: list[float] = field(factory=list)
    payloads: list[bytes] = field(factory=list)
    code: int | None = None
    ended: trio.Event = field(factory=trio.Event)

    async def ask(self, method: str, **params: Any) -> None:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        await self._to_door.send({"type": "websocket.receive", "text": json.dumps(request)})

    async def pong(self, payload: bytes) -> None:
        await self._to_door.send({"type": "websocket.pong", "payload": payload})

    async def _answer_ping(self, payload: bytes) -> None:
        await trio.sleep(self.delay)
        await self.pong(payload)

    async def take(self, message: Message) -> None:
        """Stand for the sending end of the connection."""
        await trio.lowlevel.checkpoint()
        if message["type"] == "websocket.close":
            self.code = message["code"]
        elif self.stalls and message["type"] != "websocket.accept":
            await trio.sleep_forever()
        elif message["type"] == "websocket.ping":
            self.pings.append(trio.current_time())
            self.payloads.append(message["payload"])
            self._nursery.start_soon(self._answer_ping, message["payload"])
        elif message["type"] == "websocket.send":
            content = json.loads(message["text"])
            if content.get("method") == rpc.CHANGED:
                self.pushed.append((trio.current_time(), content["params"]["revision"]))
            else:
                self.answers.append(content)


@define
class World:
    """A door, and clients that come to it."""

    cell: Changing
    door: RpcDoor
    nursery: trio.Nursery

    async def client(self, **options: Any) -> Client:
        sending, receiving = trio.open_memory_channel[Message](10)
        client = Client(sending, self.nursery, **options)

        async def serve() -> None:
            await self.door({"type": "websocket"}, receiving.receive, client.take)
            client.ended.set()

        self.nursery.start_soon(serve)
        await sending.send({"type": "websocket.connect"})
        return client


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with changing() as made:
        yield made


@asynccontextmanager
async def changing() -> AsyncIterator[World]:
    cell = Changing()
    async with trio.open_nursery() as nursery:
        yield World(cell, RpcDoor(cast(Cell, cell)), nursery)
        nursery.cancel_scope.cancel()


async def test_at_most_ten_values_come_in_a_second_and_the_last_one_comes(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    client = await world.client()
    await client.ask("semantic-index.watch")
    await world.cell.change(3000, 0.001)
    await trio.sleep(0.2)

    times = [time for time, _ in client.pushed]
    assert 28 <= len(times) <= 32
    assert all(later - earlier >= 0.1 - 1e-9 for earlier, later in pairwise(times))
    assert client.pushed[-1][1] == world.cell.revision == "boot-3000"


async def test_a_change_after_a_pause_is_pushed_at_once(world: World, autojump_clock: trio.testing.MockClock) -> None:
    client = await world.client()
    await client.ask("semantic-index.watch")
    await trio.sleep(5)
    changed_at = trio.current_time()
    await world.cell.change(1, 5)

    assert [revision for _, revision in client.pushed] == ["boot-0", "boot-1"]
    assert client.pushed[-1][0] - changed_at < 0.01


async def test_asking_to_watch_again_and_again_brings_no_more_values(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    client = await world.client()
    for _ in range(300):
        await client.ask("semantic-index.watch")
        await world.cell.change(1, 0.01)

    assert len(client.answers) == 300
    assert len(client.pushed) <= 31


async def test_a_value_is_built_once_for_all_who_watch(world: World, autojump_clock: trio.testing.MockClock) -> None:
    clients = [await world.client() for _ in range(100)]
    for client in clients:
        await client.ask("semantic-index.watch")
    await world.cell.change(1000, 0.001)
    await trio.sleep(0.2)

    assert {client.pushed[-1][1] for client in clients} == {"boot-1000"}
    assert world.cell.built <= 22


async def test_nothing_is_built_while_nobody_watches(world: World, autojump_clock: trio.testing.MockClock) -> None:
    await world.client()
    await world.cell.change(100, 0.1)

    assert world.cell.built == 0


async def test_who_reads_slowly_is_sent_fewer_values_and_the_newest(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    slow, quick = await world.client(delay=3.0), await world.client()
    for client in (slow, quick):
        await client.ask("semantic-index.watch")
    await world.cell.change(100, 0.1)
    await trio.sleep(5)

    assert len(slow.pushed) == 5
    assert len(quick.pushed) >= 95
    assert slow.pushed[-1][1] == quick.pushed[-1][1] == "boot-100"
    assert slow.code is None


async def test_who_does_not_read_is_sent_one_value_and_disconnected_with_1013(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    began = trio.current_time()
    silent = await world.client(delay=3600.0)
    await silent.ask("semantic-index.watch")
    await world.cell.change(50, 0.1)
    await silent.ended.wait()

    assert len(silent.pushed) == 1
    assert silent.code == 1013
    assert trio.current_time() - began < rpc.PATIENCE + rpc.LINGER_TIMEOUT + 1


async def test_pongs_that_answer_no_ping_are_no_sign_that_anything_was_read(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    silent = await world.client(delay=3600.0)
    await silent.ask("semantic-index.watch")
    with trio.move_on_after(3600):
        for number in count():
            await silent.pong([b"", b"unasked", str(number).encode() * 2][number % 3])
            await world.cell.change(1, 0.5)
            if silent.ended.is_set():
                break

    assert len(silent.pushed) == 1
    assert silent.code == 1013


async def test_a_pong_answers_its_ping_and_those_before_it(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    client = await world.client(delay=3600.0)
    await trio.sleep(rpc.PING_INTERVAL - 1)
    await client.ask("semantic-index.watch")
    await trio.sleep(2)
    assert len(client.payloads) == len(set(client.payloads)) == 2  # one for what was pushed, one for a sign of life
    await client.pong(client.payloads[-1])
    await trio.sleep(rpc.PING_INTERVAL - 2)

    assert client.code is None


async def test_a_status_that_fails_is_logged_once_and_tried_again_and_nobody_is_disconnected(
    world: World, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    early = await world.client()
    await early.ask("semantic-index.watch")
    await trio.sleep(1)
    for _ in range(2):
        caplog.clear()
        world.cell.failure = NotReady("The status cannot be told now.")
        late = await world.client()
        await late.ask("semantic-index.watch")
        await world.cell.change(100, 0.1)
        assert late.pushed == []
        assert len(caplog.records) == 1
        world.cell.failure = None
        await trio.sleep(2)

        assert late.pushed[-1][1] == early.pushed[-1][1] == world.cell.revision
        assert late.code is early.code is None
        assert len(caplog.records) == 1


async def test_who_takes_nothing_and_asks_on_is_disconnected_with_1013(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    client = await world.client(stalls=True)
    with trio.move_on_after(3600):
        while not client.ended.is_set():
            await client.ask("semantic-index.status")
            await trio.sleep(0.01)

    assert client.ended.is_set()
    assert client.code == 1013


async def test_who_says_nothing_is_asked_for_a_sign_of_life(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    began = trio.current_time()
    alive, dead = await world.client(), await world.client(delay=3600.0)
    await dead.ended.wait()

    assert trio.current_time() - began == pytest.approx(rpc.PING_INTERVAL + rpc.PATIENCE + rpc.LINGER_TIMEOUT)
    await trio.sleep(3600)
    assert (alive.code, dead.code) == (None, 1013)
    assert all(later - earlier >= rpc.PING_INTERVAL for earlier, later in pairwise(alive.pings))


async def test_the_end_is_told_although_a_client_takes_nothing(
    world: World, autojump_clock: trio.testing.MockClock
) -> None:
    client = await world.client(stalls=True)
    await client.ask("semantic-index.watch")
    await trio.sleep(1)
    world.door.close()
    await client.ended.wait()

    assert client.code == 1001
