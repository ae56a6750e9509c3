"""Calls of a port are told once they are over."""

from typing import Protocol

import pytest
import trio
import trio.testing

from semindex.observe.calls import Call, observed


class Port(Protocol):
    batch_size: int

    async def double(self, number: int, *, after: float = 0.0) -> int: ...


class Doubler:
    batch_size = 7

    async def double(self, number: int, *, after: float = 0.0) -> int:
        await trio.sleep(after)
        if number < 0:
            raise ValueError(number)
        return 2 * number


async def test_a_call_is_told_with_its_duration(autojump_clock: trio.testing.MockClock) -> None:
    calls: list[Call] = []
    port: Port = observed(Doubler(), calls.append, calls.append)

    assert await port.double(4, after=2.5) == 8

    assert calls == [Call("double", (4,), 2.5, None)] * 2
    assert port.batch_size == 7


async def test_a_call_that_failed_is_told_with_its_error() -> None:
    calls: list[Call] = []
    port: Port = observed(Doubler(), calls.append)

    with pytest.raises(ValueError, match="-1") as raised:
        await port.double(-1)

    assert [call.error for call in calls] == [raised.value]


async def test_a_call_that_was_cancelled_is_not_told(autojump_clock: trio.testing.MockClock) -> None:
    calls: list[Call] = []
    port: Port = observed(Doubler(), calls.append)

    with trio.move_on_after(1):
        await port.double(4, after=2)

    assert calls == []
