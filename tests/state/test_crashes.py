"""kill -9 at any moment: what was acknowledged is there, what was not is there as a whole or not at all."""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import trio

from semindex.model.registrations import OperationState
from semindex.state.cell_state import open_cell_state
from tests.state.conformance import PATIENCE

CHECKOUT = Path(__file__).parents[2]


async def run_and_kill(program: str, path: Path, first: int, after: int) -> list[str]:
    """Run one of :mod:`tests.state.crashing`, kill it after so many acknowledgements, and return all that it got."""
    said = b""
    command = [sys.executable, "-m", "tests.state.crashing", program, str(path), str(first)]
    process = await trio.lowlevel.open_process(command, cwd=CHECKOUT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    async for data in process.stdout:
        said += data
        if said.count(b"\n") >= after:
            process.kill()
    await process.wait()
    return said.decode().splitlines()


@pytest.mark.parametrize("kills", [(1, 2, 50), (7, 300, 31)], ids=str)
async def test_a_killed_writer_loses_nothing_that_was_acknowledged(tmp_path: Path, kills: tuple[int, ...]) -> None:
    acknowledged: list[str] = []
    with trio.fail_after(PATIENCE):
        for kill in kills:
            first = 1_000_000 * len(acknowledged)
            acknowledged += await run_and_kill("write_ledger", tmp_path / "cell.sqlite", first, kill)

            async with open_cell_state(tmp_path / "cell.sqlite") as state:
                records = await state.ledger("/repo").load()
            parts = defaultdict(set)
            for name in records:
                group, _, part = name.rpartition("/")
                parts[group].add(part)

            assert {group: parts[group] for group in acknowledged} == {group: {"1", "2"} for group in acknowledged}
            assert all(found in ({"0", "1", "2"}, {"1", "2"}) for found in parts.values())


async def test_a_cell_whose_making_was_killed_is_made_by_the_next_start(tmp_path: Path) -> None:
    with trio.fail_after(PATIENCE):
        for kill in (1, 3, 2):
            acknowledged = await run_and_kill("make_cells", tmp_path, 100 * kill, kill)
            for number in (*acknowledged, 100 * kill + len(acknowledged)):
                async with open_cell_state(tmp_path / f"{number}.sqlite") as state:
                    registrations = [each.id for each in await state.registrations.load_all()]
                    operations = [each.state for each in await state.operations.load_all()]
                assert number not in acknowledged or registrations == ["a"]
                assert set(operations) <= {OperationState.FAILED}
