"""The worker as a process: its signals, its pipes, its end."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from semindex.stores.edge_connection import open_lifeline, worker_command
from semindex.stores.edge_protocol import READY, ErrorKind, Settings, encode, read_frame

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, and pipes whose end ends a process")

HOLDS_THE_INTERPRETER = """
import ctypes, sys
from semindex.stores.edge_worker import die_with
die_with(int(sys.argv[1]))
sys.stdout.write("ready")
sys.stdout.flush()
ctypes.PyDLL(None).sleep(1000)
"""

Process = subprocess.Popen[bytes]


@contextmanager
def started(directory: Path, lifeline: int) -> Iterator[Process]:
    """Yield a worker that is ready."""
    settings = Settings(str(directory), "0.9.0", ["type"], 16, 100)
    process = subprocess.Popen(
        worker_command("serve", lifeline, settings),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[lifeline],
    )
    with process:
        assert process.stdout is not None
        ready = read_frame(process.stdout)
        assert ready is not None
        assert ready.number == READY
        yield process


@pytest.fixture
def worker(directory: Path) -> Iterator[Process]:
    with open_lifeline() as lifeline, started(directory, lifeline) as process:
        yield process


def ask(worker: Process, operation: str, collection: str = "ws", **arguments: object) -> dict[str, Any]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    request = {"operation": operation, "collection": collection, "arguments": arguments, "floats": 0}
    worker.stdin.write(encode(7, request))
    worker.stdin.flush()
    reply = read_frame(worker.stdout)
    assert reply is not None
    assert reply.number == 7
    return reply.json()


def test_signals_for_the_whole_service_do_not_end_a_worker(worker: Process) -> None:
    worker.send_signal(signal.SIGINT)
    worker.send_signal(signal.SIGTERM)

    assert ask(worker, "names", "") == {"result": []}


def test_a_worker_closes_its_collections_and_ends_with_its_input(worker: Process, directory: Path) -> None:
    ask(worker, "create", dimension=2, token="token")
    assert worker.stdin is not None
    worker.stdin.close()

    assert worker.wait(10) == 0
    assert worker.stderr is not None
    assert worker.stderr.read() == b""
    assert [path.name for path in directory.glob("ws*")] == ["ws"]


def test_a_worker_whose_replies_nobody_reads_any_more_ends_quietly(worker: Process) -> None:
    assert worker.stdin is not None
    assert worker.stdout is not None
    assert worker.stderr is not None
    worker.stdout.close()
    worker.stdin.write(encode(1, {"operation": "names", "collection": "", "arguments": {}, "floats": 0}))
    worker.stdin.flush()

    assert worker.wait(10) == 0
    assert worker.stderr.read() == b""


@LINUX
def test_what_is_printed_in_a_worker_cannot_get_among_its_replies(worker: Process) -> None:
    assert os.readlink(f"/proc/{worker.pid}/fd/1") == os.readlink(f"/proc/{worker.pid}/fd/2")


@pytest.mark.parametrize("operation", ["eval", "__init__", "_update", "close_all"])
def test_only_operations_can_be_asked_for(worker: Process, operation: str) -> None:
    ask(worker, "create", dimension=2, token="token")

    assert ask(worker, operation)["error"] == ErrorKind.REJECTED


def test_an_error_of_the_engine_is_a_reply_and_the_worker_goes_on(worker: Process) -> None:
    ask(worker, "create", dimension=2, token="token")

    reply = ask(worker, "vectors", ids=["no id"])

    assert reply["error"] == ErrorKind.REJECTED
    assert "failed in vectors" in reply["message"]
    assert ask(worker, "count", matching={}) == {"result": 0}


@LINUX
def test_a_worker_ends_with_the_service_whatever_becomes_of_its_input(directory: Path) -> None:
    with ExitStack() as service:
        lifeline = service.enter_context(open_lifeline())
        with started(directory, lifeline) as worker:
            service.close()

            assert worker.wait(10) == -signal.SIGIO


@LINUX
def test_a_process_dies_with_the_service_even_within_a_call_that_holds_the_interpreter() -> None:
    with open_lifeline() as lifeline:
        command = [sys.executable, "-c", HOLDS_THE_INTERPRETER, str(lifeline)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[lifeline])
        assert process.stdout is not None
        assert process.stdout.read(5) == b"ready"

    with process:
        assert process.wait(10) == -signal.SIGIO


@LINUX
def test_a_process_that_begins_after_the_service_died_ends_at_once() -> None:
    read_end, write_end = os.pipe()
    os.close(write_end)
    command = [sys.executable, "-c", HOLDS_THE_INTERPRETER, str(read_end)]
    done = subprocess.run(command, capture_output=True, pass_fds=[read_end], timeout=20, check=False)
    os.close(read_end)

    assert done.returncode != 0
    assert b"the service ended" in done.stderr
