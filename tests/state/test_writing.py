"""Many tasks, one connection: transactions are shared, whole, and survive the tasks that wait for them."""

import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from semindex.state.database import Connection, Database, open_database
from tests.state.conformance import PATIENCE
from tests.state.notes import NOTES, notes, read_notes, writing


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    with trio.fail_after(PATIENCE):
        async with open_database(tmp_path / "cell.db", NOTES) as opened:
            yield opened


class Gate:
    """Work that stays in the thread until it is told to go on."""

    def __init__(self) -> None:
        self.entered = trio.Event()
        self._leave = threading.Event()

    def __call__(self, connection: Connection) -> None:
        trio.from_thread.run_sync(self.entered.set)
        assert self._leave.wait(PATIENCE)

    @contextmanager
    def holding(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._leave.set()


async def test_writes_that_wait_are_carried_out_in_one_transaction(database: Database) -> None:
    statements: list[str] = []
    await database.read(lambda connection: connection.set_trace_callback(statements.append))
    gate = Gate()
    async with trio.open_nursery() as nursery:
        with gate.holding():
            nursery.start_soon(database.write, gate)
            await gate.entered.wait()
            for number in range(20):
                nursery.start_soon(database.write, writing(f"{number}"))
            await trio.testing.wait_all_tasks_blocked()

    assert statements.count("COMMIT") == 2
    assert sorted(await database.read(notes)) == sorted(f"{number}" for number in range(20))


async def test_a_write_that_fails_does_not_touch_those_it_shares_a_transaction_with(database: Database) -> None:
    failed: list[str] = []

    async def write_nothing() -> None:
        with pytest.raises(sqlite3.IntegrityError):
            await database.write(writing("goes with what fails", None))
        failed.append("as it should")

    gate = Gate()
    async with trio.open_nursery() as nursery:
        with gate.holding():
            nursery.start_soon(database.write, gate)
            await gate.entered.wait()
            nursery.start_soon(database.write, writing("before"))
            nursery.start_soon(write_nothing)
            nursery.start_soon(database.write, writing("after"))
            await trio.testing.wait_all_tasks_blocked()

    assert failed == ["as it should"]
    assert sorted(await database.read(notes)) == ["after", "before"]


async def test_a_write_returns_what_its_work_returns(database: Database) -> None:
    assert await database.write(lambda connection: connection.execute("SELECT 41 + 1").fetchone()) == (42,)


async def test_a_write_that_is_cancelled_while_it_waits_never_happens(database: Database) -> None:
    gate = Gate()
    async with trio.open_nursery() as nursery:
        with gate.holding():
            nursery.start_soon(database.write, gate)
            await gate.entered.wait()
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as cancelled:
                    cancelled.start_soon(database.write, writing("cancelled"))
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
            nursery.start_soon(database.write, writing("waited for"))
            await trio.testing.wait_all_tasks_blocked()

    assert await database.read(notes) == ["waited for"]


async def test_a_write_that_is_cancelled_while_a_read_is_before_it_never_happens(database: Database) -> None:
    gate = Gate()
    async with trio.open_nursery() as nursery:
        with gate.holding():
            nursery.start_soon(database.read, gate)
            await gate.entered.wait()
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as cancelled:
                    cancelled.start_soon(database.write, writing("first in turn"))
                    await trio.testing.wait_all_tasks_blocked()
                    cancelled.start_soon(database.write, writing("second"))
                    nursery.start_soon(database.write, writing("third, kept"))
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()

    assert await database.read(notes) == ["third, kept"]


async def test_a_write_that_is_cancelled_while_it_runs_happens_as_a_whole(database: Database) -> None:
    gate = Gate()

    def work(connection: Connection) -> None:
        writing("one")(connection)
        gate(connection)
        writing("two")(connection)

    async with trio.open_nursery() as nursery:
        with gate.holding():
            nursery.start_soon(database.write, work)
            await gate.entered.wait()
            nursery.cancel_scope.cancel()

    assert await database.read(notes) == ["one", "two"]


class CancelAtStep(trio.abc.Instrument):
    """Cancels a scope at the n-th step of a task."""

    def __init__(self, scope: trio.CancelScope, step: int) -> None:
        self._scope = scope
        self._left = step

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self._left -= 1
        if self._left == 0:
            self._scope.cancel()


async def test_wherever_a_writer_is_cancelled_its_neighbours_finish_and_its_write_is_whole(database: Database) -> None:
    async def write_within(scope: trio.CancelScope, *texts: str) -> None:
        with scope:
            await database.write(writing(*texts))

    outcomes = set()
    for step in range(1, 25):
        scope = trio.CancelScope()
        instrument = CancelAtStep(scope, step)
        trio.lowlevel.add_instrument(instrument)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(database.write, writing(f"{step} before"))
            nursery.start_soon(write_within, scope, f"{step} one", f"{step} two")
            nursery.start_soon(database.write, writing(f"{step} after"))
        trio.lowlevel.remove_instrument(instrument)
        written = {text.partition(" ")[2] for text in await database.read(notes) if text.startswith(f"{step} ")}
        outcomes.add((scope.cancelled_caught, frozenset(written)))

    neighbours, all_four = frozenset({"before", "after"}), frozenset({"before", "one", "two", "after"})
    assert outcomes <= {(True, neighbours), (True, all_four), (False, all_four)}
    assert {(True, neighbours), (False, all_four)} <= outcomes


async def test_what_is_written_before_an_orderly_end_is_there_after_it(tmp_path: Path) -> None:
    with trio.CancelScope() as scope:
        async with open_database(tmp_path / "cell.db", NOTES) as database:
            await database.write(writing("one"))
            scope.cancel()
            await trio.sleep_forever()

    assert await read_notes(tmp_path / "cell.db") == ["one"]
    assert not (tmp_path / "cell.db-wal").exists()


async def test_a_closed_database_says_so(tmp_path: Path) -> None:
    async with open_database(tmp_path / "cell.db", NOTES) as database:
        pass

    with pytest.raises(trio.ClosedResourceError, match=r"cell\.db was closed"):
        await database.read(notes)
    with pytest.raises(trio.ClosedResourceError, match=r"cell\.db was closed"):
        await database.write(writing("one"))
    await database.aclose()
