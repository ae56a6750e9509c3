"""What the doubles of servers share: scripted faults, a record of requests, and how they are reached.

A double is an ASGI application. It is served on a port (:func:`served`), by a process of its own
(:class:`DoubleProcess`, ``python -m``), or reached without a socket (:class:`InProcess`), which is what a virtual clock
needs. A double in another process takes its faults from ``PUT /double/faults``, a JSON list of :class:`Fault`, and
shows its requests under ``GET /double/requests``.
"""

import argparse
import json
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Literal, Self

import httpx2
import trio
from attrs import define, field
from pydantic import BaseModel, ConfigDict, TypeAdapter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semindex.http.listener import Listener, bind_tcp

START_TIMEOUT = 30
"""Seconds for a double's process to listen, and to end."""


class Fault(BaseModel):
    """What happens to a request in the place of its right answer; without anything set, nothing does."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    where: str = ""
    """Part of the requests that it happens to, written like ``POST /collections/ws-a/points/query``."""
    after: int = 0
    """Requests that are left alone first."""
    times: int | None = 1
    """Requests that it happens to; None: until the faults are replaced."""
    delay: float = 0.0
    """Seconds before anything else."""
    hangs: bool = False
    """There is no answer."""
    status: int | None = None
    """There is an answer of this status; nothing is done."""
    body: str = ""
    headers: dict[str, str] = {}
    """Of that answer."""
    cut: int | None = None
    """What was asked for is done, but the connection ends after so many bytes of the answer."""
    spoil: Literal["dimension", "count", "nan"] | None = None
    """What is wrong with the vectors of the answer."""


@define
class Faulty:
    """A double's application with its faults and a record of its requests; an ASGI application."""

    application: ASGIApp
    requests: list[str] = field(factory=list)
    """Every request, as ``METHOD path?query``."""
    _faults: list[Fault] = field(factory=list)
    _seen: dict[int, int] = field(factory=dict)
    """Index of a fault → requests that it could have happened to."""

    def script(self, *faults: Fault) -> None:
        """Replace all faults; of those that a request could meet, the first one that is due happens."""
        self._faults = list(faults)
        self._seen = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, rightly or not."""
        if scope["type"] == "lifespan":
            await _live(receive, send)
            return
        if scope["path"].startswith("/double/"):
            await self._control(scope, receive, send)
            return
        request = f"{scope['method']} {scope['path']}"
        query = scope["query_string"].decode()
        self.requests.append(f"{request}?{query}" if query else request)
        fault = self._due(request)
        await trio.sleep(fault.delay)
        if fault.hangs:
            while (await receive())["type"] != "http.disconnect":
                pass
        elif fault.status is not None:
            await _read(receive)
            await _send(send, fault.status, fault.body.encode(), fault.headers)
        else:
            scope.setdefault("state", {})["spoil"] = fault.spoil
            await self.application(scope, receive, send if fault.cut is None else _Cut(send, fault.cut))

    def _due(self, request: str) -> Fault:
        for number, fault in enumerate(self._faults):
            if fault.where not in request:
                continue
            seen = self._seen[number] = self._seen.get(number, 0) + 1
            if seen > fault.after and (fault.times is None or seen <= fault.after + fault.times):
                return fault
        return Fault()

    async def _control(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _read(receive)
        if scope["method"] == "PUT" and scope["path"] == "/double/faults":
            self.script(*TypeAdapter(list[Fault]).validate_json(body))
            await _send(send, 200, b"{}", {"content-type": "application/json"})
        else:
            await _send(send, 200, json.dumps(self.requests).encode(), {"content-type": "application/json"})


@define
class _Cut:
    """Passes on the head of an answer and the first bytes of its body; the server then has to close the connection."""

    send: Send
    left: int

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self.send(message)
        elif self.left:
            piece = message.get("body", b"")[: self.left]
            self.left -= len(piece)
            await self.send({"type": "http.response.body", "body": piece, "more_body": True})


async def _live(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


async def _read(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


async def _send(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    pairs.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def served(application: ASGIApp, port: int = 0) -> AsyncIterator[str]:
    """Serve an application on the loopback interface, port 0 being any; yields the URL, without a slash at its end."""
    endpoint = bind_tcp(port)
    listener = Listener(application, endpoint, 0.1, trio.Event())
    async with trio.open_nursery() as nursery:
        await nursery.start(listener.run)
        try:
            yield endpoint.url
        finally:
            listener.stopping.set()


class InProcess(httpx2.AsyncBaseTransport):
    """Carries requests to an application in this task, without a socket."""

    def __init__(self, application: ASGIApp, library: Any = httpx2) -> None:
        """``library`` is the client's: ``httpx2``, or its predecessor, which qdrant-client is built on."""
        self._application = application
        self._library = library

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the answer, or raise what a client of a server that behaves like the application meets."""
        body = await request.aread()
        pieces = iter([{"type": "http.request", "body": body, "more_body": False}])
        start: Message = {}
        content = b""

        async def receive() -> Message:
            await trio.lowlevel.checkpoint()
            if (piece := next(pieces, None)) is None:
                await trio.sleep_forever()
            return piece

        async def send(message: Message) -> None:
            nonlocal start, content
            await trio.lowlevel.checkpoint()
            if message["type"] == "http.response.start":
                start = message
            else:
                content += message.get("body", b"")

        await self._application(_scope(request), receive, send)
        response: httpx2.Response = self._library.Response(start["status"], headers=start["headers"], content=content)
        if len(content) < int(dict(start["headers"]).get(b"content-length", b"0")):
            raise self._library.RemoteProtocolError("peer closed connection without sending complete message body")
        return response


def _scope(request: httpx2.Request) -> Scope:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "client": ("127.0.0.1", 1),
        "server": (request.url.host, request.url.port),
        "state": {},
        "extensions": {},
    }


def main(
    name: str,
    parser: argparse.ArgumentParser,
    opened: Callable[[argparse.Namespace], AbstractAsyncContextManager[ASGIApp]],
) -> None:
    """Run a double until it is interrupted; prints one line that ends in its URL once it listens."""
    parser.add_argument(
        "--port", type=int, default=0, help="port on 127.0.0.1 (default: any free one, which is printed)"
    )
    arguments = parser.parse_args()

    async def run() -> None:
        async with opened(arguments) as application, served(application, arguments.port) as url:
            sys.stdout.write(f"{name} listens on {url}\n")
            sys.stdout.flush()
            with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                await anext(signals)

    trio.run(run)


@define
class DoubleProcess:
    """A double in a process of its own, for as long as the context lasts."""

    module: str
    """For example ``semindex.testing.qdrant_double``."""
    arguments: Sequence[str] = ()
    url: str = ""
    """Where it listens."""
    _process: "subprocess.Popen[str] | None" = None

    def __enter__(self) -> Self:
        """Start it, and return once it listens."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", self.module, *self.arguments], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        is_readable, _, _ = select.select([self._process.stdout], [], [], START_TIMEOUT)
        greeting = self._process.stdout.readline() if is_readable else ""
        if " listens on " not in greeting:
            self._end()
            raise RuntimeError(f"{self.module} has not started.")
        self.url = greeting.partition(" listens on ")[2].strip()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self._end()

    def script(self, *faults: Fault) -> None:
        """Replace its faults."""
        content = json.dumps([fault.model_dump() for fault in faults])
        httpx2.put(f"{self.url}/double/faults", content=content, trust_env=False).raise_for_status()

    def requests(self) -> list[str]:
        """Return every request that it got."""
        found: Any = httpx2.get(f"{self.url}/double/requests", trust_env=False).json()
        return [str(request) for request in found]

    def _end(self) -> None:
        process, self._process = self._process, None
        assert process is not None
        assert process.stdout is not None
        process.terminate()
        try:
            process.wait(START_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
