"""While a cell indexes, its root process stays responsive: the listener shares the loop with everything else."""

import gc
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from semindex.commands.startup import quieten_collector
from semindex.model.status import State
from semindex.testing.cells import config_below, indexed, running_cell
from semindex.testing.stalls import watched_stalls

LONGEST_STEP = 0.020
"""Seconds of CPU that the loop's thread may take at a time, or that another thread may keep the interpreter's lock."""


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    """Treat the objects of the test run as those of a process that has started; both commands do the same."""
    thresholds = gc.get_threshold()
    quieten_collector()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


async def test_nothing_blocks_the_loop_or_holds_the_lock_while_a_real_tree_is_indexed(tmp_path: Path) -> None:
    tree = Path(sysconfig.get_path("purelib")) / "pygments"
    async with running_cell(config_below(tmp_path, tree)) as cell:
        async with watched_stalls() as stalls:
            status = await indexed(cell, "tree", tree)
            await cell.searches.search("tree", "how are tokens coloured in a terminal")
    assert status.state is State.INDEXED
    assert status.chunks > 1000
    assert stalls.loop < LONGEST_STEP
    assert stalls.others < 2 * LONGEST_STEP, "a thread that works without the lock may look like one that holds it"
