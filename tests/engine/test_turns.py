"""What first builds leave of the cell to those who edit and search."""

import pytest
import trio
import trio.testing

from semindex.engine.priority import Priority
from semindex.engine.turns import LONGEST_TURN, Turns
from semindex.model.profiles import Role
from semindex.model.status import State
from semindex.testing.bench import Bench, words
from semindex.testing.intercept import Gate, Recorder

PATIENCE = 600.0


async def test_back_fill_waits_for_its_turn_and_nobody_else_does(autojump_clock: trio.testing.MockClock) -> None:
    turns, inside, most = Turns(2), 0, 0

    async def hold(priority: Priority) -> float:
        nonlocal inside, most
        async with turns.turn(priority):
            if priority is Priority.BACKFILL:
                inside += 1
                most = max(most, inside)
            await trio.sleep(1)
            inside -= priority is Priority.BACKFILL
        return trio.current_time()

    began, ended = trio.current_time(), dict[Priority, list[float]]()

    async def note(priority: Priority) -> None:
        ended.setdefault(priority, []).append(round(await hold(priority) - began, 3))

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(note, Priority.BACKFILL)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(note, Priority.EDIT)

    assert most == 2
    assert ended == {Priority.BACKFILL: [1, 1, 2, 2, 3], Priority.EDIT: [1]}


async def test_a_turn_that_hangs_is_over_for_the_others(autojump_clock: trio.testing.MockClock) -> None:
    turns = Turns(1)
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:

            async def hang() -> None:
                async with turns.turn(Priority.BACKFILL):
                    await trio.sleep_forever()

            nursery.start_soon(hang)
            await trio.testing.wait_all_tasks_blocked()
            began = trio.current_time()
            for _ in range(3):
                async with turns.turn(Priority.BACKFILL):
                    pass

            assert trio.current_time() - began == pytest.approx(LONGEST_TURN)
            nursery.cancel_scope.cancel()


async def test_whoever_gives_up_waiting_leaves_the_turn_to_others(autojump_clock: trio.testing.MockClock) -> None:
    turns = Turns(1)
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:

            async def give_up() -> None:
                with trio.move_on_after(0.5):
                    async with turns.turn(Priority.BACKFILL):
                        await trio.sleep_forever()

            async with turns.turn(Priority.BACKFILL):
                nursery.start_soon(give_up)
                await trio.sleep(1)
            began = trio.current_time()
            async with turns.turn(Priority.BACKFILL):
                assert trio.current_time() == began


async def test_an_edit_is_embedded_and_stored_before_the_rest_of_twenty_builds(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """At the chunker, the embedder and the store alike it passes all builds but what is under way."""
    bench, recorder, gate = Bench(), Recorder(), Gate("pool.chunk")
    bench.tree("/edited", module=words("before"))
    for number in range(20):
        bench.tree(f"/build{number}", **{f"file{part}": words(f"word{number}part{part}") for part in range(40)})
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder, gate) as process:
            await (await process.start("/edited")).settled()
            gate.shut()
            for number in range(20):
                await process.start(f"/build{number}")
            await gate.reached()
            await trio.testing.wait_all_tasks_blocked()
            asked = len(recorder.of("pool.chunk"))
            bench.trees["/edited"].write("module.py", words("after"))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(process.workspaces["/edited"].sweep)
                await trio.testing.wait_all_tasks_blocked()
                gate.open()
                found = await process.found("/edited", "after")
            sent = sum(len(call.texts) for call in bench.embedder.calls if call.role is Role.DOCUMENT)
            stored = sum(len(call.args[1]) for call in recorder.of("store.upsert"))

            assert found.paths == ("module.py",)
            assert asked == 3  # the edited file's once, and two groups of a build
            assert sent < 200
            assert stored < 200
            for workspace in process.workspaces.values():
                assert (await workspace.settled()).state is State.INDEXED
