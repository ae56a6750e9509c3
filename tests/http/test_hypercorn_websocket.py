"""Each fault of Hypercorn's WebSockets that we mend, on real sockets, and what the mending must not lose."""

import logging
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
import trio.testing
from starlette.types import Message, Receive, Scope, Send
from wsproto.events import Ping, Pong
from wsproto.frame_protocol import Opcode

from semindex.http import hypercorn_fixes, listener
from tests.http.raw import Server, serving
from tests.http.websocket import UPGRADE, WebSocket, connected_to, handshake

Application = Callable[[Scope, Receive, Send], Awaitable[None]]
LIMIT = 1000


@pytest.fixture(autouse=True)
def small_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MAX_MESSAGE", LIMIT)


class Listening:
    """An application that accepts, and notes what it receives."""

    def __init__(self) -> None:
        self.received: list[Message] = []
        self.ended = trio.Event()

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] != "websocket.disconnect":
            self.received.append(message)
            await send({"type": "websocket.ping", "payload": b"still there?"})
        self.ended.set()

    @property
    def texts(self) -> list[str]:
        return [message["text"] for message in self.received if message["type"] == "websocket.receive"]


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Listening, WebSocket]]:
    application = Listening()
    async with serving(application) as server:
        yield application, await client_of(server)
        server.stop.set()
        server.hang_up()


async def client_of(server: Server, *headers: str) -> WebSocket:
    client = await connected_to(server.port, *headers)
    server.streams.append(client.stream)
    return client


async def until_received(application: Listening, count: int) -> None:
    while len(application.texts) < count:
        await trio.testing.wait_all_tasks_blocked()


@pytest.mark.parametrize("frames", [1, 7])
async def test_a_message_that_is_too_long_is_handed_over_in_part_and_the_rest_thrown_away(frames: int) -> None:
    size = 1 << 20
    async with connected() as (application, client):
        for number in range(frames):
            opcode = Opcode.CONTINUATION if number else Opcode.TEXT
            await client.send_frame(opcode, b"x" * size, is_last=number == frames - 1)
        await client.send("y" * LIMIT)
        await client.send("")
        await until_received(application, 3)

    long, full, empty = application.texts
    assert LIMIT < len(long) <= LIMIT + (64 << 10)
    assert set(long) == {"x"}
    assert (full, empty) == ("y" * LIMIT, "")


async def test_compression_is_not_negotiated_and_a_compressed_frame_is_an_error_of_the_protocol() -> None:
    application = Listening()
    async with serving(application) as server:
        # It asserts that the answer names no extension.
        client = await client_of(server, "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits")
        compressor = zlib.compressobj(wbits=-15)
        bomb = compressor.compress(bytes(1 << 24)) + compressor.flush(zlib.Z_SYNC_FLUSH)
        await client.send_frame(Opcode.BINARY, bomb, is_compressed=True)

        assert await client.closed() in (1002, None)  # None: what is left unread resets the connection

    assert application.received == []


@pytest.mark.parametrize("upgrade", [
    UPGRADE[:2],
    UPGRADE[:3],
    (*UPGRADE[:2], "Sec-WebSocket-Version: 8", UPGRADE[3]),
    (*UPGRADE, "Sec-WebSocket-Protocol: gr\u00fcn"),
    ("Connection: Upgrade, gr\u00fcn", *UPGRADE[1:]),
])  # fmt: skip
async def test_the_connection_of_a_handshake_that_is_refused_is_closed(upgrade: tuple[str, ...]) -> None:
    async with serving(Listening()) as server:
        client = await server.connect()
        await client.stream.send_all(handshake(upgrade=upgrade))

        assert (await client.closed()).startswith(b"HTTP/1.1 400 ")


async def test_data_that_come_too_early_end_the_connection_and_its_application() -> None:
    ended = trio.Event()

    async def accepts_late(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        early.set()
        await sent.wait()
        await trio.testing.wait_all_tasks_blocked()
        await send({"type": "websocket.accept"})
        assert (await receive())["type"] == "websocket.disconnect"
        ended.set()

    early, sent = trio.Event(), trio.Event()
    async with serving(accepts_late) as server:
        client = await server.connect()
        await client.stream.send_all(handshake())
        await early.wait()
        await client.stream.send_all(b"\x81\x80abcd")
        sent.set()

        assert (await client.closed()).startswith(b"HTTP/1.1 400 ")
        await ended.wait()


async def test_data_that_come_behind_a_refusal_are_thrown_away_and_the_refusal_is_told_to_its_end() -> None:
    async def refuses_in_pieces(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.http.response.start", "status": 401, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b"not ", "more_body": True})
        begun.set()
        await sent.wait()
        await trio.testing.wait_all_tasks_blocked()
        await send({"type": "websocket.http.response.body", "body": b"you"})

    begun, sent = trio.Event(), trio.Event()
    async with serving(refuses_in_pieces) as server:
        client = await server.connect()
        await client.stream.send_all(handshake())
        await begun.wait()
        await client.stream.send_all(b"\x81\x80abcd")
        sent.set()

        answer = await client.closed()

    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"not " in answer
    assert b"you" in answer


async def refuse(send: Send) -> None:
    await send({"type": "websocket.http.response.start", "status": 401, "headers": [(b"content-length", b"7")]})
    await send({"type": "websocket.http.response.body", "body": b"not you"})


async def close(send: Send) -> None:
    await send({"type": "websocket.close"})


async def say_nothing(_send: Send) -> None:
    pass


async def accept_and_close(send: Send) -> None:
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close"})


@pytest.mark.parametrize("react", [refuse, close, say_nothing, accept_and_close])
async def test_data_that_come_with_the_handshake_bring_one_answer_whatever_is_first(
    react: Callable[[Send], Awaitable[None]], caplog: pytest.LogCaptureFixture
) -> None:
    delays = iter(range(30))

    async def reacts_late(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        for _ in range(next(delays)):
            await trio.lowlevel.checkpoint()
        await react(send)

    async with serving(reacts_late) as server:
        for _ in range(30):
            client = await server.connect()
            await client.stream.send_all(handshake() + b"\x81\x80abcd")

            assert (await client.closed()).count(b"HTTP/1.1 ") == 1

    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_client_that_sends_on_after_it_was_closed_leaves_nothing_behind() -> None:
    async def closes(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        assert (await receive())["bytes"] == b"what you do not want"
        await send({"type": "websocket.close", "code": 1003})
        await sent.wait()
        await trio.testing.wait_all_tasks_blocked()

    sent = trio.Event()
    async with serving(closes) as server:
        client = await client_of(server)
        await client.send_frame(Opcode.BINARY, b"what you do not want")
        for _ in range(100):
            await client.send_frame(Opcode.TEXT, b"but this?")
        sent.set()

        assert await client.closed() == 1003
        with suppress(trio.BrokenResourceError):
            assert await client.stream.receive_some() == b""
        # The server is left, and ends, although nobody has hung up.


async def test_an_application_whose_client_sends_and_does_not_read_is_set_free(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sends_and_does_not_read(_scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await sent.wait()
        for _ in range(20):
            await send({"type": "websocket.send", "bytes": bytes(1 << 20)})
        ended.set()

    monkeypatch.setattr(hypercorn_fixes, "SEND_TIMEOUT", 0.05)
    sent, ended = trio.Event(), trio.Event()
    async with serving(sends_and_does_not_read) as server:
        client = await client_of(server)
        for _ in range(100):
            await client.send_frame(Opcode.TEXT, b"what you do not read")
        sent.set()

        await ended.wait()


@pytest.mark.parametrize(("frames", "code"), [
    ([(Opcode.CONTINUATION, b"x", True)], 1002),
    ([(Opcode.TEXT, b"x", False), (Opcode.TEXT, b"y", True)], 1002),
    ([(Opcode.PING, b"x", False)], 1002),
    ([(Opcode.PING, bytes(126), True)], 1002),
    ([(3, b"", True)], 1002),
    ([(Opcode.TEXT, b"\xff\xfe", True)], 1007),
    ([(Opcode.CLOSE, b"\x03", True)], 1002),
    ([(Opcode.CLOSE, b"\x00\x01", True)], 1002),
    ([(Opcode.CLOSE, b"\x03\xe8\xff", True)], 1007),
], ids=lambda value: str(value)[:60])  # fmt: skip
async def test_what_breaks_the_protocol_is_answered_with_the_code_that_says_so(
    frames: list[tuple[Any, bytes, bool]], code: int
) -> None:
    async with connected() as (application, client):
        for opcode, payload, is_last in frames:
            await client.send_frame(opcode, payload, is_last=is_last)

        assert await client.closed() == code
        await application.ended.wait()


async def test_a_frame_that_is_not_masked_is_an_error_of_the_protocol() -> None:
    async with connected() as (application, client):
        await client.send_frame(Opcode.TEXT, b"x", is_masked=False)

        assert await client.closed() == 1002
        await application.ended.wait()


async def test_an_application_asks_for_a_sign_of_life_and_learns_of_it() -> None:
    async with connected() as (application, client):
        await client.send("ask me")
        await until_received(application, 1)
        while {"type": "websocket.pong", "payload": b"still there?"} not in application.received:
            with trio.move_on_after(0.01):
                await client.event()


# What Hypercorn does right


async def test_a_client_that_closes_is_answered_with_its_own_code() -> None:
    async with connected() as (application, client):
        await client.send_frame(Opcode.CLOSE, b"\x0f\xa0because")

        assert await client.closed() == 4000
        await application.ended.wait()


async def test_pings_are_answered_with_what_they_hold() -> None:
    async with connected() as (_, client):
        await client.stream.send_all(client.protocol.send(Ping(b"are you there?")))

        event = await client.event()
        assert isinstance(event, Pong)
        assert event.payload == b"are you there?"


async def test_a_message_in_pieces_with_pings_between_them_arrives_whole() -> None:
    async with connected() as (application, client):
        await client.send_frame(Opcode.TEXT, "gr\u00fc".encode()[:3], is_last=False)  # it cuts a letter in two
        await client.send_frame(Opcode.PING)
        await client.send_frame(Opcode.CONTINUATION, "gr\u00fc".encode()[3:] + b"n", is_last=True)
        await until_received(application, 1)

    assert application.texts == ["grün"]


async def test_thousands_of_empty_pieces_at_once_let_others_go_on_in_between() -> None:
    pieces, steps = 5000, 0

    async def count() -> None:
        nonlocal steps
        while True:
            await trio.lowlevel.checkpoint()
            steps += 1

    async with connected() as (application, client), trio.open_nursery() as nursery:
        await client.send_frame(Opcode.TEXT, b"", is_last=False)
        empty = bytes([Opcode.CONTINUATION, 0x80, 0, 0, 0, 0])
        nursery.start_soon(count)
        await client.stream.send_all(empty * pieces)
        await client.send_frame(Opcode.CONTINUATION, b"the end")
        await client.send_frame(Opcode.PING)
        assert isinstance(await client.event(), Pong)
        nursery.cancel_scope.cancel()
        await until_received(application, 1)

    assert application.texts == ["the end"]
    assert steps > pieces / 2
