"""The cell's state in SQLite: what the twin cannot show."""

import sqlite3
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import pytest
from attrs import evolve

from semindex.model.errors import StateDamaged
from semindex.ports import CellState
from semindex.state.cell_state import open_cell_state
from semindex.state.columns import to_text
from semindex.state.database import open_database
from semindex.state.ledger import SLICE
from semindex.state.schema import CELL
from tests.state.conformance import record
from tests.state.state_conformance import NOON, CellStateConformance, OpenState, registration


class TestSqliteCellState(CellStateConformance):
    @pytest.fixture
    def open_state(self, tmp_path: Path) -> OpenState:
        def open_state() -> AbstractAsyncContextManager[CellState]:
            return open_cell_state(tmp_path / "cell.sqlite")

        return open_state


async def test_two_cells_have_two_ids(tmp_path: Path) -> None:
    async with open_cell_state(tmp_path / "one") as one, open_cell_state(tmp_path / "other") as other:
        assert one.cell_id != other.cell_id


async def test_the_next_start_removes_what_an_interrupted_clearing_left(tmp_path: Path) -> None:
    async with open_cell_state(tmp_path / "cell.sqlite") as state:
        await state.ledger("/kept").apply([record("a")])
        await state.ledger("/cleared").apply([record(f"{number}") for number in range(SLICE + 1)])
    with closing(sqlite3.connect(tmp_path / "cell.sqlite")) as connection, connection:
        connection.execute("UPDATE ledgers SET path = NULL WHERE path = '/cleared'")

    async with open_cell_state(tmp_path / "cell.sqlite") as state:
        assert await state.ledgers() == ["/kept"]

    with closing(sqlite3.connect(tmp_path / "cell.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM files").fetchone() == (1,)
        assert connection.execute("SELECT count(*) FROM ledgers").fetchone() == (1,)


async def test_the_state_of_the_first_version_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "cell.sqlite"
    async with open_database(path, evolve(CELL, migrations=CELL.migrations[:1])):
        pass
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO cell VALUES ('the cell', '2026-01-01T00:00:00.000000Z')")
        connection.execute(
            "INSERT INTO registrations (id, path, created_at, lifecycle) VALUES ('a', '/repo', ?, 'active')",
            (to_text(NOON),),
        )

    async with open_cell_state(path) as state:
        assert state.cell_id == "the cell"
        assert await state.registrations.load_all() == [registration("a")]


async def test_a_text_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "cell.sqlite"
    async with open_cell_state(path) as state:
        await state.registrations.save(registration("a"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE registrations SET path = CAST(x'ff' AS TEXT)")

    async with open_cell_state(path) as state:
        with pytest.raises(StateDamaged, match=f"{path}"):
            await state.registrations.load_all()
