"""Cutting a scenario short at every place where that is possible: by cancellation, or by pulling the plug.

A scenario is an async function that prepares what it needs and then calls ``begin()``: places are counted from there.
Each place is another run on a virtual clock, so a scenario of some hundred places takes a second or two.
"""

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from attrs import evolve
from trio.testing import MockClock

from semindex.testing.intercept import Call, Proceed

Begin = Callable[[], None]
Check = Callable[[int], Awaitable[None]]
"""Called after each run, on a clock of its own, with the number of the place."""


Make = Callable[[], tuple[Callable[[Begin], Awaitable[None]], Check]]
"""Returns a new scenario and the check for it."""


class _CancelAt(trio.abc.Instrument):
    """Cancels a scope right before a task's step, the ``step``-th from the beginning."""

    def __init__(self, step: int, scope: trio.CancelScope) -> None:
        self.taken = 0
        self._step = step
        self._scope = scope
        self._counting = False

    def begin(self) -> None:
        self._counting = True

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if self._counting:
            self.taken += 1
            if self.taken == self._step:
                self._scope.cancel(reason="the sweep has come to this step")


def cancel_at_every_step(make: Make) -> int:
    """Run a scenario once for each scheduler step from its beginning on, cancelled there; return their number."""
    step = 1
    while True:
        scenario, check = make()
        if _run(_cancelled, step, scenario) < step:
            return step - 1
        _run(check, step)
        step += 1


def cancel_at_spread_steps(make: Make, places: int) -> list[int]:
    """Cancel a scenario that uses threads and processes, on the real clock, at steps spread over one whole run.

    Returns the steps at which it was cancelled: some of the last may be missing, since no two runs have as many.
    """
    scenario, check = make()
    whole = trio.run(_cancelled, sys.maxsize, scenario)
    trio.run(check, whole)
    cancelled = []
    for step in [1 + place * whole // places for place in range(places)]:
        scenario, check = make()
        if trio.run(_cancelled, step, scenario) >= step:
            cancelled.append(step)
        trio.run(check, step)
    return cancelled


async def _cancelled(step: int, scenario: Callable[[Begin], Awaitable[None]]) -> int:
    """Run a scenario that is cancelled at a step; return how many steps it took, fewer if it ended before."""
    with trio.CancelScope() as scope:
        instrument = _CancelAt(step, scope)
        trio.lowlevel.add_instrument(instrument)
        try:
            await scenario(instrument.begin)
        finally:
            trio.lowlevel.remove_instrument(instrument)
    return instrument.taken


class PowerCut:
    """An :class:`~semindex.testing.intercept.Around` that ends the life of a process at one call of store or ledger.

    From then on nothing that the process does has any effect. With ``torn`` the call itself has half of its effect, if
    it is one that writes many things and is not a transaction.
    """

    def __init__(self, place: int, *, torn: bool) -> None:
        self.happened = False
        self._place = place
        self._torn = torn
        self._counting = False
        self._scope = trio.CancelScope()

    def begin(self) -> None:
        """Count from now on."""
        self._counting = True

    async def __call__(self, call: Call, proceed: Proceed) -> Any:
        """Make the call as long as there is power."""
        if self._counting and not self.happened and call.port in {"store", "ledger"}:
            self._place -= 1
            if self._place == 0:
                self.happened = True
                if self._torn and (half := _half(call)) is not None:
                    await proceed(half)
                self._scope.cancel(reason="the power is cut")
        if self.happened:
            await trio.sleep_forever()
        return await proceed()

    async def run(self, scenario: Callable[["PowerCut"], Awaitable[None]]) -> bool:
        """Run a scenario, until it ends or the power is cut; return whether it was."""
        with self._scope:
            await scenario(self)
        return self.happened


def _half(call: Call) -> Call | None:
    match call.name, call.args:
        case "upsert", (collection, ids, vectors, payloads):
            middle = len(ids) // 2
            return evolve(call, args=(collection, ids[:middle], vectors[:middle], payloads[:middle]))
        case "delete_files", (collection, paths):
            return evolve(call, args=(collection, paths[: len(paths) // 2]))
        case _:
            return None


def cut_at_every_call(
    make: Callable[[], tuple[Callable[[PowerCut], Awaitable[None]], Check]], *, torn: bool = False
) -> int:
    """Run a scenario once for each call of store and ledger from its start, cut short there; return their number."""
    place = 1
    while True:
        scenario, check = make()
        if not _run(PowerCut(place, torn=torn).run, scenario):
            return place - 1
        _run(check, place)
        place += 1


def _run(function: Callable[..., Awaitable[Any]], *args: object) -> Any:
    return trio.run(function, *args, clock=MockClock(autojump_threshold=0))
