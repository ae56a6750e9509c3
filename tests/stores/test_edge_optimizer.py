"""When a collection of the embedded store is optimised; how, on the real engine, tests/stores/test_edge.py."""

import pytest
import trio
import trio.testing
from attrs import define, field

from semindex.stores import edge_optimizer
from semindex.stores.edge_gates import Gates
from semindex.stores.edge_optimizer import FIRST_PAUSE, LONGEST_PAUSE, Optimizer, worth_optimizing
from semindex.stores.edge_protocol import Settings

WS = "ws"


@pytest.mark.parametrize(
    ("points", "indexed", "removed", "dimension", "worth"),
    [
        pytest.param(50_000, 0, 0, 256, False, id="not yet large"),
        pytest.param(50_001, 0, 0, 256, True, id="many points"),
        pytest.param(17_000, 0, 0, 1024, True, id="many bytes"),
        pytest.param(100_000, 100_000, 0, 256, False, id="all in a graph"),
        pytest.param(100_000, 80_000, 0, 256, False, id="a fifth not in a graph"),
        pytest.param(100_000, 79_999, 0, 256, True, id="more than a fifth not in a graph"),
        pytest.param(100_000, 100_000, 20_001, 256, True, id="more than a fifth replaced since"),
        pytest.param(1_000, 0, 999, 256, False, id="too few dead for the engine"),
        pytest.param(1_000, 0, 1_000, 256, True, id="half dead"),
        pytest.param(4_000, 0, 1_000, 256, False, id="a fifth dead"),
        pytest.param(0, 0, 5_000, 256, True, id="all dead"),
    ],
)
def test_a_collection_is_optimised_when_large_or_full_of_dead_points(
    points: int, indexed: int, removed: int, dimension: int, worth: bool
) -> None:
    assert worth_optimizing(points, indexed, removed, dimension) is worth


@define
class Workshop:
    """An optimiser whose processes take an hour of virtual time, and the times at which it began."""

    optimizer: Optimizer = field(init=False)
    begun: list[float] = field(factory=list)
    calls: list[str] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.optimizer = Optimizer(Settings("", "", [], 0, 0), Gates(30), self.call)

    async def call(self, operation: str, collection: str) -> object:
        await trio.lowlevel.checkpoint()
        self.calls.append(operation)
        return {"points": 100_000, "indexed": 0, "removed": 0, "dimension": 256} if operation == "gauge" else None

    async def run(self, _: Settings, mode: str, collection: str, deadline: float) -> str:
        if mode == "copy":
            self.begun.append(trio.current_time())
        else:
            await trio.sleep(3600)
        return "100000"


@pytest.fixture
def workshop(monkeypatch: pytest.MonkeyPatch) -> Workshop:
    made = Workshop()
    monkeypatch.setattr(edge_optimizer, "_run", made.run)
    return made


async def attempt(workshop: Workshop, *, write_after: float | None = None) -> float:
    """Optimise, with a write after some seconds; return after how many seconds it began."""
    called = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(workshop.optimizer.optimize, WS)
        if write_after is not None:
            await trio.sleep(write_after)
            await workshop.optimizer.give_way(WS)
    return workshop.begun[-1] - called


async def test_each_attempt_that_a_write_ended_makes_the_next_one_wait_twice_as_long(
    autojump_clock: trio.testing.MockClock, workshop: Workshop
) -> None:
    waited = [await attempt(workshop, write_after=2000) for _ in range(9)]

    assert waited == [0, *(min(FIRST_PAUSE * 2**number, LONGEST_PAUSE) for number in range(8))]
    assert workshop.calls.count("abandon") == 9
    assert "replace" not in workshop.calls


async def test_after_one_that_succeeded_the_next_need_not_wait(
    autojump_clock: trio.testing.MockClock, workshop: Workshop
) -> None:
    await attempt(workshop, write_after=10)
    assert await attempt(workshop) == FIRST_PAUSE
    assert workshop.calls[-2:] == ["replace", "abandon"]
    assert await attempt(workshop) == 0


async def test_a_collection_that_was_dropped_is_forgotten(
    autojump_clock: trio.testing.MockClock, workshop: Workshop
) -> None:
    await attempt(workshop, write_after=10)
    await workshop.optimizer.forget(WS)
    assert await attempt(workshop) == 0


async def test_a_write_while_it_waits_for_quiet_ends_the_attempt_before_it_began(
    autojump_clock: trio.testing.MockClock, workshop: Workshop
) -> None:
    await attempt(workshop, write_after=10)
    calls = list(workshop.calls)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(workshop.optimizer.optimize, WS)
        await trio.sleep(FIRST_PAUSE / 2)
        await workshop.optimizer.give_way(WS)
    assert workshop.calls == calls


async def test_collections_are_optimised_one_at_a_time(
    autojump_clock: trio.testing.MockClock, workshop: Workshop
) -> None:
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for name in ("one", "two", "three"):
            nursery.start_soon(workshop.optimizer.optimize, name)
    assert [time - began for time in workshop.begun] == [0, 3600, 7200]
