"""What Hypercorn 0.18 does wrong with a WebSocket, mended from outside like :mod:`semindex.http.hypercorn_fixes`.

1. A message that is too long is kept and grows on, and the application is not told.
2. Compression is negotiated whenever a client offers it; a few bytes may then unfold to any size in one step.
3. A handshake that is refused leaves its connection open for ever; data that come before it is accepted leave the
   application waiting for ever.
4. What breaks the protocol is answered with silence instead of the code that says so.
5. Pings can be sent by a timer that outlives the connection, and nobody learns whether they are answered. So an
   application has no means to know whether a client still reads.

For the last, two kinds of message are added: the application sends ``websocket.ping`` and receives ``websocket.pong``.
"""

from dataclasses import replace
from typing import Any

from hypercorn.protocol.events import Event, Request, StreamClosed
from hypercorn.protocol.ws_stream import FrameTooLargeError, WSStream
from wsproto.events import CloseConnection, Ping, Pong
from wsproto.events import Message as Piece

_EXTENSIONS = b"sec-websocket-extensions"


class BoundedWebSocket(WSStream):
    """A WebSocket that holds no more than one message of the permitted length, and always comes to an end."""

    _is_skipping = False
    """Whether the rest of a message that is too long is thrown away."""

    async def handle(self, event: Event) -> None:
        """Take in what the connection brings."""
        if isinstance(event, Request):
            event = replace(event, headers=[header for header in event.headers if header[0].lower() != _EXTENSIONS])
        was_closed = self.closed
        await super().handle(event)
        if self.closed and not was_closed and not isinstance(event, StreamClosed):
            await self._end_refused()

    async def app_send(self, message: Any) -> None:  # of a kind that Hypercorn's types do not know, too
        """Send what the application sends."""
        if message is not None and message["type"] == "websocket.ping":
            await self._send_wsproto_event(Ping())
        else:
            await super().app_send(message)

    async def _handle_events(self) -> None:
        for event in self.connection.events():
            if isinstance(event, Piece):
                await self._collect(event)
            elif isinstance(event, Ping):
                await self._send_wsproto_event(event.response())
            elif isinstance(event, Pong):
                await self._tell({"type": "websocket.pong"})
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

    async def _end_refused(self) -> None:
        if self.app_put is not None:
            await self._tell({"type": "websocket.disconnect", "code": 1006})
        await self.send(StreamClosed(stream_id=self.stream_id))

    async def _tell(self, message: dict[str, Any]) -> None:
        assert self.app_put is not None, "there is no connection before there is an application"
        await self.app_put(message)
