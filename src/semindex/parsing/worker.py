"""What a chunker process does: chunk a batch of files, and pack the results for the way back.

Imports neither trio nor anyio, so that workers stay small.
"""

import pickle
import signal
from operator import attrgetter

from attrs import evolve, frozen

from semindex.model.chunks import Chunk, ChunkedFile, FileProblem, UnchangedFile
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.chunker import chunk_file

Result = ChunkedFile | UnchangedFile | FileProblem


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
    """The process ends itself when a file has taken so much CPU time."""


def chunk_batch(request: Request) -> list[bytes]:
    """Chunk files one after another; return one packed result for each."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the parent decides what it means
    return [pack(_chunk_one(request, path)) for path in request.paths]


def _chunk_one(request: Request, path: str) -> Result:
    # The kernel's timer, whose signal nothing handles, ends the process even in native code that never returns; so
    # that an orphan in such a state ends too.
    signal.setitimer(signal.ITIMER_PROF, request.file_cpu_seconds)
    try:
        return chunk_file(request.root, path, request.profile, request.known.get(path), parse=request.parse)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


_as_row = attrgetter("text", "start_line", "end_line", "length", "segment_hash", "type", "identifier")


def pack(result: Result) -> bytes:
    """Return a result as bytes; chunks go as plain tuples, which cost a tenth of pickled values."""
    rows = None
    if isinstance(result, ChunkedFile):
        rows = [_as_row(chunk) for chunk in result.chunks]
        result = evolve(result, chunks=())
    return pickle.dumps((result, rows), pickle.HIGHEST_PROTOCOL)


def unpack(data: bytes) -> Result:
    """Return what :func:`pack` packed."""
    result: Result
    result, rows = pickle.loads(data)
    return evolve(result, chunks=tuple(Chunk(*row) for row in rows)) if isinstance(result, ChunkedFile) else result
