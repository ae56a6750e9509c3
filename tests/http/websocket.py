"""A WebSocket client that does what it is told and no more: it reads when asked to, and can break every rule."""

import json
from contextlib import suppress
from itertools import count
from typing import Any

import trio
from attrs import define, field
from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import CloseConnection, Event, Ping, TextMessage

from tests.http.conftest import CONTROL_TOKEN

UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: " + "A" * 22 + "==",
)


def handshake(
    *headers: str, target: str = "/v1/rpc", token: str | None = CONTROL_TOKEN, upgrade: tuple[str, ...] = UPGRADE
) -> bytes:
    """The head of a request for a WebSocket."""
    authorization = [] if token is None else [f"Authorization: Bearer {token}"]
    return "\r\n".join(
        [f"GET {target} HTTP/1.1", "Host: localhost", *authorization, *upgrade, *headers, "", ""]
    ).encode()


async def answered(stream: trio.SocketStream) -> tuple[bytes, bytes]:
    """Read the head of an answer, and return it with what came after it."""
    received = b""
    while b"\r\n\r\n" not in received:
        data = await stream.receive_some()
        assert data, f"the server has closed the connection after {received!r}"
        received += data
    head, _, rest = received.partition(b"\r\n\r\n")
    return head, rest


@define
class WebSocket:
    """One open connection."""

    stream: trio.SocketStream
    protocol: Connection
    answers_pings: bool = True
    pushed: list[dict[str, Any]] = field(factory=list)
    """Notifications that came while something else was waited for."""
    _ids: "count[int]" = field(factory=count)
    _events: list[Event] = field(factory=list)
    _text: str = ""

    async def call(self, method: str, **params: Any) -> Any:
        """Call a method and return its result."""
        answer = await self.ask(method, params)
        assert "error" not in answer, answer
        return answer["result"]

    async def refusal(self, method: str, **params: Any) -> tuple[int, str]:
        """Call a method and return the number and the word of its error."""
        error = (await self.ask(method, params))["error"]
        assert error["message"][-1] in ".?)"
        return error["code"], error["data"]["code"]

    async def ask(self, method: str, params: Any) -> dict[str, Any]:
        """Call a method and return its answer; what is pushed meanwhile is kept."""
        id_ = next(self._ids)
        await self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        while (message := await self.message()).get("id", "none") != id_:
            self.pushed.append(message)
        return message

    async def push(self) -> dict[str, Any]:
        """Return the next notification's parameters."""
        message = self.pushed.pop(0) if self.pushed else await self.message()
        assert message.keys() == {"jsonrpc", "method", "params"}, message
        assert message["method"] == "semantic-index.changed"
        return dict(message["params"])

    async def push_anew(self) -> dict[str, Any]:
        """Watch, and return what is pushed because of that."""
        await self.call("semantic-index.watch")
        self.pushed.clear()
        return await self.push()

    async def send(self, message: Any) -> None:
        """Send a text, or a value as JSON."""
        text = message if isinstance(message, str) else json.dumps(message)
        await self.stream.send_all(self.protocol.send(TextMessage(text)))

    async def send_frame(
        self,
        opcode: int,
        payload: bytes = b"",
        *,
        is_last: bool = True,
        is_masked: bool = True,
        is_compressed: bool = False,
    ) -> None:
        """Send a frame, whatever the protocol says of it. The mask is zero, so that the payload is what goes out."""
        size = len(payload)
        short, long = (
            (size, b"") if size < 126 else (126, size.to_bytes(2)) if size < 1 << 16 else (127, size.to_bytes(8))
        )
        first = opcode | is_last << 7 | is_compressed << 6
        await self.stream.send_all(bytes([first, short | is_masked << 7]) + long + bytes(4 * is_masked) + payload)

    async def message(self) -> dict[str, Any]:
        """Return the next message."""
        while True:
            event = await self.event()
            assert isinstance(event, TextMessage), event
            self._text += event.data
            if event.message_finished:
                text, self._text = self._text, ""
                message = json.loads(text)
                assert message["jsonrpc"] == "2.0"
                return dict(message)

    async def closed(self) -> int | None:
        """Read, and throw away, until the server closes, and return the code that it gave, or None if it gave none."""
        while True:
            try:
                event = await self.event()
            except (trio.BrokenResourceError, trio.EndOfChannel):
                return None
            if isinstance(event, CloseConnection):
                return event.code

    async def event(self) -> Event:
        """Return what comes next: a message, a pong, or the end, which is answered."""
        while True:
            while self._events:
                event = self._events.pop(0)
                if isinstance(event, Ping):
                    if self.answers_pings and self.protocol.state is ConnectionState.OPEN:
                        await self.stream.send_all(self.protocol.send(event.response()))
                    continue
                if isinstance(event, CloseConnection):
                    # Not while half a frame is out; nor is it an error that nobody waits for it.
                    with suppress(trio.BusyResourceError, trio.BrokenResourceError):
                        await self.stream.send_all(self.protocol.send(event.response()))
                return event
            data = await self.stream.receive_some()
            if not data:
                raise trio.EndOfChannel
            self.protocol.receive_data(data)
            self._events += self.protocol.events()


async def connected_to(port: int, *headers: str, token: str | None = CONTROL_TOKEN) -> WebSocket:
    """Open a WebSocket."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    await stream.send_all(handshake(*headers, token=token))
    head, rest = await answered(stream)
    assert head.startswith(b"HTTP/1.1 101 "), head + rest
    assert b"sec-websocket-extensions" not in head.lower()
    client = WebSocket(stream, Connection(ConnectionType.CLIENT, trailing_data=rest))
    client._events += client.protocol.events()
    return client
