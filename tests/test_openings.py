"""Which workspaces run, where a whole registry shows it too late."""

import pytest
import trio
from trio.testing import MockClock

from semindex.model.errors import Stopping
from semindex.testing.bench import words
from tests.registries import PRIMARY, Estate


async def test_a_cell_that_is_ending_starts_no_workspace_and_does_not_claim_to_be_starting(
    autojump_clock: MockClock,
) -> None:
    estate = Estate()
    estate.bench.tree(PRIMARY, alpha=words("alpha"))
    async with estate.office() as office:
        office.registry.stop_all()
        with pytest.raises(Stopping, match="try again when it is back"):
            await office.register("one", PRIMARY)


async def test_a_workspace_that_is_just_starting_when_the_cell_ends_is_stopped_like_the_others(
    autojump_clock: MockClock,
) -> None:
    estate = Estate()
    estate.bench.tree(PRIMARY, alpha=words("alpha"))
    async with estate.office() as office:

        class Stopper(trio.abc.Instrument):
            """Ends the cell as soon as the task of the workspace was made, before it reports that it runs."""

            def task_spawned(self, task: trio.lowlevel.Task) -> None:
                if "Workspace.run" in task.name:
                    office.registry.stop_all()

        stopper = Stopper()
        trio.lowlevel.add_instrument(stopper)
        with trio.fail_after(60):
            workspace = await office.register("one", PRIMARY)
            trio.lowlevel.remove_instrument(stopper)
            await workspace.closed.wait()
