"""The child process of the chunker pool: ``python -m semindex.parsing.worker``.

Owns the process: its limits, its pipes, its end. It ends when its standard input does, when nothing was asked of it
for a while, or when it has grown too large. Imports no event loop, so that workers stay small and start fast.
"""

import os
import pickle
import resource
import select
import signal
import sys
from contextlib import suppress
from typing import BinaryIO

from semindex.parsing.chunker import chunk_file
from semindex.parsing.grammars import probe
from semindex.parsing.protocol import LENGTH, READY, Probe, Request, Result, pack

IDLE_SECONDS = 300
"""A worker that nobody needs gives its memory back."""

RETIRE_BYTES = 150 << 20
"""A worker that was once larger than this is replaced: the allocator seldom gives back what a huge tree took."""

DATA_LIMIT_BYTES = 512 << 20
"""No file may make a worker larger than this; the densest that end in time need half of it, some hostile ones would
take gigabytes. Where the limit is met the process dies, as it does of a crash."""

NICENESS = 5
"""Chunking is bulk work: what answers people goes first."""


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
        request: Request | Probe = pickle.loads(requests.read(*LENGTH.unpack(length)))
        if isinstance(request, Probe):
            _write_frame(replies, pickle.dumps(probe()))
            continue
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
    try:
        serve(sys.stdin.buffer, replies)
    except BrokenPipeError:
        # The service is gone. Nobody wants to hear of it, not from the interpreter's own end either.
        os._exit(0)


if __name__ == "__main__":
    main()
