"""Operations of a real cell, as its doors see them, and on twins where the disk has to fail."""

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from semindex.cell.operations import Operations
from semindex.engine.revision import Revision
from semindex.model.errors import SemindexError, Starting, StateDamaged, StateUnwritable, UnknownOperation
from semindex.model.registrations import INTERRUPTED, OperationState
from semindex.service import open_cell, restore
from semindex.state.cell_directory import open_cell_directory
from semindex.testing.bench import words
from semindex.testing.cells import config_below, indexed, running_cell, workspace_of
from semindex.testing.faults import Fault, FaultPlan
from semindex.testing.intercept import Failing, Gate, Recorder, intercept
from tests.registries import PRIMARY, Estate


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


async def test_an_operation_that_cannot_be_written_has_not_begun(autojump_clock: MockClock) -> None:
    estate, full = Estate(), StateUnwritable("The disk is full.")
    estate.bench.tree(PRIMARY, alpha=words("alpha"))
    estate.state.operations = intercept(
        estate.state.operations, "operations", [Failing("operations.save", full, times=1)]
    )
    chunked = Recorder()
    async with estate.office(chunked) as office, trio.open_nursery() as nursery:
        await (await office.register("one", PRIMARY)).settled()
        changes = Revision()
        operations = Operations(estate.state, office.registry, changes, nursery)
        before = len(chunked.of("pool.chunk"))
        with pytest.raises(StateUnwritable):
            await operations.reindex("one")

        assert operations.running("one") is None
        assert changes.value == 0
        assert await estate.state.operations.load_all() == []
        assert len(chunked.of("pool.chunk")) == before

        begun = await operations.reindex("one")
        assert operations.running("one") == begun
        with trio.fail_after(60):
            while operations.running("one") is not None:
                await changes.beyond(changes.value)
        assert len(chunked.of("pool.chunk")) == before + 1


@pytest.mark.parametrize("trouble", [StateUnwritable("The disk is full."), StateDamaged("The file is damaged.")])
async def test_an_operation_whose_end_cannot_be_written_has_ended_all_the_same(
    autojump_clock: MockClock, trouble: SemindexError
) -> None:
    estate = Estate()
    estate.bench.tree(PRIMARY, alpha=words("alpha"))
    failing = Failing("operations.save", trouble, about="COMPLETED", times=1)
    estate.state.operations = intercept(estate.state.operations, "operations", [failing])
    async with estate.office() as office, trio.open_nursery() as nursery:
        await (await office.register("one", PRIMARY)).settled()
        changes = Revision()
        operations = Operations(estate.state, office.registry, changes, nursery)
        begun = await operations.purge("one")
        with trio.fail_after(60):
            while operations.running("one") is not None:
                await changes.beyond(changes.value)
        assert operations.get(begun.id).state is OperationState.COMPLETED
        assert failing.times == 0


async def test_the_end_of_an_operation_is_written_however_slow_the_disk_is(autojump_clock: MockClock) -> None:
    estate = Estate()
    estate.bench.tree(PRIMARY, alpha=words("alpha"))
    slow = FaultPlan({"operations.save": [Fault.OK, Fault.SLOW]})
    estate.state.operations = intercept(estate.state.operations, "operations", [slow])
    async with estate.office() as office, trio.open_nursery() as nursery:
        await (await office.register("one", PRIMARY)).settled()
        operations = Operations(estate.state, office.registry, Revision(), nursery)
        begun = await operations.purge("one")
    assert slow.is_over
    [kept] = await estate.state.operations.load_all()
    assert (kept.id, kept.state) == (begun.id, OperationState.COMPLETED)


async def test_of_several_operations_of_a_workspace_the_first_is_shown_until_it_has_ended(
    autojump_clock: MockClock,
) -> None:
    estate = Estate()
    estate.bench.tree(PRIMARY, alpha=words("alpha"))
    gate = Gate("pool.chunk")
    async with estate.office(gate) as office, trio.open_nursery() as nursery:
        await (await office.register("one", PRIMARY)).settled()
        await office.register("other", PRIMARY)
        changes = Revision()
        operations = Operations(estate.state, office.registry, changes, nursery)
        gate.shut()
        first = await operations.reindex("one")
        await gate.reached()
        second = await operations.purge("other")
        assert operations.running("one") == operations.running("other") == first
        gate.open()
        with trio.fail_after(60):
            while operations.running("one") == first:
                await changes.beyond(changes.value)
            assert operations.running("one") in (second, None)
            while operations.running("one") is not None:
                await changes.beyond(changes.value)
