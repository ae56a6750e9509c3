"""When sweeps are made, and what becomes of one that fails."""

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from semindex.engine.sweeping import FIRST_RETRY, Sweeper
from semindex.model.errors import WorkspaceUnavailable

INTERVAL = 10.0


@define
class Sweeps:
    """What a sweeper does, and when."""

    fails: bool = False
    began: list[float] = field(factory=list)
    full: list[bool] = field(factory=list)

    async def sweep(self, full: bool) -> None:
        await trio.lowlevel.checkpoint()
        self.began.append(trio.current_time())
        self.full.append(full)
        if self.fails:
            raise WorkspaceUnavailable("The root is missing.")


async def test_a_sweep_that_fails_is_tried_again_with_growing_pauses_until_one_succeeds(
    autojump_clock: MockClock,
) -> None:
    sweeps = Sweeps(fails=True)
    with trio.move_on_after(34):
        await Sweeper(sweeps.sweep, interval=INTERVAL).run()
    assert sweeps.began == pytest.approx([0, *(FIRST_RETRY * number for number in (1, 3, 7, 15)), 25])


async def test_after_a_success_the_next_failure_is_tried_again_soon(autojump_clock: MockClock) -> None:
    sweeps = Sweeps(fails=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Sweeper(sweeps.sweep, interval=INTERVAL).run)
        await trio.sleep(6)
        sweeps.fails = False
        await trio.sleep(2)
        sweeps.fails = True
        await trio.sleep(11)
        nursery.cancel_scope.cancel()
    assert sweeps.began == pytest.approx([0, 1, 3, 7, 17, 18])


async def test_what_nobody_asked_for_is_a_full_comparison(autojump_clock: MockClock) -> None:
    sweeps = Sweeps()
    async with trio.open_nursery() as nursery:
        sweeper = Sweeper(sweeps.sweep, interval=INTERVAL)
        nursery.start_soon(sweeper.run)
        await trio.sleep(1)
        await sweeper.request()
        await trio.sleep(INTERVAL + 1)
        nursery.cancel_scope.cancel()
    assert sweeps.full == [False, False, True]
