"""Which workspaces run, where a whole registry shows it too late."""

import pytest
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
