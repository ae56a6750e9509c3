"""How the chunker pool and its workers talk: frames over the worker's standard input and output.

A frame is a length (u64, little-endian) and a pickle. The worker sends ``READY`` when it can take a request; it answers
a :class:`Request` with the frames of :func:`pack` for each file, in order, as they are done, and a :class:`Probe` with
one frame. Imports no grammar, for the sake of the process that asks.
"""

import pickle
import struct
from collections.abc import Iterator
from operator import attrgetter

from attrs import evolve, frozen

from semindex.model.chunks import Chunk, ChunkedFile, FileProblem, UnchangedFile
from semindex.model.profiles import ChunkingProfile

Result = ChunkedFile | UnchangedFile | FileProblem

LENGTH = struct.Struct("<Q")
READY = b"READY"

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


@frozen
class Probe:
    """Asks which declared grammars do not load; answered with one frame, name → reason."""


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
