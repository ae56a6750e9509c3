"""Whatever dependencies do to a workspace, nothing is lost, nothing is claimed, and in the end everything is right."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from semindex.engine.search import SearchRequest
from semindex.engine.turns import LONGEST_TURN
from semindex.engine.workspace import Limits, Workspace
from semindex.model.errors import SemindexError
from semindex.model.status import FileState, State
from semindex.testing.audit import differences
from semindex.testing.bench import Bench, Process, words
from semindex.testing.faults import Fault, FaultPlan
from semindex.testing.intercept import Gate, Recorder

P, W, SIBLING = "/primary", "/worktree", "/sibling"
PATIENCE = 40_000.0
TREE = {f"file{number}": words(f"token{number}") for number in range(12)}

ANY = st.sampled_from(Fault)
ORDERLY = st.sampled_from([fault for fault in Fault if fault is not Fault.SHORT])
"""What an adapter may do whose answers have no length."""


def plans() -> st.SearchStrategy[Mapping[str, Sequence[Fault]]]:
    calls = {
        "store.describe": ORDERLY,
        "store.create": ORDERLY,
        "store.open": ORDERLY,
        "store.write_metadata": ORDERLY,
        "store.upsert": ORDERLY,
        "store.delete_files": ORDERLY,
        "store.file_points": ORDERLY,
        "store.flush": ORDERLY,
        "store.optimize": ORDERLY,
        "store.close": ORDERLY,
        "ledger.load": ORDERLY,
        "ledger.apply": ORDERLY,
        "embedder.embed": ANY,
        "pool.chunk": ANY,
        "tree.scan": ORDERLY,
        "cache.get": ORDERLY,
        "cache.put": ORDERLY,
    }
    return st.fixed_dictionaries({}, optional={name: st.lists(faults, max_size=6) for name, faults in calls.items()})


def assert_adds_up(workspace: Workspace) -> None:
    """Hold what a workspace says against what lies on the disk, which does not change here."""
    status, index = workspace.status(), workspace.index
    files = status.files
    assert files.discovered == files.indexed + files.pending + files.skipped + files.failed == len(index.table)
    if status.state is not State.INDEXED:
        return
    for path in TREE:
        record = index.table.get(f"{path}.py")
        assert record is not None, f"{path} is silently missing"
        assert record.state in {FileState.INDEXED, FileState.FAILED}
        assert record.state is FileState.INDEXED or record.reason


async def watch_over(workspace: Workspace) -> None:
    while True:
        assert_adds_up(workspace)
        await workspace.changes.beyond(workspace.changes.value)


async def edit(bench: Bench, process: Process) -> None:
    """Change a file here and there while things go wrong; the set of files stays the same."""
    for number in range(6):
        await trio.sleep(7)
        for root in (P, W) if number % 2 else (W,):
            bench.trees[root].write(f"file{number}.py", words(f"changed{number}"))
            with trio.move_on_after(20), suppress(SemindexError):
                await process.workspaces[root].sweep(full=False)


async def converge(bench: Bench, process: Process) -> None:
    """Compare until nothing is left to mend."""
    for root in (P, W, SIBLING):
        workspace = process.workspaces[root]
        is_right = False
        while not is_right:
            with suppress(SemindexError):
                await workspace.sweep()
                status = await workspace.settled()
                is_right = status.state is State.INDEXED and status.files.failed == 0
            await trio.sleep(1)
        assert_adds_up(workspace)


async def live_through(plan: FaultPlan) -> None:
    bench = Bench()
    for root in (P, W, SIBLING):
        bench.tree(root, **TREE)
    with trio.fail_after(PATIENCE):
        async with bench.process(plan) as process, trio.open_nursery() as nursery:
            nursery.start_soon(watch_over, await process.start(P))
            nursery.start_soon(watch_over, await process.start(W, baseline=P))
            await edit(bench, process)
            await process.start(SIBLING)
            await converge(bench, process)
            nursery.cancel_scope.cancel(reason="everything is right again")
        for root, baseline in ((P, None), (W, P), (SIBLING, None)):
            assert await differences(bench, root, baseline=baseline) == []


@settings(max_examples=60)
@given(plan=plans())
def test_after_any_faults_the_index_is_right_and_meanwhile_nothing_false_was_said(
    plan: Mapping[str, Sequence[Fault]],
) -> None:
    trio.run(live_through, FaultPlan(plan), clock=MockClock(autojump_threshold=0))


async def search_through(plan: FaultPlan, edits: Sequence[int]) -> None:
    bench = Bench()
    tree = bench.tree(P, **TREE)
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await (await process.start(P)).settled()
        async with bench.process(plan) as process:
            workspace = await process.start(P)
            await workspace.settled()
            for number in edits:
                tree.write("file0.py", words(f"changed{number}"))
                try:
                    answer = await workspace.search(SearchRequest(f"changed{number}", min_score=0.5))
                except SemindexError:
                    continue
                shown = [(hit.file_path, hit.code_chunk) for hit in answer.results]
                assert set(shown) <= {("file0.py", words(f"changed{number}"))}
                failed = dict(workspace.status().failed_files)
                assert shown or not answer.fresh or answer.withheld or "file0.py" in failed


@settings(max_examples=40)
@given(
    plan=st.fixed_dictionaries(
        {},
        optional={
            "store.search": st.lists(ORDERLY, max_size=4),
            "tree.hashes": st.lists(ANY, max_size=4),
            "tree.scan": st.lists(ORDERLY, max_size=4),
            "embedder.embed": st.lists(ANY, max_size=4),
            "store.upsert": st.lists(ORDERLY, max_size=4),
            "ledger.apply": st.lists(ORDERLY, max_size=4),
            "pool.chunk": st.lists(ANY, max_size=4),
        },
    ),
    edits=st.lists(st.integers(0, 3), min_size=1, max_size=6),
)
def test_through_any_faults_a_search_shows_what_is_on_disk_or_says_why_not(
    plan: Mapping[str, Sequence[Fault]], edits: Sequence[int]
) -> None:
    trio.run(search_through, FaultPlan(plan), edits, clock=MockClock(autojump_threshold=0))


async def stop_through(plan: FaultPlan, purge: bool, after: float) -> None:
    bench, recorder = Bench(), Recorder()
    bench.tree(P, **TREE)
    limits = Limits(drain_grace=20, purge_grace=20)
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder, plan) as process:
            workspace = await process.start(P, limits=limits)
            await trio.sleep(after)
            began = trio.current_time()
            await process.stop(P, purge=purge)
            assert trio.current_time() - began <= limits.drain_grace + limits.purge_grace + 5
            assert workspace.purged or not purge or workspace.status().last_error
            if workspace.purged:
                assert await bench.store.collections() == []
                assert bench.ledgers[P] == {}
        async with bench.process() as process:
            assert (await (await process.start(P)).settled()).state is State.INDEXED
        assert await differences(bench, P) == []


@settings(max_examples=40)
@given(
    plan=plans(),
    drop=st.lists(ORDERLY, max_size=2),
    clear=st.lists(ORDERLY, max_size=2),
    purge=st.booleans(),
    after=st.sampled_from([0.0, 1.0, 10.0, 400.0]),
)
def test_through_any_faults_a_stop_is_bounded_and_the_next_start_is_clean(
    plan: Mapping[str, Sequence[Fault]], drop: Sequence[Fault], clear: Sequence[Fault], purge: bool, after: float
) -> None:
    full = FaultPlan({**plan, "store.drop": drop, "ledger.clear": clear})
    trio.run(stop_through, full, purge, after, clock=MockClock(autojump_threshold=0))


async def test_the_troubles_of_one_workspace_are_not_those_of_its_sibling(autojump_clock: MockClock) -> None:
    bench = Bench()
    bench.tree(P, **TREE)
    bench.tree(SIBLING, **{name: words(f"other{name}") for name in TREE})
    always = [Fault.HANG, Fault.TRANSIENT] * 5000
    hanging = FaultPlan({"pool.chunk": always}, about=P)
    with trio.fail_after(PATIENCE):
        async with bench.process(hanging) as process:
            sick, well = await process.start(P), await process.start(SIBLING)

            assert (await well.settled()).state is State.INDEXED
            assert trio.current_time() <= LONGEST_TURN
            assert (await process.found(SIBLING, "otherfile3")).paths == ("file3.py",)
            assert sick.status().state is State.INDEXING


@pytest.mark.parametrize(
    ("held", "most"),
    [("embedder.embed", 6 * 8), ("store.upsert", 6 * 8 + 4 * 8 + 240)],
    ids=["embedding", "storing"],
)
async def test_what_waits_in_memory_is_bounded_however_slow_the_rest_is(
    autojump_clock: MockClock, held: str, most: int
) -> None:
    bench, gate, recorder = Bench(), Gate(held), Recorder()
    bench.tree(P, **{f"file{number}": words(f"token{number}") for number in range(1000)})
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with bench.process(gate, recorder) as process:
            await process.start(P, limits=Limits(drain_grace=0))
            await trio.sleep(60)

            read = sum(len(call.args[1]) for call in recorder.of("pool.chunk"))
            assert 0 < read <= most
