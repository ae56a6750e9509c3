"""Freshness: what a search waits for, and what it says of it."""

import pytest
import trio
import trio.testing

from semindex.engine.search import SearchAnswer, SearchRequest
from semindex.model.errors import NotReady, StateDamaged
from semindex.model.status import State
from semindex.testing.bench import Bench, Process, words
from semindex.testing.intercept import Failing, Gate, Recorder
from semindex.testing.watch import DelayedSource, MemorySource

ROOT = "/primary"
PATIENCE = 60.0

pytestmark = pytest.mark.parametrize("watching", ["off", "prompt", "late"])


def bench_with(watching: str) -> Bench:
    """Return a bench whose primary tree is not watched, is watched, or is watched with events that come 5 s late."""
    source = MemorySource()
    bench = Bench(events={"off": None, "prompt": source, "late": DelayedSource(source, 5)}[watching])
    source.listen(ROOT, bench.tree(ROOT))
    return bench


async def ask(process: Process, query: str, **fields: object) -> SearchAnswer:
    values: dict[str, object] = {"min_score": 0.2, **fields}
    return await process.workspaces[ROOT].search(SearchRequest(query, **values))  # type: ignore[arg-type]  # shorthand


async def expect(process: Process, query: str, expected: list[str]) -> None:
    answer = await ask(process, query)
    assert (paths(answer), answer.fresh, answer.pending) == (expected, True, ())


def paths(answer: SearchAnswer) -> list[str]:
    return [hit.file_path for hit in answer.results]


async def test_a_search_finds_what_was_written_before_it(autojump_clock: trio.testing.MockClock, watching: str) -> None:
    bench = bench_with(watching)
    tree = bench.tree(ROOT, a=words("apple"), b=words("banana"))
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await (await process.start(ROOT)).settled()
            tree.write("a.py", words("apricot"))
            tree.write("new.py", words("cherry"))
            tree.delete("b.py")

            for query, expected in {"apricot": ["a.py"], "cherry": ["new.py"], "apple": [], "banana": []}.items():
                await expect(process, query, expected)


@pytest.mark.parametrize("seconds", [-86400, 86400], ids=["back", "forth"])
async def test_edits_are_found_although_the_clock_of_the_machine_jumps(
    autojump_clock: trio.testing.MockClock, watching: str, seconds: int
) -> None:
    bench = bench_with(watching)
    tree = bench.tree(ROOT, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await (await process.start(ROOT)).settled()
            tree.write("a.py", words("lemon"))
            await expect(process, "lemon", ["a.py"])
            for query in ("apricot", "banana", "cherry"):
                tree.advance(seconds)
                tree.write("a.py", words(query))
                await expect(process, query, ["a.py"])
            tree.advance(-3 * seconds)
            tree.write("a.py", words("lemon"))
            await expect(process, "lemon", ["a.py"])
            await expect(process, "cherry", [])


async def test_a_search_is_not_served_by_a_comparison_that_began_before_it(
    autojump_clock: trio.testing.MockClock, watching: str
) -> None:
    bench, gate = bench_with(watching), Gate("tree.scan", after=True)
    tree = bench.tree(ROOT, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process, trio.open_nursery() as nursery:
            workspace = await process.start(ROOT)
            await workspace.settled()
            gate.shut()
            nursery.start_soon(workspace.sweep)
            await gate.reached()  # this comparison has read the tree already
            tree.write("a.py", words("apricot"))
            nursery.start_soon(expect, process, "apricot", ["a.py"])
            await trio.testing.wait_all_tasks_blocked()
            gate.open()


async def test_searches_that_wait_share_one_comparison(autojump_clock: trio.testing.MockClock, watching: str) -> None:
    bench, gate = bench_with(watching), Gate("tree.scan")
    tree = bench.tree(ROOT, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            await (await process.start(ROOT)).settled()
            gate.shut()
            scans = tree.scans
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, process, "apple")
                await gate.reached()
                for _ in range(10):
                    nursery.start_soon(ask, process, "apple")
                await trio.testing.wait_all_tasks_blocked()
                gate.open()

            assert tree.scans == scans + 2


async def test_a_search_that_cannot_wait_longer_names_what_is_pending(
    autojump_clock: trio.testing.MockClock, watching: str
) -> None:
    bench, gate = bench_with(watching), Gate("pool.chunk")
    tree = bench.tree(ROOT, a=words("apple"), b=words("banana"))
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            await (await process.start(ROOT)).settled()
            gate.shut()
            tree.write("a.py", words("apricot"))
            began = trio.current_time()
            answer = await ask(process, "banana apple", fresh_seconds=2)

            assert trio.current_time() - began == pytest.approx(2)
            assert (paths(answer), answer.fresh, answer.pending) == (["b.py"], False, ("a.py",))
            assert answer.withheld == 1
            gate.open()


async def test_a_search_without_the_wish_for_freshness_waits_for_nothing(
    autojump_clock: trio.testing.MockClock, watching: str
) -> None:
    bench, recorder = bench_with(watching), Recorder()
    bench.tree(ROOT, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder) as process:
            await (await process.start(ROOT)).settled()
            recorder.calls.clear()
            answer = await ask(process, "apple", fresh=False)

            assert (paths(answer), answer.fresh) == (["a.py"], False)
            assert recorder.of("tree.scan") == []


async def test_a_first_build_is_not_waited_for(autojump_clock: trio.testing.MockClock, watching: str) -> None:
    bench, gate = bench_with(watching), Gate("embedder.embed", about="banana")
    bench.tree(ROOT, **{f"a{number}": words(f"apple{number}") for number in range(40)}, b=words("banana"))
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            gate.shut()
            workspace = await process.start(ROOT)
            await gate.reached()
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
            answer = await ask(process, "apple1")

            assert trio.current_time() == began
            assert workspace.status().state is State.INDEXING
            assert (paths(answer)[0], answer.fresh, answer.pending) == (
                "a1.py",
                False,
                tuple(workspace.index.queue.outstanding()),
            )
            assert "b.py" in answer.pending
            gate.open()


async def test_a_file_that_cannot_be_indexed_does_not_make_answers_unfresh(
    autojump_clock: trio.testing.MockClock, watching: str
) -> None:
    bench = bench_with(watching)
    bench.tree(ROOT, **{f"a{number}": words(f"apple{number}") for number in range(20)})
    bench.trees[ROOT].write("binary.py", b"\0" * 99)
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            status = await (await process.start(ROOT)).settled()
            answer = await ask(process, "apple1")

            assert (status.files.skipped, status.files.discovered) == (1, 21)
            assert (answer.fresh, answer.pending) == (True, ())


async def test_a_search_does_not_claim_to_be_fresh_when_the_workspace_stops_under_it(
    autojump_clock: trio.testing.MockClock, watching: str
) -> None:
    bench, gate = bench_with(watching), Gate("embedder.embed", about="apricot")
    tree = bench.tree(ROOT, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            workspace = await process.start(ROOT)
            await workspace.settled()
            gate.shut()
            tree.write("a.py", words("apricot"))
            answers: list[SearchAnswer] = []

            async def search() -> None:
                with pytest.raises(NotReady):
                    answers.append(await ask(process, "banana", fresh_seconds=60))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(search)
                await gate.reached()
                workspace.stop(purge=False)

            assert answers == []
            gate.open()


async def test_a_search_is_not_fresh_if_the_indexing_it_waited_for_failed(
    autojump_clock: trio.testing.MockClock, watching: str
) -> None:
    bench, gate = bench_with(watching), Gate("store.upsert")
    broken = Failing("ledger.apply", StateDamaged("The ledger is damaged."))
    tree = bench.tree(ROOT, a=words("apple"), b=words("banana"))
    with trio.fail_after(PATIENCE):
        async with bench.process(gate, broken) as process, trio.open_nursery() as nursery:
            workspace = await process.start(ROOT)
            await workspace.settled()
            gate.shut()
            tree.write("a.py", words("apricot"))

            async def search() -> None:
                answer = await ask(process, "apricot banana", fresh_seconds=60)
                assert (answer.fresh, answer.pending) == (False, ("a.py",))

            nursery.start_soon(search)
            await gate.reached()
            await trio.testing.wait_all_tasks_blocked()
            broken.times = 1
            gate.open()
