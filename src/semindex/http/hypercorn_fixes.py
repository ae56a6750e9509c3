"""What Hypercorn 0.18's Trio worker does wrong, mended from outside.

1. A connection whose application listens for the disconnect never becomes idle again, since the end of the
   answer cancels the application that is about to start the idle timer: it is kept open for ever, and a
   shutdown takes its full grace.
2. Sending is shielded without a bound: a client that stops reading holds up a shutdown for as long as it likes. Once it
   is given up, the application that was sending may wait for itself to take note of that.
3. An application that answers without reading a large body leaves its queue full, and the connection stuck; with a
   small one, the connection is reset before the client has read the answer.
4. Any number of connections is accepted, until no file can be opened any more.
5. A connection that its client closes before it has asked for anything stays open until its idle timer ends.
6. A client may switch to HTTP/2, which knows none of the limits that are set for HTTP/1.
7. Whatever goes wrong with one connection, but for errors of the system, ends the whole server.

:class:`Exchange` mends 1 and 3, :class:`BoundedConnection` 2, 4, 5 and 7, :class:`OnlyHttp1` 6; for WebSockets
see :mod:`semindex.http.hypercorn_websocket`. The version is pinned, and each fault has a test that
fails without its mending.
"""

import logging
from typing import Any, ClassVar

import h11
import hypercorn.protocol
import hypercorn.protocol.h11
import hypercorn.trio.run
import trio
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.trio.tcp_server import TCPServer
from starlette.types import Message, Receive, Send

from semindex.http.hypercorn_websocket import BoundedWebSocket

logger = logging.getLogger(__name__)

SEND_TIMEOUT = 10.0
"""Seconds that a client may take to accept one piece of an answer."""
LINGER_TIMEOUT = 2.0
"""Seconds for which the rest of a request that was answered early is read and thrown away."""
MAX_CONNECTIONS = 512
"""Open connections; the one that has been idle longest makes room for a new one."""


class Exchange:
    """One request and its answer, between an application and Hypercorn."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send
        self._is_received = False

    async def receive(self) -> Message:
        """Return the next piece of the request, or its disconnect."""
        message = await self._receive()
        self._is_received |= message["type"] == "http.disconnect" or not message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Send a piece of the answer; the last one waits for the rest of the request."""
        if message["type"] != "http.response.body" or message.get("more_body"):
            await self._send(message)
            return
        if message.get("body"):
            await self._send({**message, "more_body": True})
        with trio.move_on_after(LINGER_TIMEOUT):
            while not self._is_received:
                await self.receive()
        await self._finish()

    async def _finish(self) -> None:
        """End the answer, with a reader beside it for whom Hypercorn waits if the request never came to its end.

        It must not be cut by the application's own reaction to the disconnect that it brings about. The bound is only
        for the case that Hypercorn waits for something else.
        """
        with trio.move_on_after(SEND_TIMEOUT, shield=True):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._drain)
                await self._send({"type": "http.response.body", "body": b"", "more_body": False})
                nursery.cancel_scope.cancel(reason="the answer is complete")

    async def _drain(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass


class BoundedConnection(TCPServer):
    """A connection that is one of a bounded number, whose sends end in time, and that fails alone."""

    _open: ClassVar["dict[BoundedConnection, bool]"] = {}
    """All connections of the process → whether they are idle; of the idle, those that have been longest come first."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._life = trio.CancelScope()
        self._sending: trio.CancelScope | None = None

    async def run(self) -> None:
        """Serve the connection."""
        self._make_room()
        self._open[self] = True
        try:
            with self._life:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._hurry_when_ending)
                    await super().run()
                    nursery.cancel_scope.cancel(reason="the connection is closed")
        except* Exception:
            logger.exception("a connection failed")
        finally:
            del self._open[self]

    async def protocol_send(self, event: Event) -> None:
        """Send bytes within the bound, or give up the connection."""
        if isinstance(event, Updated):
            del self._open[self]
            self._open[self] = event.idle
        if not isinstance(event, RawData):
            await super().protocol_send(event)
            return
        async with self.send_lock:
            try:
                with trio.fail_after(SEND_TIMEOUT, shield=True) as self._sending:
                    if self.context.terminated.is_set():
                        self._hurry()
                    await self.stream.send_all(event.data)
            except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError):
                await trio.aclose_forcefully(self.stream)
                # Telling the application waits for room in its queue, and it may be the one that waits here.
                self._task_group.spawn(self.protocol.handle, Closed())

    async def _read_data(self) -> None:
        await super()._read_data()
        await self.idle_task.stop()

    def _make_room(self) -> None:
        if len(self._open) < MAX_CONNECTIONS:
            return
        idle = next((connection for connection, is_idle in self._open.items() if is_idle), None)
        if idle is not None:
            self._open[idle] = False  # the next newcomer takes another one
        (idle or self)._life.cancel(reason="there are too many connections")

    async def _hurry_when_ending(self) -> None:
        await self.context.terminated.wait()
        self._hurry()

    def _hurry(self) -> None:
        if self._sending is not None:
            latest = trio.current_time() + self.config.graceful_timeout
            self._sending.deadline = min(self._sending.deadline, latest)


class OnlyHttp1(H11Protocol):
    """HTTP/1 whatever the client proposes, as RFC 9110, section 7.8, allows."""

    async def _check_protocol(self, event: h11.Request) -> None:
        pass


def install() -> None:
    """Have Hypercorn use these; repeating it changes nothing."""
    vars(hypercorn.trio.run)["TCPServer"] = BoundedConnection  # the one seam that there is
    vars(hypercorn.protocol)["H11Protocol"] = OnlyHttp1
    vars(hypercorn.protocol.h11)["WSStream"] = BoundedWebSocket
