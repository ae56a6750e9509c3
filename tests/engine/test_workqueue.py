from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from semindex.engine.priority import Priority
from semindex.engine.workqueue import Taken, WorkQueue

EDIT, BACKFILL = Priority.EDIT, Priority.BACKFILL
ONLY_EDITS = (EDIT,)


def queue_of(*paths: str, priority: Priority = EDIT) -> WorkQueue:
    queue = WorkQueue()
    for path in paths:
        queue.mark(path, priority)
    return queue


async def take(queue: WorkQueue, limit: int = 99, lanes: Sequence[Priority] = (EDIT, BACKFILL)) -> list[str]:
    with trio.fail_after(1):
        return (await queue.take(limit, lanes)).paths


async def test_paths_are_taken_in_the_order_of_their_first_mark_and_within_the_limit() -> None:
    queue = queue_of("b", "a", "c", "b")

    assert await take(queue, 2) == ["b", "a"]
    assert await take(queue, 2) == ["c"]
    assert len(queue) == 3


async def test_the_age_of_each_edit_is_told_when_it_is_settled(autojump_clock: trio.testing.MockClock) -> None:
    ages = list[float]()
    queue = WorkQueue(ages.append)
    queue.mark("old", BACKFILL)
    queue.mark("edited", EDIT)
    await trio.sleep(3)
    await take(queue)
    await take(queue)
    queue.mark("edited", EDIT)
    await trio.sleep(4)

    for path in ("old", "edited"):
        queue.settle(path)
    await take(queue)
    queue.settle("edited")

    assert ages == [7, 4]


async def test_edits_are_taken_before_backfill_and_never_mixed_with_it() -> None:
    queue = queue_of("old", priority=BACKFILL)
    queue.mark("edited", EDIT)

    assert await queue.take(9) == Taken(EDIT, ["edited"])
    assert await queue.take(9) == Taken(BACKFILL, ["old"])


async def test_a_waiting_path_that_becomes_urgent_changes_lanes() -> None:
    queue = queue_of("a", "b", priority=BACKFILL)

    queue.mark("b", EDIT)
    queue.mark("a", BACKFILL)

    assert await queue.take(9) == Taken(EDIT, ["b"])
    assert await queue.take(9) == Taken(BACKFILL, ["a"])


async def test_an_urgent_path_stays_urgent_when_a_leisurely_mark_follows() -> None:
    queue = queue_of("a", priority=EDIT)
    queue.mark("a", BACKFILL)

    assert await queue.take(9) == Taken(EDIT, ["a"])


async def test_a_worker_of_one_lane_is_not_given_the_other(autojump_clock: trio.testing.MockClock) -> None:
    queue = queue_of("old", priority=BACKFILL)

    with trio.move_on_after(1) as waiting:
        await queue.take(9, ONLY_EDITS)

    assert waiting.cancelled_caught
    assert await take(queue) == ["old"]


async def test_a_waiting_worker_gets_what_is_marked_later(nursery: trio.Nursery) -> None:
    queue, taken = WorkQueue(), list[Taken]()

    async def work() -> None:
        taken.append(await queue.take(9))

    nursery.start_soon(work)
    await trio.testing.wait_all_tasks_blocked()
    queue.mark("a", EDIT)
    await trio.testing.wait_all_tasks_blocked()

    assert taken == [Taken(EDIT, ["a"])]


async def test_a_path_marked_while_it_is_worked_on_is_worked_on_once_more() -> None:
    queue = queue_of("a")
    assert await take(queue) == ["a"]
    queue.mark("a", EDIT)
    queue.mark("a", EDIT)

    assert queue.settle("a") is False
    assert await take(queue) == ["a"]
    assert queue.settle("a") is True
    assert queue.outstanding() == []


async def test_a_path_is_never_with_two_workers(autojump_clock: trio.testing.MockClock) -> None:
    queue = queue_of("a")
    await take(queue)
    queue.mark("a", EDIT)

    with trio.move_on_after(1) as waiting:
        await queue.take(9)

    assert waiting.cancelled_caught


async def test_a_path_given_back_goes_behind_the_others() -> None:
    queue = queue_of("a", "b")
    assert await take(queue, 1) == ["a"]

    queue.give_back("a")

    assert await take(queue) == ["b", "a"]


async def test_a_path_that_became_urgent_while_taken_is_given_back_as_urgent() -> None:
    queue = queue_of("a", priority=BACKFILL)
    await take(queue)
    queue.mark("a", EDIT)

    queue.give_back("a")

    assert await queue.take(9) == Taken(EDIT, ["a"])


async def test_cancelling_a_worker_that_waits_takes_nothing() -> None:
    queue = queue_of("a")
    with trio.CancelScope() as scope:
        scope.cancel()
        await queue.take(9)

    assert scope.cancelled_caught
    assert await take(queue) == ["a"]


async def test_whoever_waits_for_paths_is_told_when_all_of_them_are_settled(nursery: trio.Nursery) -> None:
    queue, told = queue_of("a", "b", "c"), list[bool]()

    async def wait() -> None:
        told.append(await queue.settled(["a", "b", "unknown"]))

    nursery.start_soon(wait)
    await take(queue)
    await trio.testing.wait_all_tasks_blocked()
    queue.settle("a")
    queue.settle("c")
    await trio.testing.wait_all_tasks_blocked()
    assert told == []

    queue.settle("b")
    await trio.testing.wait_all_tasks_blocked()
    assert told == [True]


async def test_work_that_began_before_the_mark_does_not_settle_it(nursery: trio.Nursery) -> None:
    queue, told = queue_of("a"), list[bool]()
    await take(queue)
    queue.mark("a", EDIT)

    async def wait() -> None:
        told.append(await queue.settled(["a"]))

    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    queue.settle("a")
    await trio.testing.wait_all_tasks_blocked()
    assert told == []

    await take(queue)
    queue.settle("a")
    await trio.testing.wait_all_tasks_blocked()
    assert told == [True]


async def test_a_file_that_never_stops_changing_keeps_nobody_waiting(nursery: trio.Nursery) -> None:
    queue, told = queue_of("a"), list[bool]()

    async def wait() -> None:
        told.append(await queue.settled(["a"]))

    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    await take(queue)
    queue.mark("a", EDIT)
    queue.settle("a")
    await trio.testing.wait_all_tasks_blocked()

    assert told == [True]
    assert queue.outstanding() == ["a"]


async def test_giving_back_settles_nothing(autojump_clock: trio.testing.MockClock) -> None:
    queue = queue_of("a")
    await take(queue)

    with trio.move_on_after(1) as waiting:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(queue.settled, ["a"])
            await trio.testing.wait_all_tasks_blocked()
            queue.give_back("a")

    assert waiting.cancelled_caught


async def test_a_closed_queue_hands_out_nothing_and_says_that_its_paths_were_not_settled(nursery: trio.Nursery) -> None:
    queue, told = queue_of("a", "b"), list[object]()

    async def wait() -> None:
        told.append(await queue.settled(["a"]))

    async def work() -> None:
        told.append((await queue.take(9, (BACKFILL,))).paths)

    nursery.start_soon(wait)
    nursery.start_soon(work)
    await trio.testing.wait_all_tasks_blocked()
    queue.close()
    await trio.testing.wait_all_tasks_blocked()

    assert sorted(told, key=str) == [False, []]
    assert await queue.settled(["b"]) is False
    assert await queue.settled([]) is True


async def test_what_was_taken_before_the_close_may_still_be_settled() -> None:
    queue = queue_of("a", "b")
    assert await take(queue, 1) == ["a"]
    queue.close()

    assert queue.settle("a") is True
    assert queue.outstanding() == ["b"]
    assert await take(queue) == []


async def test_marks_after_the_close_are_not_taken_in() -> None:
    queue = queue_of("a")
    queue.close()
    queue.mark("b", EDIT)

    assert queue.outstanding() == ["a"]
    assert await take(queue) == []


async def test_idle_waits_for_what_is_marked_while_it_wakes_up(nursery: trio.Nursery) -> None:
    queue, told = queue_of("a"), list[list[str]]()

    async def wait() -> None:
        await queue.idle()
        told.append(queue.outstanding())

    nursery.start_soon(wait)
    await take(queue)
    await trio.testing.wait_all_tasks_blocked()
    queue.settle("a")
    queue.mark("b", EDIT)
    await trio.testing.wait_all_tasks_blocked()
    assert told == []

    await take(queue)
    queue.settle("b")
    await trio.testing.wait_all_tasks_blocked()
    assert told == [[]]


async def test_nothing_is_outstanding_at_the_moment_at_which_idle_returns(
    autojump_clock: trio.testing.MockClock,
) -> None:
    queue = WorkQueue()

    async def mark() -> None:
        queue.mark("a", EDIT)
        await trio.lowlevel.checkpoint()

    with trio.move_on_after(1):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(mark)
            await queue.idle()
            assert queue.outstanding() == []


async def test_more_marks_than_seen_wake_whoever_waits_for_them(nursery: trio.Nursery) -> None:
    queue, told = queue_of("a"), list[int]()

    async def wait() -> None:
        await queue.marked_beyond(1)
        told.append(queue.marks)

    nursery.start_soon(wait)
    await trio.testing.wait_all_tasks_blocked()
    assert told == []

    queue.mark("a", EDIT)
    await trio.testing.wait_all_tasks_blocked()
    assert told == [2]


async def test_progress_counts_from_the_last_time_that_nothing_was_outstanding() -> None:
    queue = queue_of("a", "b")
    await take(queue)
    queue.settle("a")
    queue.mark("b", EDIT)
    queue.settle("b")
    assert (queue.settled_in_run, queue.marked_in_run) == (1, 2)

    await take(queue)
    queue.settle("b")
    assert (queue.settled_in_run, queue.marked_in_run) == (2, 2)

    queue.mark("c", EDIT)
    assert (queue.settled_in_run, queue.marked_in_run) == (0, 1)


@pytest.mark.parametrize("call", ["take", "settled", "settled at once", "idle", "take when closed"])
async def test_every_wait_is_a_checkpoint(call: str) -> None:
    queue = queue_of("a")
    with trio.testing.assert_checkpoints():
        match call:
            case "take":
                await queue.take(1)
            case "settled":
                queue.close()
                await queue.settled(["a"])
            case "settled at once":
                await queue.settled([])
            case "take when closed":
                queue.close()
                await queue.take(1)
            case _:
                await WorkQueue().idle()


async def test_work_has_the_age_of_its_oldest_change(autojump_clock: trio.testing.MockClock) -> None:
    queue = queue_of("a")
    await trio.sleep(2)
    queue.mark("b", EDIT)
    await trio.sleep(1)
    queue.mark("a", EDIT)
    assert queue.lag() == 3

    await take(queue, 1)
    queue.settle("a")
    assert queue.lag() == pytest.approx(1)


async def test_a_file_that_never_stops_changing_is_only_as_late_as_its_last_unsettled_change(
    autojump_clock: trio.testing.MockClock,
) -> None:
    queue = queue_of("a")
    for _ in range(10):
        await take(queue)
        await trio.sleep(1)
        queue.mark("a", EDIT)
        await trio.sleep(1)
        queue.mark("a", EDIT)
        queue.settle("a")

    assert queue.lag() == pytest.approx(1)


PATHS = st.sampled_from("abcd")


def in_a_run(call: Callable[..., object], *args: object) -> object:
    async def run() -> object:
        await trio.lowlevel.checkpoint()
        return call(*args)

    return trio.run(run)


class QueueMachine(RuleBasedStateMachine):
    """Against a plain model: each path waits or is held; a held one knows whether it was marked since."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = WorkQueue()
        self.waiting: set[str] = set()
        self.held: dict[str, bool] = {}
        self.urgency: dict[str, Priority] = {}

    @rule(path=PATHS, priority=st.sampled_from([EDIT, BACKFILL]))
    def mark(self, path: str, priority: Priority) -> None:
        in_a_run(self.queue.mark, path, priority)
        self.urgency[path] = min(priority, self.urgency.get(path, priority))
        if path in self.held:
            self.held[path] = True
        else:
            self.waiting.add(path)

    @rule(limit=st.integers(1, 3), lanes=st.sampled_from([ONLY_EDITS, (EDIT, BACKFILL), (BACKFILL, EDIT)]))
    def take(self, limit: int, lanes: Sequence[Priority]) -> None:
        by_lane = [{path for path in self.waiting if self.urgency[path] is lane} for lane in lanes]
        candidates = next(filter(None, by_lane), set[str]())
        if not candidates:
            return
        taken = trio.run(self.queue.take, limit, lanes).paths

        assert len(taken) == min(limit, len(candidates))
        assert set(taken) <= candidates
        self.waiting -= set(taken)
        self.held |= dict.fromkeys(taken, False)

    @rule(data=st.data())
    def settle(self, data: st.DataObject) -> None:
        if not self.held:
            return
        path = data.draw(st.sampled_from(sorted(self.held)))
        marked_again = self.held.pop(path)

        assert in_a_run(self.queue.settle, path) is not marked_again
        if marked_again:
            self.waiting.add(path)
        else:
            del self.urgency[path]

    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        if not self.held:
            return
        path = data.draw(st.sampled_from(sorted(self.held)))
        del self.held[path]
        in_a_run(self.queue.give_back, path)
        self.waiting.add(path)

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        assert sorted(self.queue.outstanding()) == sorted([*self.waiting, *self.held])
        assert self.queue.marked_in_run - self.queue.settled_in_run == len(self.queue)


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=50, stateful_step_count=25)


OPERATIONS = st.one_of(
    st.tuples(st.just("mark"), PATHS),
    st.tuples(st.just("take"), PATHS),
    st.tuples(st.just("settle"), PATHS),
    st.tuples(st.just("give back"), PATHS),
    st.tuples(st.just("wait"), st.sets(PATHS, min_size=1)),
)


@define
class Waits:
    """Waiters against a plain account of marks: each is told once work that began after its last mark is settled."""

    queue: WorkQueue = field(factory=WorkQueue)
    marks: Counter[str] = field(factory=Counter)
    held: dict[str, int] = field(factory=dict)
    settled: Counter[str] = field(factory=Counter)
    """Path → the latest mark that was settled."""
    targets: list[dict[str, int]] = field(factory=list)
    told: list[int] = field(factory=list)

    async def run(self, operations: Sequence[tuple[str, Any]]) -> None:
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for name, what in operations:
                    await self.carry_out(nursery, name, what)
                    await trio.testing.wait_all_tasks_blocked()
                    done = [number for number, targets in enumerate(self.targets) if self.is_settled(targets)]
                    assert sorted(self.told) == done
                nursery.cancel_scope.cancel()

    def is_settled(self, targets: dict[str, int]) -> bool:
        return all(self.settled[path] >= mark for path, mark in targets.items())

    async def carry_out(self, nursery: trio.Nursery, name: str, what: Any) -> None:
        match name:
            case "mark":
                self.queue.mark(what, EDIT)
                self.marks[what] += 1
            case "take" if len(self.queue) > len(self.held):
                for path in (await self.queue.take(1)).paths:
                    self.held[path] = self.marks[path]
            case "settle" if what in self.held:
                self.queue.settle(what)
                self.settled[what] = self.held.pop(what)
            case "give back" if what in self.held:
                self.queue.give_back(what)
                del self.held[what]
            case "wait":
                self.targets.append({path: self.marks[path] for path in what if path in self.queue})
                nursery.start_soon(self.wait, len(self.targets) - 1, what)
            case _:
                await trio.lowlevel.checkpoint()

    async def wait(self, number: int, paths: Iterable[str]) -> None:
        assert await self.queue.settled(paths)
        self.told.append(number)


@settings(max_examples=60)
@given(st.lists(OPERATIONS, max_size=25))
def test_a_waiter_is_told_exactly_when_what_it_waits_for_is_settled(operations: Sequence[tuple[str, Any]]) -> None:
    trio.run(Waits().run, operations)
