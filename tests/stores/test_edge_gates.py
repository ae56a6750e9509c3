import pytest
import trio
import trio.testing

from semindex.model.errors import StoreUnavailable
from semindex.stores.edge_gates import Gates

PATIENCE = 30.0
"""Seconds."""


async def test_calls_for_one_collection_are_inside_at_the_same_time() -> None:
    gates = Gates(PATIENCE)

    async with gates.shared("a"), gates.shared("a"):
        await trio.lowlevel.checkpoint()


async def test_being_alone_waits_for_those_inside_and_keeps_later_ones_out(
    autojump_clock: trio.testing.MockClock,
) -> None:
    gates, log = Gates(PATIENCE), []

    async def call(name: str, seconds: float) -> None:
        async with gates.shared("a"):
            log.append(f"{name} in")
            await trio.sleep(seconds)
        log.append(f"{name} out")

    async def alone() -> None:
        async with gates.alone("a"):
            log.append("alone in")
            await trio.sleep(1)
            log.append("alone out")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(call, "early", 2)
        await trio.sleep(0.5)
        nursery.start_soon(alone)
        await trio.sleep(0.5)
        nursery.start_soon(call, "late", 0)

    assert log == ["early in", "early out", "alone in", "alone out", "late in", "late out"]


async def test_only_one_is_alone_at_a_time(autojump_clock: trio.testing.MockClock) -> None:
    gates = Gates(PATIENCE)
    inside = 0

    async def alone() -> None:
        nonlocal inside
        async with gates.alone("a"):
            inside += 1
            await trio.sleep(1)
            assert inside == 1
            inside -= 1

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(alone)

    assert trio.current_time() == 3


async def test_other_collections_are_open_while_someone_is_alone() -> None:
    gates = Gates(PATIENCE)

    async with gates.alone("a"):
        with trio.fail_after(1):
            async with gates.shared("b"), gates.alone("c"):
                await trio.lowlevel.checkpoint()


async def test_giving_up_the_wait_to_be_alone_lets_the_others_in(autojump_clock: trio.testing.MockClock) -> None:
    gates = Gates(PATIENCE)

    async with gates.shared("a"):
        with trio.move_on_after(1) as scope:
            async with gates.alone("a"):
                raise AssertionError("someone else is inside")
        assert scope.cancelled_caught
        with trio.fail_after(1):
            async with gates.shared("a"):
                await trio.lowlevel.checkpoint()

    with trio.fail_after(1):
        async with gates.alone("a"):
            await trio.lowlevel.checkpoint()


async def test_a_call_does_not_wait_for_ever_for_an_optimisation(autojump_clock: trio.testing.MockClock) -> None:
    gates, inside = Gates(PATIENCE), list[str]()

    async with gates.alone("a"):
        with pytest.raises(StoreUnavailable, match="try again"):
            async with gates.shared("a"):
                inside.append("early")
        assert trio.current_time() == pytest.approx(PATIENCE)

    with trio.fail_after(1):
        async with gates.shared("a"):
            inside.append("later")
    assert inside == ["later"]
