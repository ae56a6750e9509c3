"""Three faults of Hypercorn 0.18's Trio worker, mended from outside.

1. A connection whose application listens for the disconnect never becomes idle again, since the end of the answer cancels
   the application that is about to start the idle timer: it is kept open for ever, and a shutdown takes its full grace.
2. Sending is shielded without a bound: a client that stops reading holds up a shutdown for as long as it likes.
3. An application that answers without reading a large body leaves its queue full, and the connection stuck.

:func:`guarded` mends 1 and 3, :class:`BoundedTCPServer` mends 2. The version is pinned, and each fault has a test.
"""

from typing import Any

import hypercorn.trio.run
import trio
from hypercorn.events import Closed, Event, RawData
from hypercorn.trio.tcp_server import TCPServer
from starlette.types import Message, Receive, Send

SEND_TIMEOUT = 10.0
"""Seconds that a client may take to accept one piece of an answer."""
END_TIMEOUT = 5.0
"""Seconds for the end of an answer, the rest of the request's body included."""


def guarded(receive: Receive, send: Send) -> Send:
    """Return a send that, at the end of the answer, reads what is left of the request and cannot be cancelled midway."""

    async def drain() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def guarded_send(message: Message) -> None:
        if message["type"] != "http.response.body" or message.get("more_body"):
            await send(message)
            return
        with trio.move_on_after(END_TIMEOUT, shield=True):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(drain)
                await send(message)
                nursery.cancel_scope.cancel(reason="the answer is complete")

    return guarded_send


class BoundedTCPServer(TCPServer):
    """A connection whose sends end in time, and within the grace once the server is ending."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._sending: trio.CancelScope | None = None

    async def run(self) -> None:
        """Serve the connection."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hurry_when_ending)
            await super().run()
            nursery.cancel_scope.cancel(reason="the connection is closed")

    async def protocol_send(self, event: Event) -> None:
        """Send bytes within the bound, or give up the connection."""
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
                await self.protocol.handle(Closed())

    async def _hurry_when_ending(self) -> None:
        await self.context.terminated.wait()
        self._hurry()

    def _hurry(self) -> None:
        if self._sending is not None:
            latest = trio.current_time() + self.config.graceful_timeout
            self._sending.deadline = min(self._sending.deadline, latest)


def install() -> None:
    """Have Hypercorn use the bounded connection; repeating it changes nothing."""
    vars(hypercorn.trio.run)["TCPServer"] = BoundedTCPServer  # the one seam that there is
