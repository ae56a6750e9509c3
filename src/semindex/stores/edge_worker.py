"""The child process of the embedded vector store: ``python -m semindex.stores.edge_worker``.

Owns the process, its arguments, signals and pipes. One thread answers one request after another until its standard
input ends. With ``optimize`` as its first argument it builds the search structures of one collection instead, and
exits.
"""

import contextlib
import fcntl
import os
import select
import signal
import sys
from collections.abc import Iterator
from functools import partial
from typing import IO, Any

from semindex.stores.edge_engine import WithVectors
from semindex.stores.edge_protocol import READY, ErrorKind, Frame, Settings, encode, read_frame
from semindex.stores.edge_shards import Refused, Shards, Translated, may_pass

OPTIMIZER_NICENESS = 10

ROWS_PER_FRAME = 500
"""Rows of a result in one frame: with their payloads some 600 KB, which take the event loop 5 ms to decode."""

STORE_OPERATIONS = frozenset({"create", "close", "drop", "names"})
"""Methods of :class:`~semindex.stores.edge_shards.Shards` that a request may name; all but the last are given the collection."""

SHARD_OPERATIONS = frozenset(
    {"dimension", "upsert", "delete", "query", "vectors", "payload", "page", "tally", "count", "gauge", "flush"}
)
"""Methods of :class:`~semindex.stores.edge_engine.Shard` that a request may name."""


def answer(shards: Shards, frame: Frame) -> Iterator[bytes]:
    """Do what a request asks for and yield the frames of the reply."""
    request = frame.json()
    try:
        with Translated(partial(_failure, shards, request)):
            outcome = _perform(shards, request, frame.blob)
    except Refused as refusal:
        yield encode(frame.number, {"error": refusal.kind, "message": str(refusal)})
        return
    vectors = b""
    if isinstance(outcome, WithVectors):
        outcome, vectors = outcome
    while isinstance(outcome, list) and len(outcome) > ROWS_PER_FRAME:
        yield encode(frame.number, {"result": outcome[:ROWS_PER_FRAME]}, more=True)
        outcome = outcome[ROWS_PER_FRAME:]
    yield encode(frame.number, {"result": outcome}, vectors)


def _perform(shards: Shards, request: dict[str, Any], blob: bytes) -> object:
    operation, collection, arguments = request["operation"], request["collection"], request["arguments"]
    vectors, names = blob[: request["floats"]], blob[request["floats"] :]
    if vectors:
        arguments["vectors"] = memoryview(vectors).cast("f")
    if names:
        arguments["names"] = names.decode().split("\0")
    if operation in SHARD_OPERATIONS:
        return getattr(shards.get(collection), operation)(**arguments)
    if operation in STORE_OPERATIONS:
        return getattr(shards, operation)(*([collection] if collection else []), **arguments)
    raise Refused(ErrorKind.REJECTED, f"There is no operation {operation}.")


def _failure(shards: Shards, request: dict[str, Any], error: BaseException) -> Refused:
    """Translate an error. After trouble with its files, or a panic, a shard is loaded afresh when next needed."""
    passing = may_pass(error)
    if passing or not isinstance(error, Exception):
        with contextlib.suppress(BaseException):
            shards.close(request["collection"])
    message = f"The embedded vector store failed in {request['operation']}: {error}"
    return Refused(ErrorKind.UNAVAILABLE if passing else ErrorKind.REJECTED, message)


def die_with(lifeline: int) -> None:
    """Have the kernel end this process when the other end of a pipe closes, even within a call of the engine.

    ``PR_SET_PDEATHSIG`` would not do: it follows the thread that started the process, and Trio's threads come and go.
    Where the signal is ignored by default (macOS), the end of the standard input has to do.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    watch = select.poll()
    watch.register(lifeline, 0)
    if watch.poll(0):
        sys.exit("the service ended before its worker began")


def serve(settings: Settings, requests: IO[bytes], replies: int) -> None:
    """Answer requests until there are no more, then close every collection. ``replies`` is a descriptor."""
    shards = Shards(settings)
    with contextlib.suppress(BrokenPipeError):
        _send(replies, encode(READY, {"result": None}))
        while (request := read_frame(requests)) is not None:
            for frame in answer(shards, request):
                _send(replies, frame)
    shards.close_all()


def _send(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def optimize(settings: Settings, collection: str) -> None:
    """Build the search structures of one collection."""
    os.nice(OPTIMIZER_NICENESS)
    shards = Shards(settings)
    shards.get(collection).optimize()
    shards.close_all()


def main() -> None:
    """Run as ``edge_worker serve LIFELINE SETTINGS`` or ``edge_worker optimize LIFELINE SETTINGS COLLECTION``.

    A worker that serves ends with its input: signals for the whole service must not cut short what it drains.
    """
    mode, lifeline, settings = sys.argv[1], int(sys.argv[2]), Settings.from_json(sys.argv[3])
    die_with(lifeline)
    if mode == "optimize":
        optimize(settings, sys.argv[4])
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    replies = os.dup(1)
    os.dup2(2, 1)
    serve(settings, sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
