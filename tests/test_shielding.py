"""What goes on although its caller is cancelled, and for how long."""

import logging

import pytest
import trio
from trio.testing import MockClock

from semindex.shielding import grace_period, shielded


async def test_a_shielded_body_goes_on_although_its_caller_is_cancelled(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    finished = False
    with trio.CancelScope() as caller:
        caller.cancel()
        with shielded(5, "the work"):
            await trio.sleep(4)
            finished = True
    assert finished
    assert caplog.messages == []


async def test_a_shielded_body_is_cut_by_its_bound_and_the_log_names_it(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    with shielded(5, "the work"):
        await trio.sleep_forever()
    assert trio.current_time() == 5
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, "the work took longer than 5 seconds and was cut")
    ]


async def test_an_error_that_comes_before_the_bound_is_no_cut(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        with shielded(5, "the work"):
            await trio.sleep(4)
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        await fail()
    assert caplog.messages == []


async def test_a_body_with_a_grace_period_takes_its_time_while_nobody_cancels(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    finished = False
    async with grace_period(5, "the work"):
        await trio.sleep(60)
        finished = True
    assert finished
    assert trio.current_time() == 60
    assert caplog.messages == []


@pytest.mark.parametrize(("seconds", "finishes"), [(14, True), (60, False)])
async def test_a_grace_period_begins_when_the_caller_is_cancelled(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, seconds: float, finishes: bool
) -> None:
    finished = False
    with trio.move_on_after(10) as caller:
        async with grace_period(5, "the work"):
            await trio.sleep(seconds)
            finished = True
    assert caller.cancelled_caught
    assert finished is finishes
    assert trio.current_time() == min(seconds, 15)
    assert bool(caplog.messages) is not finishes


async def test_a_caller_that_is_cancelled_already_has_the_whole_grace_period(autojump_clock: MockClock) -> None:
    finished = False
    with trio.CancelScope() as caller:
        caller.cancel()
        async with grace_period(5, "the work"):
            await trio.sleep(4)
            finished = True
    assert finished
    assert trio.current_time() == 4


async def test_an_error_within_a_grace_period_comes_out(autojump_clock: MockClock) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(OSError, match="full")):
        async with grace_period(5, "the work"):
            raise OSError("full")
