"""Each fault of Hypercorn that we mend, on real sockets. Every test here fails without its mending."""

import logging
from contextlib import suppress

import pytest
import trio
import trio.testing
from hypercorn.protocol.events import Event
from starlette.types import Receive, Scope, Send

from semindex.http import hypercorn_fixes, listener
from semindex.http.hypercorn_websocket import BoundedWebSocket
from tests.http.raw import reply, serving
from tests.http.websocket import handshake


async def listens_for_the_disconnect(_scope: Scope, receive: Receive, send: Send) -> None:
    """Answer, and give up as soon as the client is gone, as event streams do."""
    async with trio.open_nursery() as nursery:

        async def leave_with_the_client() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()

        nursery.start_soon(leave_with_the_client)
        await reply(send)
        nursery.cancel_scope.cancel()


async def answers_unread(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer without reading the request."""
    await reply(send)


async def never_stops_sending(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while True:
        await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": True})


async def test_a_connection_is_closed_after_a_while_although_its_application_listens_for_the_disconnect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "IDLE_TIMEOUT", 0.05)
    async with serving(listens_for_the_disconnect) as server:
        client = await server.connect()
        assert (await client.ask()).endswith(b"done")

        assert await client.closed() == b""


async def test_an_idle_connection_does_not_hold_up_the_end() -> None:
    async with serving(listens_for_the_disconnect, grace=3600) as server:
        client = await server.connect()
        await client.ask()
        server.stop.set()

        await client.closed()


async def test_a_reader_that_stalls_does_not_hold_up_the_end() -> None:
    async with serving(never_stops_sending, grace=0.05) as server:
        client = await server.connect()
        await client.send()
        await client.stream.receive_some()
        # The server is left, and ends, with the connection open and unread.


async def test_a_reader_that_stalls_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypercorn_fixes, "SEND_TIMEOUT", 0.05)
    given_up = trio.Event()

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(never_stops_sending, scope, receive, send)
            while (await receive())["type"] != "http.disconnect":
                pass
            given_up.set()
            nursery.cancel_scope.cancel()

    async with serving(application) as server:
        client = await server.connect()
        await client.send()

        await given_up.wait()


@pytest.mark.parametrize("lingers", [True, False], ids=["and is read after all", "and is not read"])
async def test_an_early_answer_reaches_a_client_whose_large_body_is_stuck(
    monkeypatch: pytest.MonkeyPatch, lingers: bool
) -> None:
    if not lingers:
        monkeypatch.setattr(hypercorn_fixes, "LINGER_TIMEOUT", 0)
    body_is_stuck = trio.Event()

    async def application(_scope: Scope, _receive: Receive, send: Send) -> None:
        await body_is_stuck.wait()
        await reply(send)

    async with serving(application) as server:
        client = await server.connect()
        await client.send("POST", length=10 << 20)
        async with trio.open_nursery() as nursery:

            async def send_body() -> None:
                with suppress(trio.BrokenResourceError):
                    await client.stream.send_all(bytes(10 << 20))

            nursery.start_soon(send_body)
            await trio.testing.wait_all_tasks_blocked(0.05)
            body_is_stuck.set()
            assert (await client.answer()).endswith(b"done")

        if lingers:
            assert (await client.ask()).endswith(b"done")
        else:
            assert await client.closed() == b""


async def test_a_body_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypercorn_fixes, "LINGER_TIMEOUT", 0.05)
    async with serving(answers_unread) as server:
        client = await server.connect()
        await client.send("POST", length=10 << 20)

        assert (await client.closed()).endswith(b"done")


async def test_a_newcomer_takes_the_place_of_the_connection_that_has_been_idle_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hypercorn_fixes, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(listener, "IDLE_TIMEOUT", 3600)
    async with serving(answers_unread) as server:
        silent, first, second = [await server.connect() for _ in range(3)]
        await first.ask()
        await second.ask()
        await first.ask()
        for newcomer in (await server.connect(), await server.connect()):
            assert (await newcomer.ask()).endswith(b"done")

        assert await silent.closed() == await second.closed() == b""
        assert (await first.ask()).endswith(b"done")


async def test_a_newcomer_is_turned_away_if_all_connections_are_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hypercorn_fixes, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(listener, "IDLE_TIMEOUT", 3600)
    arrived, may_go_on = trio.Semaphore(0), trio.Event()

    async def application(_scope: Scope, _receive: Receive, send: Send) -> None:
        arrived.release()
        await may_go_on.wait()
        await reply(send)

    async with serving(application) as server:
        clients = [await server.connect() for _ in range(2)]
        for client in clients:
            await client.send()
            await arrived.acquire()

        assert await (await server.connect()).closed() == b""
        may_go_on.set()
        for client in clients:
            assert (await client.answer()).endswith(b"done")


async def test_a_connection_that_never_was_used_ends_with_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "IDLE_TIMEOUT", 3600)
    async with serving(answers_unread) as server:
        client = await server.connect()
        await client.stream.send_eof()

        assert await client.closed() == b""


async def test_a_connection_that_fails_ends_alone_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_stream: BoundedWebSocket, _event: Event) -> None:
        await trio.lowlevel.checkpoint()
        raise ZeroDivisionError

    monkeypatch.setattr(BoundedWebSocket, "handle", fail)
    async with serving(answers_unread) as server:
        other, failing = await server.connect(), await server.connect()
        await other.ask()
        await failing.stream.send_all(handshake(token=None))

        assert await failing.closed() == b""
        for client in (other, await server.connect()):
            assert (await client.ask()).endswith(b"done")

    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [(record.name, record.message) for record in errors] == [(hypercorn_fixes.__name__, "a connection failed")]


@pytest.mark.parametrize("head", [
    b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
], ids=["upgrade", "prior knowledge"])  # fmt: skip
async def test_nobody_can_switch_to_http_2(head: bytes) -> None:
    async with serving(answers_unread) as server:
        client = await server.connect()
        await client.stream.send_all(head)

        assert (await client.answer()).startswith(b"HTTP/1.1 ")
        server.stop.set()
        assert b"\0" not in await client.closed()
