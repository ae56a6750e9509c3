"""An application behind the real listener in this process, and a client that speaks bytes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from attrs import define, field
from starlette.types import ASGIApp, Receive, Scope, Send

from semindex.http.hypercorn_fixes import Exchange
from semindex.http.listener import Listener, bind_tcp

PATIENCE = 10.0
"""Seconds after which a test that waits has failed."""


@define
class Server:
    """What listens."""

    port: int
    stop: trio.Event
    streams: list[trio.SocketStream] = field(factory=list)

    async def connect(self) -> "Client":
        """Open a connection, which stays open until the server has ended."""
        self.streams.append(await trio.open_tcp_stream("127.0.0.1", self.port))
        return Client(self.streams[-1])

    def hang_up(self) -> None:
        """Close all connections from the client's side."""
        for stream in self.streams:
            stream.socket.close()


@define
class Client:
    """One connection."""

    stream: trio.SocketStream

    async def ask(self, method: str = "GET", path: str = "/", body: bytes = b"", **headers: str) -> bytes:
        """Send a request and return its answer, the head included."""
        await self.send(method, path, len(body), **headers)
        await self.stream.send_all(body)
        return await self.answer()

    async def send(self, method: str = "GET", path: str = "/", length: int = 0, **headers: str) -> None:
        """Send the head of a request whose body has so many bytes."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {length}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.stream.send_all("\r\n".join([*lines, "", ""]).encode())

    async def answer(self) -> bytes:
        """Return an answer that tells its length."""
        received = b""
        while b"\r\n\r\n" not in received:
            received += await self._more()
        head, _, body = received.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or b"0")
        while len(body) < length:
            body += await self._more()
        return head + b"\r\n\r\n" + body

    async def closed(self) -> bytes:
        """Read until the server closes the connection, and return what came until then."""
        received = b""
        try:
            async for data in self.stream:
                received += data
        except trio.BrokenResourceError:
            pass
        return received

    async def _more(self) -> bytes:
        data = await self.stream.receive_some()
        assert data, "the server has closed the connection"
        return data


@asynccontextmanager
async def serving(application: ASGIApp, *, grace: float = 60.0) -> AsyncIterator[Server]:
    """Serve an application, behind an :class:`Exchange` as the dispatcher has it; on leaving, end in order."""

    async def behind_exchange(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for _ in range(2):
                await send({"type": f"{(await receive())['type']}.complete"})
            return
        if scope["type"] == "websocket":
            await application(scope, receive, send)
            return
        exchange = Exchange(receive, send)
        await application(scope, exchange.receive, exchange.send)

    endpoint = bind_tcp(0)
    server = Server(int(endpoint.url.rpartition(":")[2]), trio.Event())
    listener = Listener(behind_exchange, endpoint, grace, server.stop)
    try:
        async with trio.open_nursery() as nursery:

            async def until_stopped() -> None:
                await listener.run()
                nursery.cancel_scope.cancel()

            async def lose_patience() -> None:
                await trio.sleep(PATIENCE)
                server.hang_up()  # what is shielded ends by this alone
                raise trio.TooSlowError

            nursery.start_soon(lose_patience)
            nursery.start_soon(until_stopped)
            yield server
            server.stop.set()
    finally:
        server.hang_up()


async def reply(send: Send, body: bytes = b"done") -> None:
    """Answer 200."""
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
