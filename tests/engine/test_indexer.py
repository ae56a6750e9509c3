"""The pipeline from a marked path to its settled outcome, on twins."""

import pytest
import trio
import trio.testing

from semindex.model.errors import ChunkingFailed, EmbedderRejected, EmbedderUnavailable, SemindexError, StoreRejected
from semindex.model.status import State
from semindex.testing.audit import differences
from semindex.testing.bench import Bench, words
from semindex.testing.faults import Fault, FaultPlan
from semindex.testing.intercept import Failing, Gate, Recorder

ROOT = "/primary"
PATIENCE = 60.0
"""Seconds of virtual time after which a wait is a hang."""


def many(count: int) -> dict[str, str]:
    return {f"file{number}": words(f"token{number}") for number in range(count)}


async def test_many_files_deleted_at_once_leave_the_index(autojump_clock: trio.testing.MockClock) -> None:
    bench = Bench()
    tree = bench.tree(ROOT, **many(60))
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            workspace = await process.start(ROOT)
            await workspace.settled()
            for number in range(1, 60):
                tree.delete(f"file{number}.py")
            await workspace.sweep()

            assert (await workspace.settled()).files.discovered == 1
            assert (await process.found(ROOT, "token0")).paths == ("file0.py",)
            assert (await process.found(ROOT, "token1")).paths == ()


async def test_a_file_deleted_while_its_group_waits_for_the_store_is_not_lost(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Between two files of one group the worker waits; what becomes of the second one meanwhile must not confuse it."""
    bench, gate = Bench(), Gate("store.delete_files")
    tree = bench.tree(ROOT, **many(60))
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            workspace = await process.start(ROOT)
            await workspace.settled()
            gate.shut()
            for number in range(8):  # the settler is held up with these
                tree.delete(f"file{number}.py")
            await workspace.sweep()
            await gate.reached()
            for number in range(8, 48):  # these fill the channel to it
                tree.delete(f"file{number}.py")
            await workspace.sweep()
            await trio.testing.wait_all_tasks_blocked()
            tree.delete("file58.py")
            tree.write("file59.py", words("changed"))
            await workspace.sweep()
            await trio.testing.wait_all_tasks_blocked()
            tree.delete("file59.py")
            await workspace.sweep()
            gate.open()

            status = await workspace.settled()
            assert (status.state, status.files.discovered) == (State.INDEXED, 10)
            assert (await process.found(ROOT, "changed")).paths == ()


async def test_deleted_files_are_settled_once_although_the_chunker_fails_for_their_group(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, failing = Bench(), Failing("pool.chunk", ChunkingFailed("No worker stays alive."))
    tree = bench.tree(ROOT, **many(12))
    with trio.fail_after(PATIENCE):
        async with bench.process(failing) as process:
            workspace = await process.start(ROOT)
            await workspace.settled()
            for number in range(4):
                tree.delete(f"file{number}.py")
                tree.write(f"file{number + 4}.py", words(f"changed{number}"))
            failing.times = 3
            await workspace.sweep()
            while (status := workspace.status()).last_error is None:
                await workspace.changes.beyond(workspace.changes.value)
            assert status.message == "No worker stays alive. Trying again."
            assert status.state is State.INDEXING

            status = await workspace.settled()
            assert (status.files.indexed, status.last_error) == (8, None)
            assert (await process.found(ROOT, "changed3")).paths == ("file7.py",)


async def test_a_file_that_failed_just_after_a_write_is_tried_again_on_the_next_change(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, failing = Bench(), Failing("embedder.embed", EmbedderRejected("The text is refused."))
    tree = bench.tree(ROOT, **many(20))
    with trio.fail_after(PATIENCE):
        async with bench.process(failing) as process:
            workspace = await process.start(ROOT)
            await workspace.settled()
            failing.times = 1
            tree.write("file0.py", words("poison"))  # read at once, so that its signature is not trusted
            await workspace.sweep(full=False)
            assert (await workspace.settled()).failed_files == (("file0.py", "The text is refused."),)

            tree.write("file0.py", words("remedy"))
            assert (await process.found(ROOT, "remedy")).paths == ("file0.py",)


async def test_a_file_that_failed_is_left_alone_until_it_changes_or_everything_is_compared(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, failing = (
        Bench(),
        Failing("embedder.embed", EmbedderRejected("The text is refused."), times=99, about="poison"),
    )
    bench.tree(ROOT, **many(20), poison=words("poison"))
    with trio.fail_after(PATIENCE):
        async with bench.process(failing) as process:
            workspace = await process.start(ROOT)
            assert (await workspace.settled()).files.failed == 1
            await workspace.sweep(full=False)
            answer = (await process.found(ROOT, "token1")).answer
            assert (answer.fresh, answer.pending) == (True, ())
            assert workspace.status().files.failed == 1

            failing.times = 0
            await workspace.sweep(full=True)
            assert (await workspace.settled()).files.failed == 0
            assert (await process.found(ROOT, "poison")).paths == ("poison.py",)


async def test_a_chunker_that_forgets_a_file_is_asked_again(autojump_clock: trio.testing.MockClock) -> None:
    bench, forgetful = Bench(), FaultPlan({"pool.chunk": [Fault.SHORT]})
    bench.tree(ROOT, **many(3))
    with trio.fail_after(PATIENCE):
        async with bench.process(forgetful) as process:
            workspace = await process.start(ROOT)
            assert (await workspace.settled()).files.indexed == 3
            assert forgetful.is_over


async def test_a_binary_file_that_becomes_text_within_the_same_tick_is_indexed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench = Bench()
    tree = bench.tree(ROOT, **many(3))
    text = words("apple")
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            workspace = await process.start(ROOT)
            await workspace.settled()
            tree.write("a.py", b"\0" * len(text))
            await workspace.sweep()
            assert (await workspace.settled()).files.skipped == 1
            tree.write("a.py", text)

            assert (await process.found(ROOT, "apple")).paths == ("a.py",)


async def test_a_file_whose_points_the_store_refuses_is_the_only_one_to_fail(
    autojump_clock: trio.testing.MockClock,
) -> None:
    refused, recorder = Failing("store.upsert", StoreRejected("The point is refused."), 999, "poison"), Recorder()
    bench = Bench()
    bench.tree(ROOT, **many(12), poison=words("poison"))
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder, refused) as process:
            workspace = await process.start(ROOT)
            status = await workspace.settled()
            assert (status.state, status.failed_files) == (State.INDEXED, (("poison.py", "The point is refused."),))
            assert (await process.found(ROOT, "token3")).paths == ("file3.py",)
            recorder.calls.clear()
            await process.found(ROOT, "token4")
            assert recorder.of("store.upsert") == []

            refused.times = 0
            await workspace.sweep()
            assert (await process.found(ROOT, "poison")).paths == ("poison.py",)
        assert await differences(bench, ROOT) == []


async def test_a_file_that_was_only_touched_is_read_once_and_costs_nothing_else(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, recorder = Bench(), Recorder()
    tree = bench.tree(ROOT, **many(3))
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder) as process:
            await (await process.start(ROOT)).settled()
            tree.write("file0.py", words("token0"))
            tree.advance(10)
            recorder.calls.clear()
            for _ in range(3):
                await process.found(ROOT, "token1")

            assert [call.args[1] for call in recorder.of("pool.chunk")] == [["file0.py"]]
            assert not recorder.of("store.upsert") + recorder.of("store.delete_files")


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("pool.chunk", ChunkingFailed("No worker stays alive.")),
        ("embedder.embed", EmbedderUnavailable("The embedder does not answer.")),
    ],
    ids=["chunker", "embedder"],
)
async def test_what_a_file_waits_for_is_told_although_others_are_stored(
    call: str, error: SemindexError, autojump_clock: trio.testing.MockClock
) -> None:
    bench, failing = Bench(), Failing(call, error)
    tree = bench.tree(ROOT, **many(3))
    with trio.fail_after(PATIENCE):
        async with bench.process(failing) as process:
            workspace = await process.start(ROOT)
            await workspace.settled()
            failing.times = 99
            tree.write("file0.py", words("changed"))
            await workspace.sweep()
            while workspace.status().last_error is None:
                await workspace.changes.beyond(workspace.changes.value)
            tree.delete("file1.py")  # is stored without a chunker and an embedder
            await workspace.sweep()
            while (status := workspace.status()).files.discovered > 2:
                await workspace.changes.beyond(workspace.changes.value)
            assert (status.last_error, status.message) == (str(error), f"{error} Trying again.")

            failing.times = 0
            assert (await workspace.settled()).last_error is None


async def test_nothing_is_waited_for_any_more_once_the_file_that_waited_is_gone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, failing = Bench(), Failing("embedder.embed", EmbedderUnavailable("The embedder does not answer."))
    tree = bench.tree(ROOT, **many(3))
    with trio.fail_after(PATIENCE):
        async with bench.process(failing) as process:
            workspace = await process.start(ROOT)
            await workspace.settled()
            failing.times = 99
            tree.write("file0.py", words("changed"))
            await workspace.sweep()
            while workspace.status().last_error is None:
                await workspace.changes.beyond(workspace.changes.value)
            tree.delete("file0.py")
            await workspace.sweep()
            await workspace.settled()
            await trio.testing.wait_all_tasks_blocked()
            assert workspace.status().last_error is None
