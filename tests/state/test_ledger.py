"""The SQLite ledger: what the twin cannot show."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
import trio
import trio.testing

from semindex.ports import Ledger
from semindex.state.database import Connection, Database, open_database
from semindex.state.ledger import SLICE, SqliteLedger, sweep
from tests.state.conformance import PATIENCE, LedgerConformance, OpenLedger, record


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    with trio.fail_after(PATIENCE):
        async with open_database(tmp_path / "cell.db") as opened:
            yield opened


def rows(connection: Connection) -> int:
    (number,) = connection.execute("SELECT count(*) FROM files").fetchone()
    return int(number)


class TestSqliteLedger(LedgerConformance):
    @pytest.fixture
    def open_ledger(self, tmp_path: Path) -> OpenLedger:
        @asynccontextmanager
        async def open_ledger() -> AsyncIterator[Ledger]:
            async with open_database(tmp_path / "cell.db") as database:
                yield SqliteLedger(database, "/workspace")

        return open_ledger


async def test_ledgers_of_two_workspaces_are_apart(database: Database) -> None:
    one, other = SqliteLedger(database, "/one"), SqliteLedger(database, "/one/nested")
    await one.apply([record("a"), record("b")])
    await other.apply([record("a", "f" * 64)])

    await one.apply([], forget=["a"])
    await one.clear()

    assert await one.load() == {}
    assert await other.load() == {"a": record("a", "f" * 64)}


async def test_records_are_there_after_the_file_was_closed_and_opened_again(tmp_path: Path) -> None:
    written = [record(name) for name in ("plain.py", "line\nbreak.py", "näme.py", "not utf-8 \udce9.py", "back\\slash")]
    async with open_database(tmp_path / "cell.db") as database:
        await SqliteLedger(database, "/work space\n").apply(written)

    async with open_database(tmp_path / "cell.db") as database:
        assert await SqliteLedger(database, "/work space\n").load() == {each.path: each for each in written}


async def test_a_slice_that_is_exactly_full_is_not_the_end_by_mistake(database: Database) -> None:
    ledger = SqliteLedger(database, "/workspace")
    await ledger.apply([record(f"{number:06}") for number in range(2 * SLICE)])

    assert len(await ledger.load()) == 2 * SLICE


async def test_clearing_that_was_cut_short_is_complete_for_readers_and_finished_later(database: Database) -> None:
    ledger = SqliteLedger(database, "/workspace")
    await ledger.apply([record(f"{number:06}") for number in range(3 * SLICE)])
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ledger.clear)
            while await database.read(rows) == 3 * SLICE:
                pass
            nursery.cancel_scope.cancel()
    left = await database.read(rows)

    assert not scope.cancelled_caught
    assert 0 < left < 3 * SLICE
    assert await ledger.load() == {}

    await ledger.apply([record("new")])
    await sweep(database)

    assert await database.read(rows) == 1
    assert await ledger.load() == {"new": record("new")}


async def test_other_workspaces_are_served_while_a_large_ledger_is_loaded(database: Database) -> None:
    large, small = SqliteLedger(database, "/large"), SqliteLedger(database, "/small")
    await large.apply([record(f"{number:06}") for number in range(5 * SLICE)])
    order: list[str] = []

    async def load() -> None:
        await large.load()
        order.append("large")

    async def write() -> None:
        await small.apply([record("a")])
        order.append("small")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(load)
        nursery.start_soon(write)

    assert order == ["small", "large"]


async def test_an_apply_that_has_to_wait_writes_what_it_was_called_with(database: Database, tmp_path: Path) -> None:
    ledger, records, forgotten = SqliteLedger(database, "/workspace"), [record("a")], ["b"]
    await ledger.apply([record("b"), record("c")])
    with closing(sqlite3.connect(tmp_path / "cell.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ledger.apply, records, forgotten)
            await trio.testing.wait_all_tasks_blocked()
            records.clear()
            forgotten[:] = ["c"]
            other.execute("ROLLBACK")

    assert sorted(await ledger.load()) == ["a", "c"]
