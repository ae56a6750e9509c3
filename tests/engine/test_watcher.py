"""From a hint of change to an index that has taken it in, without anybody asking."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
import trio
import trio.testing

from semindex.engine.search import SearchRequest
from semindex.engine.watcher import FIRST_RETRY, LONGEST_RETRY, MAX_PATHS, SWEEP_PAUSE, SWEEPS_IN_A_ROW, Watcher
from semindex.model.errors import WorkspaceUnavailable
from semindex.model.status import State
from semindex.ports import EventSource
from semindex.testing.bench import Bench, Process, words
from semindex.testing.intercept import Gate
from semindex.testing.watch import DelayedSource, MemorySource, MemoryWatch

ROOT = "/primary"
PATIENCE = 3600.0
GONE = WorkspaceUnavailable("The root is gone.")


class Engine:
    """What a watcher asks of its workspace, written down."""

    def __init__(self, source: EventSource | None) -> None:
        self.looks: list[tuple[float, set[str]]] = []
        self.sweeps: list[float] = []
        self.troubles: list[str | None] = []
        self.directories = [""]
        self.look_seconds = 0.0
        self.error: Exception | None = None
        self.watcher = Watcher(source, ROOT, self.look, self.sweep, self.troubles.append)

    async def look(self, paths: Collection[str]) -> None:
        self.looks.append((trio.current_time(), set(paths)))
        await trio.sleep(self.look_seconds)
        if self.error is not None:
            raise self.error

    async def sweep(self) -> None:
        await trio.lowlevel.checkpoint()
        self.sweeps.append(trio.current_time())
        if self.error is not None:
            raise self.error
        self.watcher.saw(list(self.directories))


Watching = Callable[[EventSource], Awaitable[Engine]]


@pytest.fixture
def watching(nursery: trio.Nursery) -> Watching:
    """Runs a watcher that has seen one sweep, and the one that this causes."""

    async def watching(source: EventSource) -> Engine:
        engine = Engine(source)
        nursery.start_soon(engine.watcher.run)
        await engine.sweep()
        await trio.testing.wait_all_tasks_blocked()
        engine.sweeps.clear()
        return engine

    return watching


# Patience


async def test_hints_are_collected_until_it_is_quiet(
    watching: Watching, autojump_clock: trio.testing.MockClock
) -> None:
    source = MemorySource()
    engine = await watching(source)
    for path in ("a.py", "b.py", "a.py"):
        source.changed(ROOT, path)
        await trio.sleep(0.1)
    await trio.sleep(1)

    [(when, paths)] = engine.looks
    assert when == pytest.approx(0.35)
    assert paths == {"a.py", "b.py"}
    assert engine.sweeps == []


async def test_a_stream_of_hints_that_never_ends_is_served_all_the_same(
    watching: Watching,
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = MemorySource()
    engine = await watching(source)
    for number in range(50):
        source.changed(ROOT, f"{number}.py")
        await trio.sleep(0.1)
    await trio.sleep(1)

    times = [time for time, _ in engine.looks]
    assert times[0] == pytest.approx(1.0)
    assert max(later - earlier for earlier, later in pairwise(times)) < 1.2
    assert set().union(*(paths for _, paths in engine.looks)) == {f"{number}.py" for number in range(50)}


async def test_hints_that_arrive_during_a_look_are_looked_at_after_it(
    watching: Watching, autojump_clock: trio.testing.MockClock
) -> None:
    source = MemorySource()
    engine = await watching(source)
    engine.look_seconds = 3.0
    source.changed(ROOT, "a.py")
    await trio.sleep(1)
    source.changed(ROOT, "a.py")
    await trio.sleep(5)

    assert [when for when, _ in engine.looks] == pytest.approx([0.15, 3.3])
    assert [paths for _, paths in engine.looks] == [{"a.py"}, {"a.py"}]


# What is compared


async def test_a_rescan_is_a_sweep_and_needs_no_look(
    watching: Watching, autojump_clock: trio.testing.MockClock
) -> None:
    source = MemorySource()
    engine = await watching(source)
    source.changed(ROOT, "a.py")
    source.overflow()
    await trio.sleep(1)

    assert engine.sweeps == [pytest.approx(0.15)]
    assert engine.looks == []


async def test_more_hints_than_a_sweep_is_worth_become_one(
    watching: Watching, autojump_clock: trio.testing.MockClock
) -> None:
    source = MemorySource()
    engine = await watching(source)
    for number in range(MAX_PATHS):
        source.changed(ROOT, f"{number}.py")
    await trio.sleep(0.01)
    source.changed(ROOT, "one more.py")
    await trio.sleep(1)

    assert (len(engine.sweeps), engine.looks) == (1, [])


async def test_a_look_that_is_not_possible_now_becomes_a_sweep(
    watching: Watching, autojump_clock: trio.testing.MockClock
) -> None:
    source = MemorySource()
    engine = await watching(source)
    engine.error = GONE
    source.changed(ROOT, "a.py")
    await trio.sleep(1)
    assert len(engine.sweeps) == 1

    engine.error = None
    source.changed(ROOT, "b.py")
    await trio.sleep(1)
    assert engine.looks[-1][1] == {"b.py"}


# What is followed


async def test_what_a_sweep_entered_is_followed_and_swept_again_if_it_is_new(
    watching: Watching,
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = MemorySource()
    engine = await watching(source)
    engine.directories = ["", "a", "a/b"]
    await engine.sweep()
    await trio.testing.wait_all_tasks_blocked()

    assert source.watches[0].followed == {"", "a", "a/b"}
    assert len(engine.sweeps) == 2


async def test_a_program_that_makes_directories_without_end_does_not_cause_sweeps_so(
    watching: Watching,
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = MemorySource()
    engine = await watching(source)
    sweep = engine.sweep

    async def sweep_and_find_more() -> None:
        engine.directories.append(f"new{len(engine.directories)}")
        await sweep()

    engine.watcher = Watcher(source, ROOT, engine.look, sweep_and_find_more, engine.troubles.append)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(engine.watcher.run)
        engine.watcher.saw([""])
        await trio.sleep(10 * SWEEP_PAUSE)
        nursery.cancel_scope.cancel()

    assert sum(time < SWEEP_PAUSE / 2 for time in engine.sweeps) == SWEEPS_IN_A_ROW
    assert 8 <= sum(time > SWEEP_PAUSE / 2 for time in engine.sweeps) <= 10


async def test_a_new_directory_now_and_then_is_swept_at_once(
    watching: Watching, autojump_clock: trio.testing.MockClock
) -> None:
    engine = await watching(MemorySource())
    for number in range(3 * SWEEPS_IN_A_ROW):
        engine.directories.append(f"new{number}")
        began = trio.current_time()
        await engine.sweep()
        await trio.sleep(1)

        assert engine.sweeps[-2:] == [began, began]


# Trouble


class Unreliable:
    """An event source whose watches fail while a test wants them to."""

    def __init__(self) -> None:
        self.twin = MemorySource()
        self.failing = trio.Event()

    @property
    def watched(self) -> int:
        return self.twin.watched

    @asynccontextmanager
    async def watch(self, root: str) -> AsyncIterator[MemoryWatch]:
        async with self.twin.watch(root) as watch, trio.open_nursery() as nursery:
            nursery.start_soon(self._fail)
            yield watch
            nursery.cancel_scope.cancel()

    async def _fail(self) -> None:
        await self.failing.wait()
        raise OSError("no watching here")


async def test_a_watch_that_fails_says_so_sweeps_and_begins_again(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    source = Unreliable()
    source.failing.set()
    engine = Engine(source)
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(engine.watcher.run)
            await trio.sleep(10 * LONGEST_RETRY)
            assert engine.troubles == ["Watching failed with an unexpected OSError; see the log."]
            assert "no watching here" in caplog.text
            pauses = [later - earlier for earlier, later in pairwise([0.0, *engine.sweeps])]
            assert pauses[:5] == pytest.approx([FIRST_RETRY, 4, 8, 16, 32])
            assert pauses[-1] == pytest.approx(LONGEST_RETRY)

            source.failing = trio.Event()
            await trio.sleep(3 * LONGEST_RETRY)
            assert engine.troubles[1:] == [None]
            source.twin.changed(ROOT, "a.py")
            await trio.sleep(1)
            assert engine.looks[-1][1] == {"a.py"}

            engine.sweeps.clear()
            source.failing.set()
            await trio.sleep(1.5 * FIRST_RETRY)
            assert len(engine.sweeps) == 1
            nursery.cancel_scope.cancel()


async def test_a_watch_s_own_trouble_is_told_and_taken_back(
    watching: Watching, autojump_clock: trio.testing.MockClock
) -> None:
    source = MemorySource()
    engine = await watching(source)
    source.trouble = "There are too few watches."
    source.overflow()
    await trio.sleep(1)
    source.overflow()
    await trio.sleep(1)
    source.trouble = None
    await engine.sweep()
    await trio.sleep(1)

    assert engine.troubles == ["There are too few watches.", None]


async def test_without_a_source_there_is_nothing_to_do() -> None:
    engine = Engine(None)
    with trio.fail_after(1):
        await engine.watcher.run()


# In a workspace


@asynccontextmanager
async def edited(source: MemorySource, *, delay: float = 0.0) -> AsyncIterator[tuple[Bench, Process]]:
    """Run a workspace that was built, and whose tree the source listens to."""
    bench = Bench(events=DelayedSource(source, delay) if delay else source)
    tree = bench.tree(ROOT, a=words("apple"), b=words("banana"))
    source.listen(ROOT, tree)
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await (await process.start(ROOT)).settled()
            await trio.sleep(1)
            yield bench, process


async def found_without_waiting(process: Process, query: str) -> list[str]:
    answer = await process.workspaces[ROOT].search(SearchRequest(query, min_score=0.2, fresh=False))
    return [hit.file_path for hit in answer.results]


async def test_an_edit_is_searchable_within_a_moment_and_costs_no_sweep(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with edited(MemorySource()) as (bench, process):
        tree = bench.trees[ROOT]
        scans = tree.scans
        tree.write("a.py", words("apricot"))
        tree.write("new.py", words("cherry"))
        tree.delete("b.py")
        await trio.sleep(0.5)

        assert await found_without_waiting(process, "apricot") == ["a.py"]
        assert await found_without_waiting(process, "cherry") == ["new.py"]
        assert await found_without_waiting(process, "apple banana") == []
        assert {record.path for record in process.workspaces[ROOT].index.table} == {"a.py", "new.py"}
        assert tree.scans == scans


async def test_files_of_a_new_directory_are_searchable_and_so_are_later_ones(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with edited(MemorySource()) as (bench, process):
        bench.trees[ROOT].write("deep/er/new.py", words("cherry"))
        await trio.sleep(0.5)
        assert await found_without_waiting(process, "cherry") == ["deep/er/new.py"]

        bench.trees[ROOT].write("deep/er/more.py", words("damson"))
        await trio.sleep(0.5)
        assert await found_without_waiting(process, "damson") == ["deep/er/more.py"]


async def test_a_change_of_the_rules_reaches_files_that_did_not_change(autojump_clock: trio.testing.MockClock) -> None:
    async with edited(MemorySource()) as (bench, process):
        bench.trees[ROOT].write(".gitignore", "a.py\n")
        await trio.sleep(0.5)
        assert {record.path for record in process.workspaces[ROOT].index.table} == {"b.py"}

        bench.trees[ROOT].delete(".gitignore")
        await trio.sleep(0.5)
        assert await found_without_waiting(process, "apple") == ["a.py"]


async def test_an_edit_during_the_first_build_is_taken_in_after_it(autojump_clock: trio.testing.MockClock) -> None:
    source, gate = MemorySource(), Gate("pool.chunk", after=True)
    bench = Bench(events=source)
    tree = bench.tree(ROOT, a=words("apple"))
    source.listen(ROOT, tree)
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            workspace = await process.start(ROOT)
            await gate.reached()
            tree.write("a.py", words("apricot"))
            await trio.sleep(1)
            gate.open()
            await workspace.settled()

            assert await found_without_waiting(process, "apricot") == ["a.py"]


async def test_an_edit_whose_event_is_late_is_found_at_once_by_who_asks_for_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with edited(MemorySource(), delay=5.0) as (bench, process):
        bench.trees[ROOT].write("a.py", words("apricot"))
        assert (await process.found(ROOT, "apricot")).paths == ("a.py",)

        bench.trees[ROOT].write("b.py", words("blueberry"))
        await trio.sleep(4)
        assert await found_without_waiting(process, "blueberry banana") == []
        await trio.sleep(7)
        assert await found_without_waiting(process, "blueberry") == ["b.py"]


async def test_an_edit_whose_event_is_lost_is_found_by_who_asks_and_by_the_next_sweep(
    autojump_clock: trio.testing.MockClock,
) -> None:
    source = MemorySource()
    async with edited(source) as (bench, process):
        source.losing = True
        bench.trees[ROOT].write("a.py", words("apricot"))
        assert (await process.found(ROOT, "apricot")).paths == ("a.py",)

        bench.trees[ROOT].write("b.py", words("blueberry"))
        await trio.sleep(290)
        assert await found_without_waiting(process, "blueberry") == []
        await trio.sleep(15)
        assert await found_without_waiting(process, "blueberry") == ["b.py"]


async def test_a_tree_that_cannot_be_watched_is_searchable_and_says_so(autojump_clock: trio.testing.MockClock) -> None:
    source = MemorySource()
    source.trouble = "There are too few watches."
    async with edited(source) as (_, process):
        status = process.workspaces[ROOT].status()

        assert (status.state, status.last_error) == (State.INDEXED, "There are too few watches.")


async def test_a_released_workspace_is_watched_no_longer(autojump_clock: trio.testing.MockClock) -> None:
    source = MemorySource()
    async with edited(source) as (_, process):
        assert len(source.watches) == 1
        await process.stop(ROOT)

        assert source.watches == []
