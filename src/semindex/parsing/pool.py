"""The chunker pool: worker processes that read and chunk files (implements :class:`semindex.ports.ChunkerPool`).

Parsing holds the interpreter's lock and runs foreign native code on whatever a tree holds, so it happens in processes
that can be lost: a parser that hangs, a crash, a kill from outside costs one file its syntax and nothing else. The
workers are anyio's; they end with the run, or when their standard input closes.
"""

import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar, TypeVarTuple

import anyio
import trio
from anyio import to_process
from attrs import evolve

from semindex.model.chunks import ChunkedFile, FileProblem, ProblemKind
from semindex.model.errors import ChunkingFailed
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.worker import Request, Result, chunk_batch, unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

FILE_CPU_SECONDS = 10.0
"""CPU time for one file, after which its parser counts as hung. Files of 1 MiB need about one second; CPU time, unlike
time on the wall, does not run out because the machine is busy."""

FILE_WALL_SECONDS = 60.0
"""Time for one file whatever its worker is doing, waiting for a network disk or for its turn included."""

START_WALL_SECONDS = 60.0
"""Time for a worker to start, on a machine that does a lot else."""

START_ATTEMPTS = 3
"""A worker that cannot be started so many times in a row cannot be started at all."""

_LOG = logging.getLogger(__name__)


class WorkerLost(Exception):
    """A worker died, or was killed, while it had work."""


class ProcessChunkerPool:
    """Chunks files in worker processes; see :func:`open_chunker_pool`."""

    def __init__(self, workers: int, file_cpu_seconds: float) -> None:
        self._limiter = trio.CapacityLimiter(workers)
        self._processes = anyio.CapacityLimiter(workers)
        self._file_cpu_seconds = file_cpu_seconds
        self._warned: set[str] = set()

    async def chunk(
        self, root: str, paths: Sequence[str], profile: ChunkingProfile, known: Mapping[str, str]
    ) -> list[Result]:
        """See :class:`semindex.ports.ChunkerPool`; one call is one round trip, so give it a few files at a time."""
        try:
            results = await self._ask(root, paths, profile, known)
        except WorkerLost:
            # One of the files is to blame; the others must not pay for it.
            results = [await self._chunk_alone(root, path, profile, known) for path in paths]
        for result in results:
            self._log_once(result)
        return results

    async def _chunk_alone(self, root: str, path: str, profile: ChunkingProfile, known: Mapping[str, str]) -> Result:
        try:
            return (await self._ask(root, [path], profile, known))[0]
        except WorkerLost:
            warning = f"The parser crashed, or did not end within {self._file_cpu_seconds:g} s; the file was chunked by its lines."
            _LOG.warning("%s: %s", os.path.join(root, path), warning)
        try:
            (result,) = await self._ask(root, [path], profile, known, parse=False)
        except WorkerLost:
            await self._prove_startable()
            return FileProblem(path, ProblemKind.FAILED, "Every worker process that read the file was lost.")
        return evolve(result, warning=warning) if isinstance(result, ChunkedFile) else result

    async def _ask(
        self,
        root: str,
        paths: Sequence[str],
        profile: ChunkingProfile,
        known: Mapping[str, str],
        *,
        parse: bool = True,
    ) -> list[Result]:
        relevant = {path: known[path] for path in paths if path in known}
        request = Request(root, tuple(paths), profile, relevant, parse, self._file_cpu_seconds)
        packed = await self._run(FILE_WALL_SECONDS * len(paths), chunk_batch, request)
        results = []
        for one in packed:
            results.append(unpack(one))
            # Each file's chunks are a few milliseconds' work; others get their turn in between.
            await trio.lowlevel.checkpoint()
        return results

    async def _prove_startable(self) -> None:
        """Tell a file that no worker survives from workers that nothing survives. Raises ChunkingFailed."""
        for _ in range(START_ATTEMPTS):
            try:
                await self._run(0, os.getpid)
            except WorkerLost:
                continue
            return
        raise ChunkingFailed("Worker processes die as soon as they start; see whether memory or processes are short.")

    async def _run(self, wall_seconds: float, function: Callable[[*Ts], T], *args: *Ts) -> T:
        """Run a function in a worker. Raises WorkerLost, and ChunkingFailed if none can be started."""
        problem = ""
        for _ in range(START_ATTEMPTS):
            try:
                # Waiting for a free worker is not part of the time that it has.
                async with self._limiter:
                    with trio.fail_after(START_WALL_SECONDS + wall_seconds):
                        return await to_process.run_sync(function, *args, cancellable=True, limiter=self._processes)
            except (anyio.BrokenWorkerProcess, trio.TooSlowError) as error:
                raise WorkerLost from error
            except OSError as error:
                problem = os.strerror(error.errno) if error.errno else str(error)
        raise ChunkingFailed(
            f"No worker process can be started ({problem}); see whether memory or processes are short."
        )

    def _log_once(self, result: Result) -> None:
        """Log what is wrong with a language rather than with a file: once, not for every file of it."""
        if isinstance(result, ChunkedFile) and result.warning and result.warning not in self._warned:
            self._warned.add(result.warning)
            _LOG.warning("%s: %s", result.path, result.warning)


@asynccontextmanager
async def open_chunker_pool(
    workers: int, *, file_cpu_seconds: float = FILE_CPU_SECONDS
) -> AsyncIterator[ProcessChunkerPool]:
    """Offer a pool of at most so many processes, started when they are needed; they end with the run."""
    yield ProcessChunkerPool(workers, file_cpu_seconds)
