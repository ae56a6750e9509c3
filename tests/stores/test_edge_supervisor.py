"""The supervisor with worker processes that misbehave; test_edge.py has it with real ones."""

import functools
import stat
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from semindex.model.errors import StoreUnavailable
from semindex.stores import edge_connection, edge_supervisor
from semindex.stores.edge_protocol import Settings
from semindex.stores.edge_supervisor import WorkerSupervisor

PREAMBLE = """
import os, sys, time
from pathlib import Path
from semindex.stores.edge_protocol import READY, encode, read_frame
lives = Path(sys.argv[0] + ".lives")
with lives.open("a") as file:
    file.write("x")
life = lives.stat().st_size
requests, replies = sys.stdin.buffer, sys.stdout.buffer
def say(number, result=None):
    replies.write(encode(number, {"result": result}))
    replies.flush()
def listen():
    frame = read_frame(requests)
    if frame is None:
        sys.exit()
    return frame
"""

ECHO = """
say(READY)
while True:
    frame = listen()
    say(frame.number, frame.json()["operation"])
"""

SETTINGS = Settings("nowhere", "0", [], 16, 100)

Impostor = Callable[[str], None]


@pytest.fixture
def impostor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Impostor:
    """Sets the program that is started in place of a worker."""
    program = tmp_path / "impostor"
    python = sys.executable

    def become(source: str) -> None:
        new = tmp_path / "new"
        new.write_text(f"#!{python}\n{PREAMBLE}\n{source}")
        new.chmod(stat.S_IRWXU)
        new.replace(program)

    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(edge_supervisor, "FIRST_DELAY", 0.01)
    return become


@asynccontextmanager
async def supervisor(call_deadline: float = 20) -> AsyncIterator[WorkerSupervisor]:
    made = WorkerSupervisor(SETTINGS, call_deadline=call_deadline)
    with trio.fail_after(25):
        async with trio.open_nursery() as nursery:
            await nursery.start(made.run)
            yield made
            nursery.cancel_scope.cancel()


async def ask(worker: WorkerSupervisor, operation: str) -> object:
    [frame] = await worker.call({"operation": operation}, b"")
    return frame.json()["result"]


async def ask_until_answered(worker: WorkerSupervisor, operation: str) -> object:
    while True:
        try:
            return await ask(worker, operation)
        except StoreUnavailable:
            await trio.sleep(0.01)


async def test_a_call_waits_for_the_first_worker_to_be_ready(impostor: Impostor) -> None:
    impostor(ECHO)

    async with supervisor() as worker:
        assert worker.health.pid is None
        assert await ask(worker, "hello") == "hello"
        health = worker.health

    assert health.pid is not None
    assert (health.restarts, health.last_error) == (0, None)


async def test_a_call_under_way_when_the_worker_dies_is_made_again(impostor: Impostor) -> None:
    impostor("if life == 1: say(READY); listen(); sys.exit('boom')" + ECHO)

    async with supervisor() as worker:
        assert await ask(worker, "hello") == "hello"
        health = worker.health

    assert health.restarts == 1
    assert health.last_error == "it ended with status 1: boom"


async def test_a_call_that_two_workers_died_of_fails(impostor: Impostor) -> None:
    impostor("say(READY); listen(); sys.exit('boom')")

    async with supervisor() as worker:
        with pytest.raises(StoreUnavailable, match=r"twice during one call \(it ended with status 1: boom\)"):
            await ask(worker, "hello")


async def test_after_repeated_deaths_calls_fail_at_once_until_a_worker_lives_again(impostor: Impostor) -> None:
    impostor("sys.exit('boom')")

    async with supervisor() as worker:
        with pytest.raises(StoreUnavailable, match=r"died 5 times in 60 s \(it ended with status 1: boom\)"):
            await ask(worker, "hello")
        with pytest.raises(StoreUnavailable, match="being restarted"), trio.testing.assert_no_checkpoints():
            await ask(worker, "hello")

        impostor(ECHO)
        assert await ask_until_answered(worker, "hello") == "hello"


async def test_a_program_that_cannot_be_started_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/program")
    monkeypatch.setattr(edge_supervisor, "FIRST_DELAY", 0.01)

    async with supervisor() as worker:
        with pytest.raises(StoreUnavailable, match=r"could not be started.*/no/such/program"):
            await ask(worker, "hello")


async def test_a_worker_that_hangs_is_killed_at_the_deadline_of_a_call(impostor: Impostor) -> None:
    impostor("if life == 1: say(READY); say(listen().number); time.sleep(1000)" + ECHO)

    async with supervisor(call_deadline=2) as worker:
        await ask(worker, "warm up")
        with pytest.raises(StoreUnavailable, match="did not answer within 2 s"):
            await ask(worker, "hello")
        assert await ask(worker, "again") == "again"
        health = worker.health

    assert health.restarts == 1
    assert health.last_error is not None
    assert "signal 9 (Killed): it hung for 2 s in hello" in health.last_error


async def test_a_worker_that_answers_other_calls_is_slow_but_does_not_hang(impostor: Impostor) -> None:
    impostor("""
say(READY)
while True:
    frame = listen()
    if frame.json()["operation"] != "never":
        say(frame.number)
""")

    async with supervisor(call_deadline=2) as worker:
        failed = trio.Event()

        async def never() -> None:
            with pytest.raises(StoreUnavailable, match="did not answer"):
                await ask(worker, "never")
            failed.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(never)
            while not failed.is_set():
                await ask(worker, "soon")
        assert worker.health.restarts == 0


async def test_a_worker_that_is_never_ready_is_replaced(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_connection, "START_DEADLINE", 1)
    impostor("if life == 1: time.sleep(1000)" + ECHO)

    async with supervisor() as worker:
        assert await ask(worker, "hello") == "hello"
        assert worker.health.last_error is not None
        assert "not ready after 1 s" in worker.health.last_error


async def test_a_worker_that_sends_garbage_is_replaced(impostor: Impostor) -> None:
    impostor(
        """
if life == 1:
    replies.write(b"\\xff" * 100)
    replies.flush()
    time.sleep(1000)
"""
        + ECHO
    )

    async with supervisor() as worker:
        assert await ask(worker, "hello") == "hello"
        assert worker.health.last_error is not None
        assert "no frames" in worker.health.last_error


async def test_a_worker_that_does_not_end_with_its_input_is_killed(
    impostor: Impostor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(edge_connection, "CLOSE_GRACE", 0.5)
    impostor("say(READY); listen(); say(1); time.sleep(1000)")

    async with supervisor() as worker:
        await ask(worker, "hello")

    assert "did not close within" in caplog.text


async def test_a_worker_that_dies_within_a_reply_is_asked_again(impostor: Impostor) -> None:
    impostor("""
say(READY)
frame = listen()
replies.write(encode(frame.number, {"result": [life]}, more=True))
replies.flush()
if life == 1:
    sys.exit("boom")
say(frame.number, [life])
""")

    async with supervisor() as worker:
        frames = await worker.call({"operation": "hello"}, b"")

    assert [frame.json()["result"] for frame in frames] == [[2], [2]]


async def test_what_a_worker_says_while_it_closes_is_logged(
    impostor: Impostor, caplog: pytest.LogCaptureFixture
) -> None:
    impostor("say(READY); say(listen().number); read_frame(requests); sys.exit('could not flush')")

    async with supervisor() as worker:
        await ask(worker, "hello")

    assert "could not flush" in caplog.text


async def test_each_caller_gets_its_own_answer_and_a_cancelled_one_none(impostor: Impostor) -> None:
    impostor(
        """
say(READY)
say(listen().number)
frames = [listen() for _ in range(4)]
for frame in reversed(frames):
    say(frame.number, frame.json()["operation"])
"""
        + ECHO
    )
    answers: dict[str, object] = {}

    async def call(worker: WorkerSupervisor, name: str) -> None:
        answers[name] = await ask(worker, name)

    async with supervisor() as worker, trio.open_nursery() as nursery:
        await ask(worker, "warm up")
        async with trio.open_nursery() as given_up:
            given_up.start_soon(call, worker, "given up")
            nursery.start_soon(call, worker, "first")
            nursery.start_soon(call, worker, "second")
            await trio.testing.wait_all_tasks_blocked()
            given_up.cancel_scope.cancel()
        nursery.start_soon(call, worker, "third")

    assert answers == {name: name for name in ("first", "second", "third")}


async def test_a_call_cancelled_while_it_is_sent_does_not_break_the_frames_of_others(impostor: Impostor) -> None:
    impostor("""
say(READY)
say(listen().number)
while not Path(sys.argv[0] + ".go").exists():
    time.sleep(0.01)
while True:
    frame = listen()
    say(frame.number, [frame.json()["operation"], len(frame.blob)])
""")
    large = 4 * 1024 * 1024

    async with supervisor() as worker:
        await ask(worker, "warm up")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(functools.partial(worker.call, {"operation": "large"}, bytes(large)))
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await trio.Path(sys.executable + ".go").touch()

        assert await ask(worker, "small") == ["small", 0]
        assert worker.health.restarts == 0


async def test_calls_of_a_store_that_is_closed_fail(impostor: Impostor) -> None:
    impostor("say(READY); say(listen().number); listen(); time.sleep(0.2)")
    worker = WorkerSupervisor(SETTINGS)
    failures: list[str] = []

    async def call() -> None:
        with pytest.raises(StoreUnavailable) as caught:
            await ask(worker, "hello")
        failures.append(str(caught.value))

    with trio.fail_after(25):
        async with trio.open_nursery() as callers:
            async with trio.open_nursery() as store:
                await store.start(worker.run)
                await ask(worker, "warm up")
                callers.start_soon(call)
                await trio.testing.wait_all_tasks_blocked()
                store.cancel_scope.cancel()
            callers.start_soon(call)

    assert failures == ["The embedded vector store is closed."] * 2
