"""How the store and the embedded engine's worker talk: frames over the worker's standard input and output.

A frame is a prefix (u64 number of the call, u8 whether more frames of the same reply follow, u32 length of the body,
u32 length of the blob, little-endian), a JSON body and a blob. A request's body is ``{"operation": …, "collection": …,
"arguments": {…}, "floats": n}``; the first n bytes of its blob are float32 vectors (the argument ``vectors``), the rest
is text separated by NUL (the argument ``names``), since encoding a hundred thousand paths as JSON would hold the event
loop for too long. A reply has the number of its request, one of ``{"result": …}`` and ``{"error": kind, "message":
sentence}``, and vectors as its blob; a long list comes in several frames. The first frame of a worker has the number 0
and says that it is ready. Imports the standard library only, for the sake of the worker's start-up time.
"""

import json
import struct
from enum import StrEnum
from typing import IO, Any, NamedTuple

READY = 0
"""Number of the frame that a worker sends once the engine is loaded."""

PREFIX = struct.Struct("<Q?II")

FRAME_LIMIT = 256 * 1024 * 1024
"""Bytes of a body or a blob above which the lengths can only be garbage."""


class ErrorKind(StrEnum):
    """Why the worker refused an operation."""

    MISSING = "missing"
    """There is no such collection."""
    DAMAGED = "damaged"
    """There was one, but it could not be loaded and was set aside."""
    REJECTED = "rejected"
    """The request, or the state of the collection, makes it impossible."""
    UNAVAILABLE = "unavailable"
    """It may work later."""


class Settings(NamedTuple):
    """What a worker is told at its start, as one JSON argument."""

    directory: str
    """Holds one directory per collection."""
    engine: str
    """Version of the installed engine."""
    indexed_keys: list[str]
    """Payload keys that every collection has a keyword index for."""
    hnsw_m: int
    hnsw_ef_construct: int

    def to_json(self) -> str:
        """Return the argument."""
        return json.dumps(self._asdict())

    @classmethod
    def from_json(cls, argument: str) -> "Settings":
        """Read the argument."""
        return cls(**json.loads(argument))


class Frame(NamedTuple):
    """One message; the body is left undecoded, so that a reply nobody waits for costs nothing."""

    number: int
    more: bool
    body: bytes
    blob: bytes

    def json(self) -> dict[str, Any]:
        """Decode the body."""
        decoded: dict[str, Any] = json.loads(self.body)
        return decoded


class FramingLost(Exception):
    """The bytes received cannot be frames."""


def encode(number: int, body: object, blob: bytes = b"", *, more: bool = False) -> bytes:
    """Return the bytes of a frame."""
    encoded = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return PREFIX.pack(number, more, len(encoded), len(blob)) + encoded + blob


def read_frame(stream: IO[bytes]) -> Frame | None:
    """Read one frame; None at the end of the stream, even if it ends within a frame."""
    prefix = stream.read(PREFIX.size)
    if len(prefix) < PREFIX.size:
        return None
    number, more, body, blob = PREFIX.unpack(prefix)
    frame = Frame(number, more, stream.read(body), stream.read(blob))
    return frame if len(frame.body) == body and len(frame.blob) == blob else None


class FrameBuffer:
    """Cuts a stream that arrives in pieces into frames."""

    def __init__(self) -> None:
        """Begin at the start of a frame."""
        self._data = bytearray()

    def feed(self, data: bytes | bytearray) -> list[Frame]:
        """Take in a piece and return the frames that it completes. Raises FramingLost."""
        self._data += data
        frames = []
        while len(self._data) >= PREFIX.size:
            number, more, body, blob = PREFIX.unpack_from(self._data)
            if max(body, blob) > FRAME_LIMIT:
                raise FramingLost
            end = PREFIX.size + body + blob
            if len(self._data) < end:
                break
            middle = PREFIX.size + body
            frames.append(Frame(number, more, bytes(self._data[PREFIX.size : middle]), bytes(self._data[middle:end])))
            del self._data[:end]
        return frames
