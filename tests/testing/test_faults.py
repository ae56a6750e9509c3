"""Plans of what goes wrong, carried out."""

import pytest
import trio
import trio.testing

from semindex.model.errors import EmbedderRejected, EmbedderUnavailable, SemindexError
from semindex.testing.faults import PERMANENT, TRANSIENT, Fault, FaultPlan
from semindex.testing.intercept import intercept


class Numbers:
    def __init__(self) -> None:
        self.calls = 0

    async def embed(self, *numbers: int) -> list[int]:
        await trio.lowlevel.checkpoint()
        self.calls += 1
        return list(numbers)


@pytest.mark.parametrize(
    ("fault", "outcome", "seconds", "was_done"),
    [
        (Fault.OK, [1, 2], 0, True),
        (Fault.SLOW, [1, 2], 3, True),
        (Fault.LATE, [1, 2], 3, True),
        (Fault.SHORT, [1], 0, True),
        (Fault.LOST, EmbedderUnavailable, 0, True),
        (Fault.TRANSIENT, EmbedderUnavailable, 0, False),
        (Fault.HANG, EmbedderUnavailable, 300, False),
        (Fault.PERMANENT, EmbedderRejected, 0, False),
    ],
)
async def test_a_fault_is_what_its_name_says(
    autojump_clock: trio.testing.MockClock,
    fault: Fault,
    outcome: list[int] | type[SemindexError],
    seconds: float,
    was_done: bool,
) -> None:
    real = Numbers()
    port = intercept(real, "embedder", [FaultPlan({"embedder.embed": [fault]})])
    if isinstance(outcome, list):
        assert await port.embed(1, 2) == outcome
    else:
        with pytest.raises(outcome):
            await port.embed(1, 2)

    assert trio.current_time() == seconds
    assert real.calls == was_done


async def test_a_plan_is_carried_out_in_order_and_then_all_goes_well() -> None:
    plan = FaultPlan({"embedder.embed": [Fault.OK, Fault.TRANSIENT]})
    port = intercept(Numbers(), "embedder", [plan])

    assert await port.embed(1) == [1]
    assert not plan.is_over
    with pytest.raises(EmbedderUnavailable):
        await port.embed(1)
    assert plan.is_over
    assert await port.embed(1) == [1]


async def test_calls_that_a_plan_is_not_about_use_nothing_of_it_up() -> None:
    plan = FaultPlan({"embedder.embed": [Fault.TRANSIENT]}, about="7")
    port = intercept(Numbers(), "embedder", [plan])

    assert await port.embed(1) == [1]
    with pytest.raises(EmbedderUnavailable):
        await port.embed(7)


def test_every_port_has_its_own_errors() -> None:
    ports = {"cache", "embedder", "ledger", "pool", "store", "tree"}

    assert set(TRANSIENT) == set(PERMANENT) == ports
    assert all(isinstance(make(), SemindexError) for errors in (TRANSIENT, PERMANENT) for make in errors.values())
