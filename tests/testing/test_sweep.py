"""Cutting scenarios short finds what is not cleaned up, and what is not written in one piece."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import trio

from semindex.testing.intercept import intercept
from semindex.testing.sweep import Begin, Check, PowerCut, cancel_at_every_step, cut_at_every_call


class Resource:
    def __init__(self) -> None:
        self.is_open = False

    async def use(self, *, carefully: bool) -> None:
        self.is_open = True
        if not carefully:
            await trio.lowlevel.checkpoint()
        try:
            await trio.sleep(1)
        finally:
            self.is_open = False


def scenario_of(carefully: bool, seen: list[int]) -> Callable[[], tuple[Callable[[Begin], Awaitable[None]], Check]]:
    def make() -> tuple[Callable[[Begin], Awaitable[None]], Check]:
        resource = Resource()

        async def scenario(begin: Begin) -> None:
            await trio.sleep(1)
            begin()
            await trio.lowlevel.checkpoint()
            await resource.use(carefully=carefully)

        async def check(step: int) -> None:
            await trio.lowlevel.checkpoint()
            seen.append(step)
            assert not resource.is_open

        return scenario, check

    return make


def test_a_scenario_is_cancelled_at_each_step_from_its_beginning() -> None:
    seen: list[int] = []

    steps = cancel_at_every_step(scenario_of(True, seen))

    assert seen == list(range(1, steps + 1))
    assert steps >= 2


def test_a_missing_finally_is_found() -> None:
    with pytest.raises(AssertionError):
        cancel_at_every_step(scenario_of(False, []))


class Store:
    def __init__(self) -> None:
        self.points: list[str] = []
        self.note: str = ""

    async def upsert(self, collection: str, ids: list[str], vectors: list[int], payloads: list[str]) -> None:
        await trio.lowlevel.checkpoint()
        self.points += ids

    async def write_metadata(self, collection: str, note: str) -> None:
        await trio.lowlevel.checkpoint()
        self.note = note


@pytest.mark.parametrize(
    ("torn", "expected"),
    [
        (False, [([], ""), (["a", "b"], ""), (["a", "b"], "done")]),
        (True, [(["a"], ""), (["a", "b"], ""), (["a", "b", "c"], "done")]),
    ],
)
def test_the_power_is_cut_at_each_call_and_then_nothing_has_any_effect(
    torn: bool, expected: list[tuple[list[str], str]]
) -> None:
    found: list[tuple[list[str], str]] = []

    def make() -> tuple[Callable[[PowerCut], Awaitable[None]], Check]:
        real = Store()

        async def scenario(power: PowerCut) -> None:
            store = intercept(real, "store", [power])
            power.begin()
            try:
                await store.upsert("c", ["a", "b"], [1, 2], ["", ""])
                await store.write_metadata("c", "done")
                await store.upsert("c", ["c", "d"], [1, 2], ["", ""])
            finally:
                with trio.move_on_after(5, shield=True), suppress(trio.Cancelled):
                    await store.write_metadata("c", "cleaned up")

        async def check(place: int) -> None:
            await trio.lowlevel.checkpoint()
            found.append((real.points, real.note))

        return scenario, check

    assert cut_at_every_call(make, torn=torn) == 4
    assert found[:3] == expected
