"""Operations of a real cell, as its doors see them."""

from pathlib import Path

import pytest
import trio

from semindex.model.errors import Starting, UnknownOperation
from semindex.model.registrations import INTERRUPTED, OperationState
from semindex.service import open_cell, restore
from semindex.state.cell_directory import open_cell_directory
from semindex.testing.cells import config_below, indexed, running_cell, workspace_of


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "root"
    directory.mkdir()
    (directory / "auth.py").write_text("# Heliotrope authentication validates bearer credentials before dispatch.\n")
    return directory


async def test_an_operation_is_named_by_every_registration_of_its_workspace_until_it_has_ended(
    tmp_path: Path, root: Path
) -> None:
    async with running_cell(config_below(tmp_path, root)) as cell:
        await indexed(cell, "one", root)
        await indexed(cell, "other", root)
        begun = await cell.operations.reindex("one")

        assert cell.operations.running("one") == cell.operations.running("other") == begun
        with trio.fail_after(60):
            while cell.operations.running("other") is not None:
                await cell.changes.beyond(cell.changes.value)
        assert cell.operations.get(begun.id).state is OperationState.COMPLETED


async def test_an_operation_is_unknown_only_once_those_of_earlier_runs_were_read(tmp_path: Path, root: Path) -> None:
    config = config_below(tmp_path, root)
    async with open_cell_directory(config.state_directory) as directory, open_cell(config, directory) as cell:
        with pytest.raises(Starting):
            cell.operations.get("no-such-operation")
        await restore(cell)
        with pytest.raises(UnknownOperation):
            cell.operations.get("no-such-operation")


async def test_a_reindex_that_is_cut_short_by_a_stop_was_interrupted(tmp_path: Path, root: Path) -> None:
    async with running_cell(config_below(tmp_path, root)) as cell:
        await indexed(cell, "one", root)
        workspace_of(cell, "one").stop(purge=False)
        begun = await cell.operations.reindex("one")

        with trio.fail_after(60):
            while (ended := cell.operations.get(begun.id)).state is OperationState.RUNNING:
                await cell.changes.beyond(cell.changes.value)
        assert (ended.state, ended.error) == (OperationState.FAILED, INTERRUPTED)
