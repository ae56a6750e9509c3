"""One worker process of the embedded store, from its start to its death, and the calls under way in it.

Owns the process, its pipes, and the matching of replies to calls. A caller that is cancelled leaves nothing behind:
its frame is written whole or not at all by a task of this module's nursery, and the reply, which comes all the same,
is dropped by another. Knows nothing of restarts (:mod:`semindex.stores.edge_supervisor`) or of what the calls mean.
"""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count

import trio
from attrs import define, field

from semindex.stores.edge_protocol import READY, Frame, FrameBuffer, FramingLost, Settings, encode

logger = logging.getLogger(__name__)

CLOSE_GRACE = 10.0
"""Seconds that a worker has to close its collections after its input ended; eight large ones take about two."""

KILL_GRACE = 5.0
"""Seconds to wait for a killed process; one that the kernel cannot end by then is left to it."""


class WorkerLost(Exception):
    """The worker died before it answered."""


def worker_command(mode: str, settings: Settings, *arguments: str) -> list[str]:
    """Return the command of a worker; ``-P`` keeps modules in the user's directory from shadowing ours."""
    return [sys.executable, "-P", "-m", "semindex.stores.edge_worker", mode, settings.to_json(), *arguments]


@define
class _Call:
    answered: trio.Event = field(factory=trio.Event)
    reply: Frame | None = None


class Connection:
    """The calls under way in one worker."""

    def __init__(self, process: trio.Process) -> None:
        """Begin with no call; :meth:`run` moves the frames."""
        self._process = process
        self._numbers = count(READY + 1)
        self._calls: dict[int, _Call] = {}
        self._outgoing, self._to_write = trio.open_memory_channel[bytes](0)
        self._lost = False
        self.last_heard = trio.current_time()
        """Clock time of the latest frame."""
        self.last_words = ""
        """Latest line of its standard error."""

    async def ask(self, body: object, blob: bytes = b"") -> Frame:
        """Send a request and return its reply. Raises WorkerLost."""
        number = next(self._numbers)
        call = self._calls[number] = _Call()
        try:
            await self._outgoing.send(encode(number, body, blob))
            await call.answered.wait()
        except trio.BrokenResourceError:
            raise WorkerLost from None
        finally:
            del self._calls[number]
        if call.reply is None:
            raise WorkerLost
        return call.reply

    def kill(self) -> None:
        """End the worker now."""
        self._process.kill()

    async def run(self, on_ready: Callable[["Connection"], None]) -> None:
        """Move frames until the worker closes its output, then fail the calls that it did not answer."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                nursery.start_soon(self._log_errors)
                await self._read(on_ready)
                nursery.cancel_scope.cancel()
        finally:
            self._to_write.close()
            for call in self._calls.values():
                call.answered.set()

    async def _write(self) -> None:
        assert self._process.stdin is not None
        with self._to_write:
            async for data in self._to_write:
                try:
                    await self._process.stdin.send_all(data)
                except trio.BrokenResourceError:
                    return

    async def _read(self, on_ready: Callable[["Connection"], None]) -> None:
        assert self._process.stdout is not None
        buffer = FrameBuffer()
        async for data in self._process.stdout:
            self.last_heard = trio.current_time()
            try:
                frames = buffer.feed(data)
            except FramingLost:
                self.last_words = "it sent bytes that are no frames"
                self.kill()
                return
            for frame in frames:
                call = self._calls.get(frame.number)
                if call is not None:
                    call.reply = frame
                    call.answered.set()
                elif frame.number == READY:
                    on_ready(self)

    async def _log_errors(self) -> None:
        assert self._process.stderr is not None
        async for data in self._process.stderr:
            text = data.decode(errors="replace").strip()
            self.last_words = text.rpartition("\n")[2]
            logger.warning("embedded store: %s", text)


@contextmanager
def lifeline() -> Iterator[int]:
    """Yield a descriptor for a child; the kernel ends the child when this process dies or leaves the context."""
    read_end, write_end = os.pipe()
    try:
        yield read_end
    finally:
        os.close(read_end)
        os.close(write_end)


@asynccontextmanager
async def start_worker(settings: Settings) -> AsyncIterator[trio.Process]:
    """Start a worker, and on leaving let it close its collections, or kill it after a grace; never leaves one behind.

    Raises OSError if no process can be started.
    """
    with lifeline() as descriptor:
        process = await trio.lowlevel.open_process(
            worker_command("serve", settings._replace(lifeline=descriptor)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[descriptor],
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with trio.move_on_after(CLOSE_GRACE + KILL_GRACE, shield=True):
                await _end(process)


async def _end(process: trio.Process) -> None:
    """End a process: by the end of its input, and if that does not do by a kill."""
    with trio.move_on_after(CLOSE_GRACE):
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            await stream.aclose()
        await process.wait()
    if process.returncode is None:
        logger.warning("embedded store: the worker did not close within %.0f s and is killed", CLOSE_GRACE)
        process.kill()
        await process.wait()


def cause_of_death(returncode: int | None, last_words: str) -> str:
    """Say in a few words why a worker ended."""
    if returncode is None:
        return "it cannot be ended"
    if returncode >= 0:
        return (
            f"it ended with status {returncode}: {last_words}" if last_words else f"it ended with status {returncode}"
        )
    name = signal.Signals(-returncode).name
    hint = "; the disk may be full" if -returncode == signal.SIGBUS else ""
    return f"it was ended by {name}{hint}" + (f": {last_words}" if last_words else "")
