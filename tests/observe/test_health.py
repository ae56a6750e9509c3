"""Health follows the calls that are made; probes are made only while they fail."""

from datetime import UTC, datetime

import pytest
import trio
import trio.testing

from semindex.model.answers import DependencyStatus
from semindex.model.errors import SemindexError, StoreRejected, StoreUnavailable
from semindex.observe.calls import Call
from semindex.observe.health import PROBE_PAUSE, PROBE_TIMEOUT, DependencyHealth

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


class Watched:
    """A health, and how often it said that it changed."""

    def __init__(self) -> None:
        self.changes = 0
        self.health = DependencyHealth(StoreUnavailable, self._change, clock=lambda: NOW)

    def _change(self) -> None:
        self.changes += 1

    def call(self, error: Exception | None = None, seconds: float = 0.0125) -> DependencyStatus:
        self.health(Call("search", (), seconds, error))
        return self.health.status


def test_nothing_is_held_against_a_dependency_that_was_never_called() -> None:
    assert Watched().health.status == DependencyStatus(reachable=True)


def test_a_call_that_was_not_answered_makes_it_unreachable_until_one_is() -> None:
    watched = Watched()

    assert watched.call(StoreUnavailable("It has gone.")) == DependencyStatus(False, 12.5, "It has gone.", NOW)
    watched.call(StoreUnavailable("It has gone."))
    assert watched.changes == 1
    assert watched.call() == DependencyStatus(True, 12.5, "It has gone.", NOW)
    assert watched.changes == 2


@pytest.mark.parametrize("error", [StoreRejected("No."), SemindexError("No.")])
def test_a_refusal_is_an_answer(error: Exception) -> None:
    assert Watched().call(error).reachable


def test_an_error_that_no_adapter_knows_is_none_and_its_message_is_not_told() -> None:
    assert Watched().call(ValueError("a secret")).last_error == "An unexpected ValueError."


async def test_probes_are_made_only_while_calls_fail(autojump_clock: trio.testing.MockClock) -> None:
    watched, probes = Watched(), list[float]()

    async def probe() -> None:
        probes.append(trio.current_time())
        if len(probes) == 1:
            watched.call(StoreUnavailable("Still away."))
            raise StoreUnavailable("Still away.")
        if len(probes) == 2:
            await trio.sleep_forever()
        watched.call()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watched.health.probe_while_failing, probe)
        await trio.sleep(100)
        assert probes == []
        began = trio.current_time()
        watched.call(StoreUnavailable("It has gone."))
        await trio.sleep(100)
        expected = [PROBE_PAUSE, 2 * PROBE_PAUSE, 3 * PROBE_PAUSE + PROBE_TIMEOUT]
        assert [time - began for time in probes] == pytest.approx(expected)
        assert watched.health.status.reachable
        nursery.cancel_scope.cancel()


async def test_a_call_that_succeeds_meanwhile_saves_the_probe(autojump_clock: trio.testing.MockClock) -> None:
    watched, probes = Watched(), list[float]()

    async def probe() -> None:
        await trio.lowlevel.checkpoint()
        probes.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watched.health.probe_while_failing, probe)
        watched.call(StoreUnavailable("It has gone."))
        await trio.sleep(PROBE_PAUSE / 2)
        watched.call()
        await trio.sleep(100)
        nursery.cancel_scope.cancel()

    assert probes == []
