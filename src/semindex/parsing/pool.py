"""The chunker pool: worker processes that read and chunk files (implements :class:`semindex.ports.ChunkerPool`).

Parsing holds the interpreter's lock and runs foreign native code on whatever a tree holds, so it happens in processes
that can be lost: a parser that hangs, a crash or a kill from outside costs one file its syntax and nothing else. Owns
the workers and what a loss means; what a worker does is :mod:`semindex.parsing.worker`'s.
"""

import errno
import logging
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Self

import trio
from attrs import evolve

from semindex.model.chunks import ChunkedFile, FileProblem, ProblemKind
from semindex.model.errors import ChunkingFailed
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.protocol import LENGTH, READY, Probe, Request, Result, Unpacker
from semindex.shielding import shielded

FILE_CPU_SECONDS = 10.0
"""CPU time for one file, after which its parser counts as hung; ordinary files of 1 MiB need less than one second.
Unlike time on the wall it does not run out because the machine is busy."""

FILE_WALL_SECONDS = 60.0
"""Time for one file whatever its worker is doing, waiting for a network disk included."""

START_SECONDS = 60.0
"""Time for a worker to start, on a machine that does a lot else."""

START_ATTEMPTS = 3
"""A worker that could not be started so many times in a row cannot be started at all."""

END_SECONDS = 5.0
"""A killed process is gone at once unless the kernel keeps it in a system call; that is not waited for any longer."""

_LOG = logging.getLogger(__name__)


class WorkerLost(Exception):
    """A worker ended, or had to be ended, while it had work; the message says how, as what comes after a subject."""


class WorkerHung(WorkerLost):
    """It took too long over a file: that file is to blame, and would take too long again."""


class _Worker:
    """One process; serves one caller at a time."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._received = bytearray()

    @classmethod
    async def start(cls) -> Self:
        """Start a process and wait until it is ready. Raises WorkerLost or OSError."""
        # -P: no module may come from the current directory. A session of its own: Ctrl-C is for the service alone.
        command = [sys.executable, "-P", "-m", "semindex.parsing.worker"]
        worker = cls(
            await trio.lowlevel.open_process(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
            )
        )
        async with AsyncExitStack() as unless_ready:
            unless_ready.push_async_callback(worker.end)
            await worker.ready(START_SECONDS)
            unless_ready.pop_all()
        return worker

    @property
    def alive(self) -> bool:
        """Say whether the process has not ended, as an idle one does after a while."""
        return self._process.poll() is None

    async def ready(self, seconds: float) -> None:
        """Wait until it takes a request. Raises WorkerLost."""
        if await self._frame(seconds) != READY:
            raise WorkerLost("answered something that was not asked")

    async def send(self, request: Request | Probe) -> None:
        """Give it a request. Raises WorkerLost."""
        frame = pickle.dumps(request, pickle.HIGHEST_PROTOCOL)
        assert self._process.stdin is not None
        try:
            with trio.fail_after(FILE_WALL_SECONDS):
                await self._process.stdin.send_all(LENGTH.pack(len(frame)) + frame)
        except (trio.BrokenResourceError, trio.TooSlowError) as error:
            raise WorkerLost("took no request") from error

    async def receive(self) -> Result:
        """Return the result for the next file of the request. Raises WorkerLost."""
        unpacker = Unpacker(await self._frame(FILE_WALL_SECONDS))
        while not unpacker.complete:
            # To unpack a frame takes a few milliseconds, and many may have arrived already.
            await trio.lowlevel.checkpoint()
            unpacker.add(await self._frame(FILE_WALL_SECONDS))
        return unpacker.result()

    async def probe(self) -> dict[str, str]:
        """Return name → reason of the declared grammars that do not load. Raises WorkerLost."""
        await self.send(Probe())
        problems: dict[str, str] = pickle.loads(await self._frame(FILE_WALL_SECONDS))
        return problems

    async def end(self) -> None:
        """End the process, whatever it is doing."""
        self._process.kill()
        with shielded(END_SECONDS, "ending a chunker process"):
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    await stream.aclose()
            await self._process.wait()

    async def _frame(self, seconds: float) -> bytes:
        try:
            with trio.fail_after(seconds):
                (length,) = LENGTH.unpack(await self._exactly(LENGTH.size))
                return await self._exactly(length)
        except trio.TooSlowError as error:
            raise WorkerHung(f"did not answer within {seconds:g} s") from error

    async def _exactly(self, size: int) -> bytes:
        assert self._process.stdout is not None
        while len(self._received) < size:
            received = await self._process.stdout.receive_some()
            if not received:
                raise _loss(await self._process.wait())
            self._received += received
        data = bytes(self._received[:size])
        del self._received[:size]
        return data


class ProcessChunkerPool:
    """Chunks files in worker processes; see :func:`open_chunker_pool`."""

    def __init__(self, workers: int, file_cpu_seconds: float) -> None:
        self._limiter = trio.CapacityLimiter(workers)
        self._idle: list[_Worker] = []
        self._file_cpu_seconds = file_cpu_seconds
        self._warned: set[str] = set()

    async def chunk(
        self, root: str, paths: Sequence[str], profile: ChunkingProfile, known: Mapping[str, str]
    ) -> list[Result]:
        """See :class:`semindex.ports.ChunkerPool`. One call keeps one worker busy: give it a few files at a time."""
        results: list[Result] = []
        while len(results) < len(paths):
            rest = tuple(paths[len(results) :])
            relevant = {path: known[path] for path in rest if path in known}
            request = Request(root, rest, profile, relevant, True, self._file_cpu_seconds)
            try:
                await self._ask(request, results)
            except WorkerLost as loss:
                suspect = evolve(request, paths=(paths[len(results)],))
                results.append(await self._chunk_suspect(suspect, loss))
        return results

    async def probe_grammars(self) -> dict[str, str]:
        """Return name → reason of the declared grammars that do not load; loads them all, in a process of its own.

        Raises ChunkingFailed if that process is lost.
        """
        async with self._limiter:
            worker = await self._worker(fresh=True)
            async with AsyncExitStack() as afterwards:
                afterwards.push_async_callback(worker.end)
                try:
                    return await worker.probe()
                except WorkerLost as loss:
                    raise ChunkingFailed(f"The process that tried to load all grammars {loss}.") from loss

    async def close(self) -> None:
        """End the idle workers; there must be no calls any more."""
        while self._idle:
            await self._idle.pop().end()

    async def _chunk_suspect(self, request: Request, loss: WorkerLost) -> Result:
        """Chunk the one file that a worker was lost over: as usual, else by lines, else not at all."""
        results: list[Result] = []
        if not isinstance(loss, WorkerHung):
            # The file may be to blame, or whoever killed the worker: see which.
            try:
                await self._ask(request, results, fresh=True)
                return results[0]
            except WorkerLost as again:
                loss = again
        path = request.paths[0]
        warning = f"The file was chunked by its lines: the process that parsed it {loss}."
        _LOG.warning("%s: %s", os.path.join(request.root, path), warning)
        try:
            by_lines = evolve(request, parse=False, file_cpu_seconds=FILE_CPU_SECONDS)
            await self._ask(by_lines, results, fresh=True)
        except WorkerLost as again:
            return FileProblem(path, ProblemKind.FAILED, f"Each process that read the file was lost; the last {again}.")
        (result,) = results
        return evolve(result, warning=warning) if isinstance(result, ChunkedFile) else result

    async def _ask(self, request: Request, results: list[Result], *, fresh: bool = False) -> None:
        """Add the results of a request one by one. Raises WorkerLost after those that came."""
        async with self._limiter:
            worker = await self._worker(fresh)
            async with AsyncExitStack() as unless_ready:
                unless_ready.push_async_callback(worker.end)
                await worker.send(request)
                for _ in request.paths:
                    results.append(await worker.receive())
                    self._log_once(results[-1])
                with suppress(WorkerLost):  # as one is that has grown too large; nothing is missing
                    await worker.ready(FILE_WALL_SECONDS)
                    unless_ready.pop_all()
                    self._idle.append(worker)

    async def _worker(self, fresh: bool) -> _Worker:
        """Return an idle worker, or a new one (if ``fresh``, in the idle ones' place). Raises ChunkingFailed."""
        while self._idle:
            worker = self._idle.pop()
            if worker.alive and not fresh:
                return worker
            await worker.end()
        problem = ""
        for _ in range(START_ATTEMPTS):
            try:
                return await _Worker.start()
            except OSError as error:
                problem = f"could not be started: {os.strerror(error.errno or errno.EIO)}"
            except WorkerLost as error:
                problem = str(error)
        raise ChunkingFailed(f"Each new chunker process {problem}; see whether memory or processes are short.")

    def _log_once(self, result: Result) -> None:
        """Log what is wrong with a language rather than with a file once, not for every file of it."""
        if isinstance(result, ChunkedFile) and result.warning and result.warning not in self._warned:
            self._warned.add(result.warning)
            _LOG.warning("%s: %s", result.path, result.warning)


def _loss(returncode: int) -> WorkerLost:
    """Return what the end of a process means."""
    if returncode == -signal.SIGPROF:
        return WorkerHung("did not end in time")
    if returncode < 0:
        return WorkerLost(f"was ended by {signal.Signals(-returncode).name}")
    return WorkerLost(f"ended with status {returncode}")


@asynccontextmanager
async def open_chunker_pool(
    workers: int, *, file_cpu_seconds: float = FILE_CPU_SECONDS
) -> AsyncIterator[ProcessChunkerPool]:
    """Open a pool of at most so many processes, each started when it is first needed.

    A file whose parser takes more CPU time than ``file_cpu_seconds`` is chunked by its lines.
    """
    async with AsyncExitStack() as stack:
        pool = ProcessChunkerPool(workers, file_cpu_seconds)
        stack.push_async_callback(pool.close)
        yield pool
