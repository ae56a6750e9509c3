"""The cell's state in SQLite: what the twin cannot show."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from semindex.ports import CellState
from semindex.state.cell_state import open_cell_state
from tests.state.state_conformance import CellStateConformance, OpenState


class TestSqliteCellState(CellStateConformance):
    @pytest.fixture
    def open_state(self, tmp_path: Path) -> OpenState:
        def open_state() -> AbstractAsyncContextManager[CellState]:
            return open_cell_state(tmp_path / "cell.sqlite")

        return open_state


async def test_two_cells_have_two_ids(tmp_path: Path) -> None:
    async with open_cell_state(tmp_path / "one") as one, open_cell_state(tmp_path / "other") as other:
        assert one.cell_id != other.cell_id
