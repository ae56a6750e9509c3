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
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import count

import trio
from attrs import define, field

from semindex.shielding import shielded
from semindex.stores.edge_protocol import READY, Frame, FrameBuffer, FramingLost, Settings, encode

logger = logging.getLogger(__name__)

START_DEADLINE = 30.0
"""Seconds that a worker has to load the engine; it takes a tenth of one."""

CLOSE_GRACE = 10.0
"""Seconds that a worker has to close its collections after its input ended; eight large ones take about two."""

KILL_GRACE = 5.0
"""Seconds to wait for a killed process; one that the kernel cannot end by then is left to it."""

LAST_WORDS_GRACE = 1.0
"""Seconds to wait for the rest of the standard error of a worker whose output has ended."""


class WorkerLost(Exception):
    """The worker died before it answered."""


@define
class _Call:
    over: trio.Event = field(factory=trio.Event)
    reply: list[Frame] = field(factory=list)


class Connection:
    """The calls under way in one worker."""

    def __init__(self, process: trio.Process, announce: Callable[["Connection | None"], None]) -> None:
        """Begin with no call. ``announce`` is told of this connection once it can be used, and None once it cannot."""
        self._process = process
        self._announce = announce
        self._numbers = count(READY + 1)
        self._calls: dict[int, _Call] = {}
        self._send, self._receive = trio.open_memory_channel[bytes](0)
        self._ready = trio.Event()
        self._last_words = ""
        self.last_heard = trio.current_time()
        """Clock time at which the worker last sent anything."""

    @property
    def pid(self) -> int:
        """Return the worker's process id."""
        return self._process.pid

    async def ask(self, body: object, blob: bytes) -> list[Frame]:
        """Send a request and return the frames of its reply. Raises WorkerLost."""
        number = next(self._numbers)
        call = self._calls[number] = _Call()
        try:
            await self._send.send(encode(number, body, blob))
            await call.over.wait()
        except trio.BrokenResourceError:
            raise WorkerLost from None
        finally:
            del self._calls[number]
        if not call.reply or call.reply[-1].more:
            raise WorkerLost
        return call.reply

    async def run(self) -> None:
        """Move frames until the worker closes its output; then fail the calls that it has not answered."""
        with self._receive:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                nursery.start_soon(self._expect_ready)
                async with trio.open_nursery() as listening:
                    listening.start_soon(self._log_errors)
                    try:
                        await self._read()
                    finally:
                        self._lose()
                    listening.cancel_scope.deadline = trio.current_time() + LAST_WORDS_GRACE
                nursery.cancel_scope.cancel()

    def kill(self, verdict: str) -> None:
        """End the worker now; ``verdict`` is the reason that is reported."""
        self._last_words = verdict
        self._process.kill()

    def cause_of_death(self) -> str:
        """Say in a few words why the worker ended."""
        code = self._process.returncode
        if code is None:
            cause = "it cannot be ended"
        elif code >= 0:
            cause = f"it ended with status {code}"
        else:
            cause = f"it was ended by signal {-code} ({signal.strsignal(-code)})"
        if code == -signal.SIGBUS:
            cause += " (the disk may be full)"
        return f"{cause}: {self._last_words}" if self._last_words else cause

    def _lose(self) -> None:
        """Give up: new calls go elsewhere from now on, those under way fail."""
        self._announce(None)
        self._receive.close()
        for call in self._calls.values():
            call.over.set()

    async def _expect_ready(self) -> None:
        with trio.move_on_after(START_DEADLINE):
            await self._ready.wait()
            return
        self.kill(f"it was not ready after {START_DEADLINE:g} s")

    async def _write(self) -> None:
        assert self._process.stdin is not None
        try:
            async for data in self._receive:
                await self._process.stdin.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._lose()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        buffer = FrameBuffer()
        async for data in self._process.stdout:
            self.last_heard = trio.current_time()
            try:
                frames = buffer.feed(data)
            except FramingLost:
                self.kill("it sent bytes that are no frames")
                return
            for frame in frames:
                self._settle(frame)

    def _settle(self, frame: Frame) -> None:
        call = self._calls.get(frame.number)
        if call is not None:
            call.reply.append(frame)
            if not frame.more:
                call.over.set()
        elif frame.number == READY:
            self._ready.set()
            self._announce(self)

    async def _log_errors(self) -> None:
        assert self._process.stderr is not None
        async for data in self._process.stderr:
            text = data.decode(errors="replace").strip()
            if text:
                self._last_words = text.rpartition("\n")[2]
                logger.warning("embedded store: %s", text)


def worker_command(mode: str, lifeline: int, settings: Settings, *arguments: str) -> list[str]:
    """Return the command of a worker; ``-P`` keeps modules in the user's directory from shadowing ours."""
    module = ["-P", "-m", "semindex.stores.edge_worker"]
    return [sys.executable, *module, mode, str(lifeline), settings.to_json(), *arguments]


@contextmanager
def open_lifeline() -> Iterator[int]:
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
    with open_lifeline() as lifeline:
        process = await trio.lowlevel.open_process(
            worker_command("serve", lifeline, settings),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[lifeline],
            start_new_session=True,
        )
        async with AsyncExitStack() as afterwards:
            afterwards.push_async_callback(_end, process)
            yield process


async def _end(process: trio.Process) -> None:
    with shielded(CLOSE_GRACE + KILL_GRACE, "ending a worker of the embedded store"):
        await _close_or_kill(process)


async def _close_or_kill(process: trio.Process) -> None:
    """End a process: by the end of its input, and if that does not do by a kill. Log what it still has to say."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with trio.move_on_after(CLOSE_GRACE):
        await process.stdin.aclose()
        await process.stdout.aclose()
        async for data in process.stderr:
            logger.warning("embedded store: %s", data.decode(errors="replace").strip())
        await process.wait()
    if process.returncode is None:
        logger.warning("embedded store: the worker did not close within %.0f s and is killed", CLOSE_GRACE)
        process.kill()
        await process.wait()
    await process.stderr.aclose()
