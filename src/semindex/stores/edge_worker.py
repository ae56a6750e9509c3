"""The child process of the embedded vector store: ``python -m semindex.stores.edge_worker``.

Owns the process, its arguments, signals and pipes. One thread answers one request after another until its standard
input ends. With ``copy`` or ``optimize`` as its first argument it copies one closed collection instead, or builds the
search structures of such a copy, and exits.
"""

import contextlib
import fcntl
import os
import select
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

from semindex.stores import edge_files
from semindex.stores.edge_engine import Shard, WithVectors
from semindex.stores.edge_protocol import READY, ErrorKind, Frame, Settings, encode, read_frame
from semindex.stores.edge_shards import Refused, Shards, Translated, may_pass

OPTIMIZER_NICENESS = 10

ROWS_PER_FRAME = 500
"""Rows of a result in one frame: with their payloads some 600 KB, which take the event loop 5 ms to decode."""

STORE_OPERATIONS = frozenset({"create", "close", "drop", "replace", "abandon", "names"})
"""Methods of :class:`~semindex.stores.edge_shards.Shards` that a request may name; all but the last on a collection."""

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


def copy(settings: Settings, collection: str) -> None:
    """Copy a collection that nobody has open."""
    directory = Path(settings.directory, collection)
    record = edge_files.read_record(directory)
    if record is None:
        sys.exit(f"the collection {collection} has no record")
    edge_files.require_room_for_copy(directory)
    edge_files.begin(edge_files.replacement(directory), record._replace(ready=False))
    edge_files.copy(directory, edge_files.replacement(directory))


def optimize(settings: Settings, collection: str) -> None:
    """Build the search structures of the copy of a collection, and print how many points it holds."""
    os.nice(OPTIMIZER_NICENESS)
    copied = edge_files.replacement(Path(settings.directory, collection))
    record = edge_files.read_record(copied)
    if record is None:
        sys.exit(f"the copy of {collection} has no record")
    shard = Shard.load(copied, record, settings)
    shard.optimize()
    shard.close()
    edge_files.make_durable(copied)
    # What counts is what the next one to open it will find.
    shard = Shard.load(copied, record, settings)
    points = shard.gauge()["points"]
    shard.close()
    if edge_files.read_record(copied) is None:
        sys.exit(f"the copy of {collection} was deleted meanwhile")
    edge_files.write_record(copied, record._replace(ready=True, removed=0))
    sys.stdout.write(str(points))


def main() -> None:
    """Run as ``edge_worker serve LIFELINE SETTINGS`` or ``edge_worker copy|optimize LIFELINE SETTINGS COLLECTION``.

    A worker that serves ends with its input: signals for the whole service must not cut short what it drains.
    """
    mode, lifeline, settings = sys.argv[1], int(sys.argv[2]), Settings.from_json(sys.argv[3])
    die_with(lifeline)
    if mode != "serve":
        {"copy": copy, "optimize": optimize}[mode](settings, sys.argv[4])
        return
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    replies = os.dup(1)
    os.dup2(2, 1)
    serve(settings, sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
