"""What Hypercorn 0.18 does wrong with a WebSocket, mended from outside like :mod:`semindex.http.hypercorn_fixes`.

1. A message that is too long is kept and grows on, and the application is not told.
2. Compression is negotiated whenever a client offers it; a few bytes may then unfold to any size in one step.
3. A handshake that is refused leaves its connection open for ever; data that come before it is answered leave the
   application waiting for ever, and data that come while it is being refused bring a second answer, which is an error.
   So is a header that is not ASCII.
4. What breaks the protocol is answered with silence instead of the code that says so.
5. Pings can be sent by a timer that outlives the connection, and nobody learns whether they are answered. So an
   application has no means to know whether a client still reads.
6. What comes after the application has ended waits for it to be taken, and so does the end of the connection.
7. All that has arrived is worked off in one step, which thousands of empty pieces make a long one.

For 5, two kinds of message are added: the application sends ``websocket.ping`` and receives ``websocket.pong``, both
with a ``payload`` of at most 125 bytes.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import trio
from hypercorn.protocol.events import Body, Data, Event, Request, StreamClosed
from hypercorn.protocol.ws_stream import FrameTooLargeError, WSStream
from wsproto.events import CloseConnection, Ping, Pong
from wsproto.events import Message as Piece

_EXTENSIONS = b"sec-websocket-extensions"
_DECODED = (b"connection", b"sec-websocket-protocol")
"""Headers that Hypercorn takes for ASCII without looking."""


class BoundedWebSocket(WSStream):
    """A WebSocket that holds no more than one message of the permitted length, and always comes to an end."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._is_skipping = False
        """Whether the rest of a message that is too long is thrown away."""
        self._is_answered = False
        """Whether the application has begun to answer the handshake."""
        self._has_ended = False
        """Whether the application has."""
        self._handovers: set[trio.CancelScope] = set()
        """What waits for the application to take something."""

    async def handle(self, event: Event) -> None:
        """Take in what the connection brings."""
        if self.closed:
            return
        if isinstance(event, Request):
            await self._begin(event)
        elif isinstance(event, Body | Data) and not self.handshake.accepted:
            await self._refuse_early_data()
        else:
            await super().handle(event)

    async def app_send(self, message: Any) -> None:  # of a kind that Hypercorn's types do not know, too
        """Send what the application sends; None is its end."""
        self._is_answered = True
        if message is None:
            self._has_ended = True
            for handover in self._handovers:
                handover.cancel(reason="the application has ended")
        if message is not None and message["type"] == "websocket.ping":
            await self._send_wsproto_event(Ping(message["payload"]))
        else:
            await super().app_send(message)

    async def _begin(self, request: Request) -> None:
        """Start the application, or refuse the handshake."""
        if all(value.isascii() for name, value in request.headers if name.lower() in _DECODED):
            headers = [header for header in request.headers if header[0].lower() != _EXTENSIONS]
        else:
            headers = []  # no valid handshake is without any
        await super().handle(replace(request, headers=headers))
        if self.app_put is None:
            await self.send(StreamClosed(stream_id=self.stream_id))
        else:
            self.app_put = partial(self._hand_over, self.app_put)

    async def _refuse_early_data(self) -> None:
        if self._is_answered:
            return  # the application refuses the handshake, and there can be but one answer
        self.closed = True  # for the same reason, what the application sends from now on is thrown away
        await self._send_error_response(400)
        await self._tell({"type": "websocket.disconnect", "code": 1006})
        await self.send(StreamClosed(stream_id=self.stream_id))

    async def _hand_over(self, put: Callable[[Any], Awaitable[None]], message: Any) -> None:
        """Have the application take a message; once it has ended, in vain."""
        if self._has_ended:
            return
        with trio.CancelScope() as handover:
            self._handovers.add(handover)
            try:
                await put(message)
            finally:
                self._handovers.remove(handover)

    async def _handle_events(self) -> None:
        for event in self.connection.events():
            await trio.lowlevel.checkpoint()  # a client may send thousands of empty pieces at once
            if isinstance(event, Piece):
                await self._collect(event)
            elif isinstance(event, Ping):
                await self._send_wsproto_event(event.response())
            elif isinstance(event, Pong):
                await self._tell({"type": "websocket.pong", "payload": bytes(event.payload)})
            elif isinstance(event, CloseConnection):
                await self._send_wsproto_event(event.response())
                await self.send(StreamClosed(stream_id=self.stream_id))

    async def _collect(self, piece: Piece[Any]) -> None:
        """Hand over a message once it is complete, or as far as it has come once it is longer than it may be."""
        is_complete = piece.message_finished
        if self._is_skipping:
            self._is_skipping = not is_complete
            return
        try:
            self.buffer.extend(piece)
        except FrameTooLargeError:
            self._is_skipping = not is_complete
            is_complete = True
        if is_complete:
            message = self.buffer.to_message()
            self.buffer.clear()
            await self._tell(message)

    async def _tell(self, message: dict[str, Any]) -> None:
        assert self.app_put is not None, "there is no connection before there is an application"
        await self.app_put(message)
