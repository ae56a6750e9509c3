"""The plugin RPC on ``/v1/rpc``: JSON-RPC 2.0 over a WebSocket (docs/api.md, RPC).

The calls and their shapes are those of the control API. A connection has a task that reads and one that writes, and a
short queue between them, so that a client that does not read holds up nobody else. What is pushed is built once for all
that watch. A client is sent the next value only when it has answered a ping that was sent after the one before; until
then values replace each other. So a slow client that only watches has one message outstanding, and can still be told
that it is too slow: the close frame has not to be squeezed in after a message that the client does not take. Answers
are not held back like that: who asks and does not read may be disconnected without being told.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from typing import Any

import trio
from attrs import frozen
from starlette.types import Message, Receive, Scope, Send

from semindex.cell.cell import Cell
from semindex.http import jsonrpc, wire
from semindex.http.calls import Calls
from semindex.http.errors import RequestError, refusal_of
from semindex.http.listener import MAX_MESSAGE
from semindex.http.requests import checked
from semindex.model.errors import SemindexError, leaves

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 256
"""RPC connections; each holds one of the listener's, which are twice as many."""
MAX_IN_FLIGHT = 16
"""Requests of one connection that are not answered yet."""
MAX_WAITING = 32
"""Messages that wait for a client to take them."""
PUSH_INTERVAL = 0.1
"""Seconds between two values that are pushed to a client. One value serves all clients for half as long."""
RETRY_INTERVAL = 1.0
"""Seconds after which a status that could not be told is tried again."""
PATIENCE = 10.0
"""Seconds within which a client must have read what it was sent, and answer a ping."""
PING_INTERVAL = 30.0
"""Seconds after which a client is asked for a sign of life, whatever else it was sent."""
LINGER_TIMEOUT = 1.0
"""Seconds that a client has to take the reason for which its connection is closed."""

TOO_SLOW = "Messages are not read fast enough."
CHANGED = "semantic-index.changed"
"""The notification that is pushed to those who watch."""


@frozen
class Ending:
    """Why a connection ends."""

    code: int | None
    """What the client is told; None if it has gone."""
    reason: str = ""


@frozen
class News:
    """The status of the cell, as it is pushed."""

    revision: str
    counter: int
    """Of the changes that it surely holds."""
    built_at: float
    text: str


class RpcDoor:
    """The RPC of a cell; an ASGI application for WebSockets whose right to come in is known."""

    def __init__(self, cell: Cell) -> None:
        self.calls = Calls(cell)
        self.closing = trio.Event()
        self._connections = 0
        self._news: News | None = None
        self._building = trio.Lock()
        self._is_failing = False

    def require_room(self) -> None:
        """Raise RequestError if no more connections are taken."""
        if self._connections >= MAX_CONNECTIONS:
            message = f"There are {MAX_CONNECTIONS} RPC connections already; close one first."
            raise RequestError(429, "too_many_connections", message)

    def close(self) -> None:
        """Have all connections end, with 1001."""
        self.closing.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a connection until it ends."""
        self._connections += 1
        try:
            await receive()
            await send({"type": "websocket.accept"})
            await Connection(self, receive, send).run()
        finally:
            self._connections -= 1

    async def news(self) -> News:
        """Return the status of a moment ago: it is built once for all that ask in that time.

        While the cell cannot tell its status, this waits until it can.
        """
        async with self._building:
            if self._news is not None and trio.current_time() < self._news.built_at + PUSH_INTERVAL / 2:
                return self._news
            while True:
                # The starred form: errors come alone, or in the groups that nurseries raise.
                try:
                    self._news = await self._build()
                except* SemindexError as group:
                    if not self._is_failing:
                        logger.warning("the status cannot be pushed: %s", "; ".join(map(str, leaves(group))))
                    self._is_failing = True
                    await trio.sleep(RETRY_INTERVAL)
                else:
                    self._is_failing = False
                    return self._news

    async def _build(self) -> News:
        counter = self.calls.cell.changes.value
        status = await self.calls.status()
        text = jsonrpc.notification(CHANGED, {"revision": status["revision"], "status": status})
        return News(status["revision"], counter, trio.current_time(), text)


class Connection:
    """One client: what it asks, what it is answered, and what it watches."""

    def __init__(self, door: RpcDoor, receive: Receive, send: Send) -> None:
        self.calls = door.calls
        self._door = door
        self._receive = receive
        self._send = send
        self._waiting, self._taken = trio.open_memory_channel[Message](MAX_WAITING)
        self._pings: dict[bytes, trio.Event] = {}
        """Pings that are waited for, by their payloads, in the order in which they are sent."""
        self._ping_numbers = count()
        self._in_flight = 0
        self._watch = trio.CancelScope()
        self._next_push = trio.current_time()
        self._ending: Ending | None = None
        self._lasting: trio.Nursery
        """Calls that change something: they go on to their end, whether or not the client is there."""
        self._attended: trio.Nursery
        """All else: it ends with the connection."""

    async def run(self) -> None:
        """Serve the client until it goes, or is told to."""
        async with trio.open_nursery() as self._lasting:
            await self._attend()
            await self._close()

    async def _attend(self) -> None:
        try:
            with self._waiting, self._taken:
                async with trio.open_nursery() as self._attended:
                    for task in (self._read, self._write, self._ask_for_signs_of_life, self._end_with_the_cell):
                        self._attended.start_soon(task)
        except* Exception:
            logger.exception("an RPC connection failed")
            self._end(1011, "An unexpected error; the log says more.")

    def _end(self, code: int | None, reason: str = "") -> None:
        if self._ending is None:
            self._ending = Ending(code, reason)
            self._attended.cancel_scope.cancel(reason="the connection ends")

    async def _close(self) -> None:
        if self._ending is None or self._ending.code is None:
            return
        await self._send({"type": "websocket.close", "code": self._ending.code, "reason": self._ending.reason})
        # A connection that is closed before all was read is reset, and the client may never see the reason.
        with trio.move_on_after(LINGER_TIMEOUT):
            while (await self._receive())["type"] != "websocket.disconnect":
                pass

    # Tasks

    async def _read(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                self._end(None)
            elif message["type"] == "websocket.pong":
                self._note_pong(message["payload"])
            elif (text := message.get("text")) is None:
                self._end(1003, "Messages are text, not binary.")
            elif len(text) > MAX_MESSAGE:
                self._end(1009, f"A message has at most {MAX_MESSAGE} characters.")
            else:
                await self._take(text)

    async def _write(self) -> None:
        async for message in self._taken:
            await self._send(message)

    async def _ask_for_signs_of_life(self) -> None:
        while True:
            await trio.sleep(PING_INTERVAL)
            await self._until_read()

    async def _end_with_the_cell(self) -> None:
        await self._door.closing.wait()
        self._end(1001, "The cell is ending.")

    async def _push(self, watch: trio.CancelScope, seen: str | None) -> None:
        with watch:
            while True:
                await trio.sleep_until(self._next_push)
                self._next_push = trio.current_time() + PUSH_INTERVAL
                news = await self._door.news()
                if news.revision != seen:
                    await self._say(news.text)
                    await self._until_read()
                    seen = news.revision
                await self.calls.cell.changes.beyond(news.counter)

    # Sending

    async def _say(self, text: str) -> None:
        await self._put({"type": "websocket.send", "text": text})

    async def _until_read(self) -> None:
        """Wait until the client has read all that it was sent so far; one that takes too long is disconnected."""
        payload = str(next(self._ping_numbers)).encode()
        pong = self._pings[payload] = trio.Event()
        try:
            await self._put({"type": "websocket.ping", "payload": payload})
            with trio.move_on_after(PATIENCE):
                await pong.wait()
                return
            self._end(1013, TOO_SLOW)
        finally:
            del self._pings[payload]

    def _note_pong(self, payload: bytes) -> None:
        """Take note of a pong. It answers its ping and those before it (RFC 6455, section 5.5.3), or none."""
        if payload in self._pings:
            for each, pong in self._pings.items():
                pong.set()
                if each == payload:
                    break

    async def _put(self, message: Message) -> None:
        """Have a message sent, in vain once the connection has ended."""
        with trio.move_on_after(PATIENCE):
            with suppress(trio.ClosedResourceError, trio.BrokenResourceError):
                await self._waiting.send(message)
            return
        self._end(1013, TOO_SLOW)

    # Requests

    async def _take(self, text: str) -> None:
        try:
            call = jsonrpc.parse(text)
        except jsonrpc.Malformed as error:
            await self._say(error.answer)
            return
        if self._in_flight >= MAX_IN_FLIGHT:
            message = f"{MAX_IN_FLIGHT} requests of this connection are under way; wait for an answer."
            await self._refuse(call, RequestError(429, "too_many_requests", message))
        elif (method := METHODS.get(call.method)) is None:
            message = f"There is no such method; there are {', '.join(METHODS)}."
            await self._refuse(call, RequestError(404, "not_found", message), jsonrpc.METHOD_NOT_FOUND)
        else:
            self._in_flight += 1
            nursery = self._lasting if method.changes_something else self._attended
            nursery.start_soon(self._run, call, method)

    async def _run(self, call: jsonrpc.Call, method: "Method") -> None:
        value: wire.Json | None = None
        refusal: RequestError | None = None
        # The starred form: errors come alone, or in the groups that nurseries raise.
        try:
            if not isinstance(call.params, dict):
                raise RequestError(422, "invalid", "Parameters go by name: params is an object.")
            value = await method.run(self, checked(call.params, method.params, "params"))
        except* Exception as group:  # noqa: BLE001 - logged or told by refusal_of, and the cell goes on
            refusal = refusal_of(group, call.method)
        if refusal is not None:
            await self._refuse(call, refusal)
        elif not call.is_notification:
            await self._say(jsonrpc.result(call.id, value))
        self._in_flight -= 1

    async def _refuse(self, call: jsonrpc.Call, refusal: RequestError, number: int | None = None) -> None:
        if not call.is_notification:
            number = jsonrpc.number_of(refusal.status) if number is None else number
            await self._say(jsonrpc.failure(call.id, number, refusal.body))

    async def workspace_status(self, wanted: wire.PathFields) -> wire.Json | None:
        """Answer ``semantic-index.workspace-status``: null if the path has no registration."""
        status = await self.calls.cell.leases.status_at(wanted.path)
        return None if status is None else self.calls.shown(status)

    async def watch(self, wanted: wire.WatchFields) -> wire.Json:
        """Answer ``semantic-index.watch``; asking again begins anew with another revision."""
        await trio.lowlevel.checkpoint()
        self._watch.cancel(reason="it is watched anew")
        self._watch = trio.CancelScope()
        self._attended.start_soon(self._push, self._watch, wanted.since)
        return {"revision": self.calls.cell.revision}


@frozen
class Method:
    """What a method takes and does."""

    params: type[wire.Request]
    run: Callable[[Connection, Any], Awaitable[wire.Json | None]]
    changes_something: bool = False
    """It goes on to its end although its client has gone."""


METHODS = {
    "semantic-index.status": Method(wire.NoFields, lambda connection, _: connection.calls.status()),
    "semantic-index.workspace-status": Method(wire.PathFields, Connection.workspace_status),
    "semantic-index.register": Method(
        wire.RegisterFields,
        lambda connection, wanted: connection.calls.register(wanted.id, wanted),
        changes_something=True,
    ),
    "semantic-index.release": Method(
        wire.ReleaseFields,
        lambda connection, wanted: connection.calls.release(wanted.id, purge=wanted.purge, force=wanted.force),
        changes_something=True,
    ),
    "semantic-index.reindex": Method(
        wire.ReindexFields,
        lambda connection, wanted: connection.calls.reindex(wanted.id, force=wanted.force),
        changes_something=True,
    ),
    "semantic-index.watch": Method(wire.WatchFields, Connection.watch),
}
