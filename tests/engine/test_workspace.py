"""The life of a workspace: how it begins, fails, recovers and ends."""

from itertools import pairwise
from typing import Any

import pytest
import trio
import trio.testing
from attrs import frozen

from semindex.embedders.hashing import HashingEmbedder
from semindex.engine.search import SearchRequest
from semindex.engine.turns import LONGEST_TURN
from semindex.engine.workspace import Limits
from semindex.model.errors import (
    EmbedderRejected,
    EmbedderUnavailable,
    NotReady,
    StateDamaged,
    StateUnwritable,
    StoreUnavailable,
)
from semindex.model.ids import collection_name
from semindex.model.points import CollectionMetadata
from semindex.model.status import State
from semindex.testing.bench import Bench, words
from semindex.testing.intercept import Call, Failing, Gate, Proceed, Recorder

A, B = "/a", "/b"
PATIENCE = 3600.0
DOWN = StoreUnavailable("The store does not answer.")


@frozen
class Slow:
    """Lets the calls of one name take their time."""

    name: str
    seconds: float

    async def __call__(self, call: Call, proceed: Proceed) -> Any:
        if call.is_named(self.name):
            await trio.sleep(self.seconds)
        return await proceed()


async def complete(bench: Bench, root: str) -> bool:
    info = await bench.store.describe(collection_name(root))
    return info is not None and CollectionMetadata.from_payload(info.metadata or {}).indexing_complete


# Beginning


async def test_a_first_build_is_incomplete_until_everything_is_stored(autojump_clock: trio.testing.MockClock) -> None:
    bench, gate = Bench(), Gate("embedder.embed")
    bench.tree(A, a=words("apple"))
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            workspace = await process.start(A)
            await gate.reached()
            assert workspace.status().state is State.INDEXING
            assert not await complete(bench, A)

            gate.open()
            assert (await workspace.settled()).state is State.INDEXED
            assert await complete(bench, A)


async def test_a_restart_reads_and_embeds_nothing_that_did_not_change(autojump_clock: trio.testing.MockClock) -> None:
    bench, recorder = Bench(), Recorder()
    tree = bench.tree(A, a=words("apple"), b=words("banana"))
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await (await process.start(A)).settled()
        tree.write("b.py", words("blueberry"))
        tree.advance(10)
        async with bench.process(recorder) as process:
            await (await process.start(A)).settled()
            assert [call.args[1] for call in recorder.of("pool.chunk")] == [["b.py"]]
            assert [len(call.args[0]) for call in recorder.of("embedder.embed")] == [1]


async def test_a_restarted_workspace_is_not_up_to_date_before_it_has_compared(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, gate = Bench(), Gate("tree.scan")
    bench.tree(A, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await (await process.start(A)).settled()
        async with bench.process(gate) as process:
            gate.shut()
            workspace = await process.start(A)
            await gate.reached()

            assert workspace.status().state is State.INDEXING
            assert workspace.status().message == "Checking for new or modified files..."
            gate.open()
            assert (await workspace.settled()).state is State.INDEXED


async def test_a_workspace_that_begins_anew_is_not_up_to_date_before_it_has_compared(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, gate = Bench(), Gate("tree.scan")
    broken = Failing("ledger.apply", StateDamaged("The ledger is damaged."), times=0)
    tree = bench.tree(A, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with bench.process(gate, broken) as process:
            workspace = await process.start(A)
            await workspace.settled()
            broken.times = 1
            tree.write("a.py", words("apricot"))
            await workspace.sweep()
            while workspace.status().state is not State.ERROR:
                await workspace.changes.beyond(workspace.changes.value)
            gate.shut()
            await gate.reached()
            await trio.testing.wait_all_tasks_blocked()

            assert workspace.status().state is State.INDEXING
            gate.open()
            assert (await workspace.settled()).state is State.INDEXED
            assert (await process.found(A, "apricot")).paths == ("a.py",)


async def test_an_interrupted_first_build_is_resumed(autojump_clock: trio.testing.MockClock) -> None:
    bench = Bench(HashingEmbedder(dimension=512, batch_size=4))
    gate = Gate("embedder.embed", about="banana")
    bench.tree(A, **{f"a{number}": words(f"apple{number}") for number in range(20)}, b=words("banana"))
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            await process.start(A, limits=Limits(drain_grace=5))
            await gate.reached()
            await trio.testing.wait_all_tasks_blocked()
        stored = len(bench.ledgers[A])
        assert 0 < stored < 21
        assert not await complete(bench, A)

        recorder = Recorder()
        async with bench.process(recorder) as process:
            await (await process.start(A)).settled()
            assert sum(len(call.args[1]) for call in recorder.of("pool.chunk")) == 21 - stored
        assert await complete(bench, A)


async def test_a_store_that_is_down_at_the_start_is_tried_again_with_growing_pauses(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, failing = Bench(), Failing("store.describe", DOWN, times=12)
    bench.tree(A, a=words("apple"))
    tries: list[float] = []

    async def note(call: Call, proceed: Proceed) -> Any:
        if call.is_named("store.describe"):
            tries.append(trio.current_time())
        return await proceed()

    with trio.fail_after(PATIENCE):
        async with bench.process(note, failing) as process:
            workspace = await process.start(A)
            status = await workspace.settled()
            assert (status.state, status.message) == (State.ERROR, "The store does not answer.")
            with pytest.raises(StoreUnavailable, match="The store does not answer"):
                await workspace.search(SearchRequest("apple"))

            while workspace.status().state is not State.INDEXED:
                await workspace.changes.beyond(workspace.changes.value)
            pauses = [later - earlier for earlier, later in pairwise(tries)]
            assert pauses[:10] == pytest.approx([0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256])
            assert max(pauses) == 300
            assert (await process.found(A, "apple")).paths == ("a.py",)


# Failing


async def test_a_failure_of_one_workspace_leaves_its_sibling_alone(autojump_clock: trio.testing.MockClock) -> None:
    bench, failing = Bench(), Failing("tree.scan", ValueError("a bug"), times=1)
    bench.tree(A, a=words("apple"))
    bench.tree(B, b=words("banana"))
    with trio.fail_after(PATIENCE):
        async with bench.process(failing) as process:
            sick = await process.start(A)
            status = await sick.settled()
            assert status.message == "An unexpected ValueError ended the indexing; see the log."
            well = await process.start(B)

            assert (await well.settled()).state is State.INDEXED
            while sick.status().state is not State.INDEXED:
                await sick.changes.beyond(sick.changes.value)


async def test_a_root_that_disappears_is_an_error_and_costs_nothing_when_it_is_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench = Bench()
    tree = bench.tree(A, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            workspace = await process.start(A)
            await workspace.settled()
            sent = bench.sent()
            tree.missing = True
            with pytest.raises(Exception, match="missing"):
                await workspace.sweep()
            assert workspace.status().state is State.ERROR
            assert workspace.status().files.indexed == 1
            with pytest.raises(NotReady, match="missing"):
                await workspace.search(SearchRequest("apple"))

            tree.missing = False
            while workspace.status().state is not State.INDEXED:
                await workspace.changes.beyond(workspace.changes.value)
            assert (await process.found(A, "apple")).paths == ("a.py",)
            assert bench.sent() == sent


@pytest.mark.parametrize(
    "failing",
    [
        Failing("store.upsert", DOWN, times=5),
        Failing("store.delete_files", DOWN, times=5),
        Failing("ledger.apply", StateUnwritable("The disk is full."), times=5),
        Failing("embedder.embed", EmbedderUnavailable("The embedder does not answer."), times=9),
    ],
    ids=lambda failing: failing.name,
)
async def test_a_dependency_in_trouble_is_told_and_waited_for(
    autojump_clock: trio.testing.MockClock, failing: Failing
) -> None:
    bench = Bench()
    tree = bench.tree(A, a=words("apple"), b=words("banana"))
    times, failing.times = failing.times, 0
    with trio.fail_after(PATIENCE):
        async with bench.process(failing) as process:
            workspace = await process.start(A)
            await workspace.settled()
            failing.times = times
            tree.write("a.py", words("apricot"))
            await workspace.sweep()
            while (status := workspace.status()).last_error is None:
                await workspace.changes.beyond(workspace.changes.value)
            assert (status.state, status.message) == (State.INDEXING, f"{failing.error} Trying again.")

            status = await workspace.settled()
            assert (status.state, status.last_error) == (State.INDEXED, None)
            assert (await process.found(A, "apricot")).paths == ("a.py",)


async def test_one_file_that_fails_does_not_make_a_small_tree_unsearchable(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, failing = Bench(), Failing("embedder.embed", EmbedderRejected("Refused."), times=99, about="poison")
    tree = bench.tree(A, a=words("apple"), b=words("banana"))
    with trio.fail_after(PATIENCE):
        async with bench.process(failing) as process:
            workspace = await process.start(A)
            await workspace.settled()
            tree.write("b.py", words("poison"))
            await workspace.sweep()
            await workspace.settled()
            await trio.testing.wait_all_tasks_blocked()
            status = workspace.status()

            assert (status.state, status.failed_files) == (State.INDEXED, (("b.py", "Refused."),))
            assert (await process.found(A, "apple")).paths == ("a.py",)


async def test_a_first_build_in_which_too_much_failed_has_failed_until_it_is_mended(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, failing = Bench(), Failing("embedder.embed", EmbedderRejected("Refused."), times=99, about="poison")
    bench.tree(A, a=words("apple"), b=words("poison"))
    bench.tree(B, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with bench.process(failing) as process:
            workspace = await process.start(A)
            status = await workspace.settled()
            assert status.state is State.ERROR
            assert status.message == "1 of 2 files could not be indexed, for example b.py: Refused."
            assert status.last_error == status.message
            assert not await complete(bench, A)
            overlay = await process.start(B, baseline=A)
            await trio.testing.wait_all_tasks_blocked()
            assert overlay.status().state is State.STANDBY

            failing.times = 0
            while workspace.status().state is not State.INDEXED:
                await workspace.changes.beyond(workspace.changes.value)
            assert await complete(bench, A)
            assert (await process.found(A, "poison")).paths == ("b.py",)
            assert (await overlay.settled()).state is State.INDEXED


# Ending


async def test_a_stop_ends_the_sources_lets_accepted_work_drain_and_closes(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, recorder = Bench(), Recorder()
    bench.tree(A, **{f"a{number}": words(f"apple{number}") for number in range(20)})
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder, Slow("embedder.embed", 3)) as process:
            workspace = await process.start(A)
            await trio.sleep(1)
            accepted = {path for call in recorder.of("pool.chunk") for path in call.args[1]}
            recorder.calls.clear()
            await process.stop(A)

            assert trio.current_time() == pytest.approx(3)
            assert set(bench.ledgers[A]) == accepted
            assert str(recorder.calls[-1]) == "store.close"
            assert recorder.of("tree.scan") == []
            assert len(recorder.of("store.close")) == 1
            assert not workspace.purged


async def test_a_drain_is_cut_at_the_grace(autojump_clock: trio.testing.MockClock) -> None:
    bench, gate, recorder = Bench(), Gate("store.upsert"), Recorder()
    bench.tree(A, a=words("apple"))
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder, gate) as process:
            await process.start(A, limits=Limits(drain_grace=7))
            await gate.reached()
            await process.stop(A)

            assert trio.current_time() == pytest.approx(7)
            assert str(recorder.calls[-1]) == "store.close"


async def test_a_stop_does_not_wait_for_the_next_try_of_a_dependency_in_trouble(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench = Bench()
    bench.tree(A, a=words("apple"))
    failing = Failing("embedder.embed", EmbedderUnavailable("The embedder does not answer."), times=99)
    with trio.fail_after(PATIENCE):
        async with bench.process(failing) as process:
            workspace = await process.start(A)
            await trio.sleep(60)
            assert workspace.status().last_error == "The embedder does not answer."
            began = trio.current_time()
            await process.stop(A)

            assert trio.current_time() == began


async def test_a_purge_cancels_what_is_under_way_and_leaves_nothing(autojump_clock: trio.testing.MockClock) -> None:
    bench, gate = Bench(), Gate("store.upsert", about="banana")
    bench.tree(A, a=words("apple"), **{f"b{number}": words(f"banana{number}") for number in range(20)})
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            workspace = await process.start(A)
            await gate.reached()
            await trio.testing.wait_all_tasks_blocked()
            assert await bench.store.collections() != []
            began = trio.current_time()
            await process.stop(A, purge=True)

            assert trio.current_time() == began
            assert workspace.purged
            assert bench.ledgers[A] == {}
            assert await bench.store.collections() == []


async def test_a_purge_asked_for_during_the_drain_cuts_it_short(autojump_clock: trio.testing.MockClock) -> None:
    bench, gate = Bench(), Gate("embedder.embed")
    bench.tree(A, a=words("apple"))
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            workspace = await process.start(A)
            await gate.reached()
            workspace.stop(purge=False)
            await trio.sleep(1)
            workspace.stop(purge=True)
            await workspace.closed.wait()

            assert trio.current_time() == pytest.approx(1)
            assert workspace.purged


@pytest.mark.parametrize("hanging", ["store.drop", "store.describe", "ledger.clear"])
async def test_a_purge_is_bounded_and_says_that_it_failed(autojump_clock: trio.testing.MockClock, hanging: str) -> None:
    bench, gate = Bench(), Gate(hanging)
    bench.tree(A, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            workspace = await process.start(A, limits=Limits(purge_grace=4))
            await workspace.settled()
            gate.shut()
            await process.stop(A, purge=True)

            assert trio.current_time() == pytest.approx(4)
            assert not workspace.purged
            assert workspace.status().last_error == "Deleting the data took longer than 4 seconds."


@pytest.mark.parametrize("error", [DOWN, ValueError("a bug")], ids=["unavailable", "bug"])
async def test_a_purge_that_fails_is_told_and_ends_the_workspace_all_the_same(
    autojump_clock: trio.testing.MockClock, error: Exception
) -> None:
    bench, failing = Bench(), Failing("store.drop", error)
    bench.tree(A, a=words("apple"))
    bench.tree(B, b=words("banana"))
    with trio.fail_after(PATIENCE):
        async with bench.process(failing) as process:
            workspace = await process.start(A)
            await workspace.settled()
            failing.times = 1
            await process.stop(A, purge=True)
            assert not workspace.purged
            assert workspace.status().state is State.ERROR
            assert workspace.status().last_error

            assert (await (await process.start(B)).settled()).state is State.INDEXED


async def test_a_cell_that_is_cancelled_still_closes_and_purges_within_bounds(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, recorder, gate = Bench(), Recorder(), Gate("store.upsert")
    bench.tree(A, a=words("apple"))
    bench.tree(B, b=words("banana"))
    gate.shut()
    with trio.fail_after(PATIENCE), trio.CancelScope() as cell:
        async with bench.process(recorder, gate) as process:
            kept, released = await process.start(A), await process.start(B)
            await trio.sleep(2 * LONGEST_TURN)
            assert len(recorder.of("store.upsert")) == 2
            released.stop(purge=True)
            cell.cancel(reason="the cell ends")
            await trio.sleep_forever()

    assert kept.closed.is_set()
    assert released.closed.is_set()
    assert released.purged
    assert {call.args[0] for call in recorder.of("store.close")} == {collection_name(A), collection_name(B)}
    assert await bench.store.collections() == [collection_name(A)]


@pytest.mark.parametrize("held", ["ledger.load", "store.describe"])
async def test_a_stop_while_opening_ends_at_once_and_leaves_nothing_open(
    autojump_clock: trio.testing.MockClock, held: str
) -> None:
    bench, recorder, gate = Bench(), Recorder(), Gate(held, after=True)
    bench.tree(A, a=words("apple"))
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder, gate) as process:
            workspace = await process.start(A)
            await gate.reached()
            await process.stop(A)

            assert trio.current_time() == 0
            assert workspace.status().last_error is None
            assert recorder.of("store.close") == []


async def test_a_stopping_workspace_refuses_searches_and_ends_those_under_way(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, gate = Bench(), Gate("store.search")
    bench.tree(A, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            workspace = await process.start(A)
            await workspace.settled()
            gate.shut()

            async def search() -> None:
                with pytest.raises(NotReady, match="closing"):
                    await workspace.search(SearchRequest("apple"))

            async with trio.open_nursery() as nursery:
                nursery.start_soon(search)
                await gate.reached()
                await process.stop(A)
            await search()


@pytest.mark.parametrize("when", ["running", "between two tries", "closed"])
async def test_whoever_asks_for_a_comparison_is_told_when_the_workspace_stops(
    autojump_clock: trio.testing.MockClock, when: str
) -> None:
    bench, failing, gate = Bench(), Failing("store.describe", DOWN), Gate("tree.scan")
    bench.tree(A, a=words("apple"))
    if when == "between two tries":
        failing.times = 99
    with trio.fail_after(PATIENCE):
        async with bench.process(failing, gate) as process:
            workspace = await process.start(A)
            await workspace.settled()
            gate.shut()

            async def sweep() -> None:
                with pytest.raises(NotReady):
                    await workspace.sweep()

            async with trio.open_nursery() as nursery:
                if when == "closed":
                    await process.stop(A)
                nursery.start_soon(sweep)
                await trio.testing.wait_all_tasks_blocked()
                if when != "closed":
                    await process.stop(A)
            status = await workspace.settled()
            assert status == workspace.status()


async def test_a_stop_while_waiting_for_the_baseline_ends_at_once(autojump_clock: trio.testing.MockClock) -> None:
    bench, gate = Bench(), Gate("embedder.embed")
    bench.tree(A, a=words("apple"))
    bench.tree(B, a=words("apple"))
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            await process.start(A)
            overlay = await process.start(B, baseline=A)
            await gate.reached()
            assert overlay.status().state is State.STANDBY
            assert overlay.status().message == "Waiting for the primary worktree index to become available."
            await process.stop(B)

            assert trio.current_time() == 0
            gate.open()


async def test_a_rebuild_replaces_file_by_file_and_embeds_nothing_again(autojump_clock: trio.testing.MockClock) -> None:
    bench, recorder = Bench(), Recorder()
    bench.tree(A, a=words("apple"), b=words("banana"))
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder) as process:
            workspace = await process.start(A)
            await workspace.settled()
            sent = bench.sent()
            recorder.calls.clear()
            await workspace.reindex()
            assert (await process.found(A, "apple")).paths == ("a.py",)
            await workspace.settled()

            assert sum(len(call.args[1]) for call in recorder.of("store.upsert")) == 2
            assert bench.sent() == sent
            assert (await process.found(A, "banana")).paths == ("b.py",)
