"""Standing between the engine and a port."""

from typing import Any

import pytest
import trio
import trio.testing
from attrs import evolve

from semindex.testing.intercept import Call, Failing, Gate, Proceed, Recorder, intercept


class Port:
    colour = "blue"

    def __init__(self) -> None:
        self.made: list[tuple[object, ...]] = []

    async def add(self, *numbers: int, more: int = 0) -> int:
        await trio.lowlevel.checkpoint()
        self.made.append(numbers)
        return sum(numbers) + more


async def double(call: Call, proceed: Proceed) -> Any:
    return 2 * await proceed()


async def one_more(call: Call, proceed: Proceed) -> Any:
    return 1 + await proceed()


async def test_calls_go_through_everything_the_first_one_outermost() -> None:
    assert await intercept(Port(), "port", [double, one_more]).add(1, 2, more=3) == 14
    assert await intercept(Port(), "port", [one_more, double]).add(1, 2, more=3) == 13
    assert await intercept(Port(), "port", []).add(1) == 1


async def test_attributes_that_are_no_calls_are_those_of_the_port() -> None:
    assert intercept(Port(), "port", [double]).colour == "blue"
    with pytest.raises(AttributeError):
        await intercept(Port(), "port", [double]).subtract()  # type: ignore[attr-defined]  # what it has not


async def test_another_call_can_be_made_in_place_of_one() -> None:
    async def negate(call: Call, proceed: Proceed) -> Any:
        return await proceed(evolve(call, args=tuple(-number for number in call.args)))

    port = Port()
    assert await intercept(port, "port", [negate, double]).add(1, 2) == -6
    assert port.made == [(-1, -2)]


async def test_a_recorder_notes_calls_in_order() -> None:
    recorder = Recorder()
    port = intercept(Port(), "port", [recorder])
    await port.add(1)
    await port.add(2, more=3)

    assert [(str(call), call.args, call.kwargs) for call in recorder.of("port.add")] == [
        ("port.add", (1,), {}),
        ("port.add", (2,), {"more": 3}),
    ]
    assert recorder.of("port.subtract") == []


@pytest.mark.parametrize("after", [False, True])
async def test_a_gate_holds_the_calls_it_is_for(nursery: trio.Nursery, after: bool) -> None:
    gate, real = Gate("port.add", about="7", after=after), Port()
    port = intercept(real, "port", [gate])
    gate.shut()
    nursery.start_soon(port.add, 7)
    with trio.fail_after(5):
        await gate.reached()
    assert await port.add(1) == 1
    assert ((7,) in real.made) is after

    gate.open()
    await trio.testing.wait_all_tasks_blocked()
    assert (7,) in real.made
    assert await port.add(7) == 7


async def test_a_failing_call_fails_as_often_as_it_was_told_and_does_nothing() -> None:
    failing, real = Failing("port.add", OSError("no"), times=2, about="7"), Port()
    port = intercept(real, "port", [failing])

    assert await port.add(1) == 1
    for _ in range(2):
        with pytest.raises(OSError, match="no"):
            await port.add(7)
    assert await port.add(7) == 7
    assert real.made == [(1,), (7,)]
