"""The child process of the chunker pool: ``python -m semindex.parsing.worker``.

Owns the process and what is said on its pipes. A frame is a length (u64, little-endian) and a pickle. The worker sends
``READY`` when it can take a request; it answers a :class:`Request` with the frames of :func:`pack` for each file, in
order, as they are done. It ends when its standard input does, when nothing was asked of it for a while, or when it has
grown too large. Imports no event loop, so that workers stay small and start fast.
"""

import os
import pickle
import resource
import select
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from operator import attrgetter
from typing import BinaryIO

from attrs import evolve, frozen

from semindex.model.chunks import Chunk, ChunkedFile, FileProblem, UnchangedFile
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.chunker import chunk_file

Result = ChunkedFile | UnchangedFile | FileProblem

LENGTH = struct.Struct("<Q")
READY = b"READY"

IDLE_SECONDS = 300
"""A worker that nobody needs gives its memory back."""

RETIRE_BYTES = 150 << 20
"""A worker that was once larger than this is replaced: the allocator seldom gives back what a huge tree took."""

DATA_LIMIT_BYTES = 512 << 20
"""No file may make a worker larger than this; the densest that end in time need half of it, some hostile ones would
take gigabytes. Where the limit is met the process dies, as it does of a crash."""

NICENESS = 5
"""Chunking is bulk work: what answers people goes first."""

ROWS_PER_FRAME = 1000
"""The receiver unpacks a frame in one go and must not hold the interpreter for long: some two milliseconds."""


@frozen
class Request:
    """Files for a worker to chunk."""

    root: str
    paths: tuple[str, ...]
    profile: ChunkingProfile
    known: dict[str, str]
    """Path → hash of those that need not be chunked if they still have it."""
    parse: bool
    """Whether to use grammars at all."""
    file_cpu_seconds: float
    """The process ends itself when one file has taken so much CPU time."""


_as_row = attrgetter("text", "start_line", "end_line", "length", "segment_hash", "type", "identifier")


def pack(result: Result) -> Iterator[bytes]:
    """Return the frames of a result: it without its chunks, and their number; then the chunks as plain tuples.

    Tuples cost a tenth of pickled values.
    """
    rows = []
    if isinstance(result, ChunkedFile):
        rows = [_as_row(chunk) for chunk in result.chunks]
        result = evolve(result, chunks=())
    yield pickle.dumps((result, len(rows)), pickle.HIGHEST_PROTOCOL)
    for first in range(0, len(rows), ROWS_PER_FRAME):
        yield pickle.dumps(rows[first : first + ROWS_PER_FRAME], pickle.HIGHEST_PROTOCOL)


class Unpacker:
    """Puts one result together from its frames."""

    def __init__(self, frame: bytes) -> None:
        self._result: Result
        self._missing: int
        self._result, self._missing = pickle.loads(frame)
        self._chunks: list[Chunk] = []

    @property
    def complete(self) -> bool:
        """Say whether there are no more frames to add."""
        return self._missing == 0

    def add(self, frame: bytes) -> None:
        """Add the next frame."""
        rows = pickle.loads(frame)
        self._chunks += [Chunk(*row) for row in rows]
        self._missing -= len(rows)

    def result(self) -> Result:
        """Return the result, complete."""
        return (
            evolve(self._result, chunks=tuple(self._chunks)) if isinstance(self._result, ChunkedFile) else self._result
        )


def chunk_one(request: Request, path: str) -> Result:
    """Chunk one file of a request. The process does not survive a file that takes too long."""
    # The kernel sends the signal, and nothing handles it: so it ends native code that never returns as well, and an
    # orphan in such a state.
    signal.setitimer(signal.ITIMER_PROF, request.file_cpu_seconds)
    try:
        return chunk_file(request.root, path, request.profile, request.known.get(path), parse=request.parse)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until there are no more, or it is time to go."""
    while _peak_bytes() < RETIRE_BYTES:
        _write_frame(replies, READY)
        if not select.select([requests], [], [], IDLE_SECONDS)[0]:
            return
        length = requests.read(LENGTH.size)
        if len(length) < LENGTH.size:
            return
        request: Request = pickle.loads(requests.read(*LENGTH.unpack(length)))
        for path in request.paths:
            for frame in pack(chunk_one(request, path)):
                _write_frame(replies, frame)


def _write_frame(replies: BinaryIO, frame: bytes) -> None:
    replies.write(LENGTH.pack(len(frame)) + frame)
    replies.flush()


def _peak_bytes() -> int:
    """Return the most memory that this program has held, 0 where the system does not tell."""
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # What getrusage says here includes the parent's.
    with suppress(OSError), open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def _limit(kind: int, amount: int) -> None:
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (amount if hard == resource.RLIM_INFINITY else min(amount, hard), hard))


def main() -> None:
    """Run a worker on standard input and output."""
    os.nice(NICENESS)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_DATA, DATA_LIMIT_BYTES)
    # Whatever foreign code may print must not get between the frames.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
