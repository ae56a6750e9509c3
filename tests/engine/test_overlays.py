"""A worktree above its baseline: what it inherits, what it holds itself, and how it follows."""

from typing import Any

import pytest
import trio
import trio.testing

from semindex.embedders.hashing import HashingEmbedder
from semindex.engine.search import SearchRequest
from semindex.model.ids import collection_name
from semindex.model.points import CollectionMetadata
from semindex.model.profiles import Role
from semindex.model.status import State
from semindex.state.memory import MemoryEmbeddingCache
from semindex.testing.bench import Bench, Process, words
from semindex.testing.intercept import Call, Gate, Proceed, Recorder

P, W = "/primary", "/worktree"
PATIENCE = 600.0
FRUIT = {name: words(name) for name in ("apple", "banana", "cherry", "damson")}


def fruit_bench(**changed: str) -> Bench:
    bench = Bench()
    bench.tree(P, **FRUIT)
    bench.tree(W, **{**FRUIT, **changed})
    return bench


async def start_both(process: Process) -> None:
    await process.start(P)
    await process.start(W, baseline=P)
    for workspace in process.workspaces.values():
        assert (await workspace.settled()).state is State.INDEXED


async def delta(bench: Bench) -> dict[str, int]:
    if collection_name(W) not in await bench.store.collections():
        return {}
    files = await bench.store.file_points(collection_name(W))
    return {path.removesuffix(".py"): sum(hashes.values()) for path, hashes in files.items()}


async def test_a_worktree_embeds_and_stores_only_what_differs(autojump_clock: trio.testing.MockClock) -> None:
    bench = fruit_bench(banana=words("blueberry"), elder=words("elderberry"))
    bench.trees[W].delete("cherry.py")
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await start_both(process)

            assert sorted(text.split()[0] for text in bench.sent()) == sorted([*FRUIT, "blueberry", "elderberry"])
            assert await delta(bench) == {"banana": 1, "elder": 1}
            for query, expected in {
                "apple": ("apple.py",),
                "banana": (),
                "blueberry": ("banana.py",),
                "elderberry": ("elder.py",),
                "cherry": (),
            }.items():
                assert (await process.found(W, query)).paths == expected
            assert (await process.found(P, "banana cherry")).paths == ("banana.py", "cherry.py")


async def test_an_equal_worktree_has_no_collection_of_its_own(autojump_clock: trio.testing.MockClock) -> None:
    bench = fruit_bench()
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await start_both(process)

            assert await bench.store.collections() == [collection_name(P)]
            assert (await process.found(W, "damson")).paths == ("damson.py",)


async def test_a_file_that_goes_back_to_the_baselines_content_leaves_the_delta_and_embeds_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench = fruit_bench(banana=words("blueberry"))
    bench.cache = MemoryEmbeddingCache(max_bytes=0)
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await start_both(process)
            assert await delta(bench) == {"banana": 1}
            sent = bench.sent()
            bench.trees[W].write("banana.py", FRUIT["banana"])

            assert (await process.found(W, "banana")).paths == ("banana.py",)
            assert await delta(bench) == {}
            assert bench.sent() == sent


async def test_a_worktree_keeps_what_its_baseline_gives_up(autojump_clock: trio.testing.MockClock) -> None:
    bench = fruit_bench()
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await start_both(process)
            sent = bench.sent()
            bench.trees[P].write("banana.py", words("blueberry"))
            bench.trees[P].delete("cherry.py")
            await process.workspaces[P].sweep()
            await process.workspaces[P].settled()

            assert (await process.found(W, "banana")).paths == ("banana.py",)
            assert (await process.found(W, "cherry")).paths == ("cherry.py",)
            assert (await process.found(W, "blueberry")).paths == ()
            assert await delta(bench) == {"banana": 1, "cherry": 1}
            assert [text.split()[0] for text in bench.sent()[len(sent) :]] == ["blueberry"]


async def test_a_worktree_whose_baseline_catches_up_gives_its_own_copy_away(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench = fruit_bench(banana=words("blueberry"))
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await start_both(process)
            bench.trees[P].write("banana.py", words("blueberry"))
            await process.workspaces[P].sweep()
            await process.workspaces[P].settled()

            assert (await process.found(W, "blueberry")).paths == ("banana.py",)
            assert await delta(bench) == {}


async def test_a_restart_keeps_the_delta_and_takes_in_what_the_baseline_did_meanwhile(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, recorder = fruit_bench(banana=words("blueberry")), Recorder()
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await start_both(process)
        bench.trees[P].write("apple.py", words("apricot"))
        bench.trees[P].advance(10)
        async with bench.process() as process:  # without the worktree
            await (await process.start(P)).settled()
        sent = bench.sent()
        async with bench.process(recorder) as process:
            await start_both(process)

            assert await delta(bench) == {"apple": 1, "banana": 1}
            assert (await process.found(W, "apple")).paths == ("apple.py",)
            assert (await process.found(W, "apricot")).paths == ()
            assert bench.sent() == sent
            assert [call.args[1] for call in recorder.of("pool.chunk")] == [["apple.py"]]


async def test_a_delta_that_is_made_late_is_complete_like_any_other(autojump_clock: trio.testing.MockClock) -> None:
    bench = fruit_bench()
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await start_both(process)
            bench.trees[W].write("apple.py", words("apricot"))
            await process.found(W, "apricot")
            await trio.testing.wait_all_tasks_blocked()

            info = await bench.store.describe(collection_name(W))
            assert info is not None
            assert CollectionMetadata.from_payload(info.metadata or {}).indexing_complete


async def test_a_worktree_is_not_searched_before_it_was_compared(autojump_clock: trio.testing.MockClock) -> None:
    bench, gate = fruit_bench(banana=words("blueberry")), Gate("embedder.embed", about="blueberry")
    gate.shut()
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            await process.start(P)
            overlay = await process.start(W, baseline=P)
            await gate.reached()
            with pytest.raises(Exception, match="reconciliation is not complete"):
                await overlay.search(SearchRequest("apple"))
            gate.open()
            await overlay.settled()
            assert (await process.found(W, "apple")).paths == ("apple.py",)


async def test_a_file_ignored_in_the_worktree_shadows_the_baselines(autojump_clock: trio.testing.MockClock) -> None:
    bench = fruit_bench()
    with trio.fail_after(PATIENCE):
        async with bench.process() as process:
            await start_both(process)
            bench.trees[W].write(".gitignore", "apple.py\n")

            assert (await process.found(W, "apple")).paths == ()
            assert (await process.found(P, "apple")).paths == ("apple.py",)


@pytest.mark.parametrize("edited", [True, False], ids=["edited", "deleted"])
async def test_a_search_is_not_fresh_without_what_the_baseline_took_away_under_it(
    autojump_clock: trio.testing.MockClock, edited: bool
) -> None:
    """The baseline deletes its points while a worktree that still needs them is being searched."""
    bench = fruit_bench()
    asking, deleted = Gate("embedder.embed", about="query"), Gate("store.delete_files", after=True)
    with trio.fail_after(PATIENCE):
        async with bench.process(asking, deleted) as process, trio.open_nursery() as nursery:
            await start_both(process)
            asking.shut()
            deleted.shut()

            async def search() -> None:
                found = await process.found(W, "banana query")
                assert (found.paths, found.answer.fresh) == (("banana.py",), True)
                deleted.open()

            nursery.start_soon(search)
            await asking.reached()  # freshness is settled, the store not yet asked
            if edited:
                bench.trees[P].write("banana.py", words("blueberry"))
            else:
                bench.trees[P].delete("banana.py")
            await process.workspaces[P].sweep()
            await deleted.reached()
            asking.open()


async def test_a_search_takes_into_account_what_the_baseline_did_while_it_waited_for_other_files(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, own, moved = fruit_bench(), Gate("store.upsert", about="apricot"), Gate("pool.chunk", about="banana")

    async def open_late(call: Call, proceed: Proceed) -> Any:
        """Let the worktree's copy of banana.py be made only after a first look into the store, which misses it."""
        result = await proceed()
        if call.is_named("store.search"):
            moved.open()
        return result

    with trio.fail_after(PATIENCE):
        async with bench.process(own, moved, open_late) as process, trio.open_nursery() as nursery:
            await start_both(process)
            own.shut()
            bench.trees[W].write("apple.py", words("apricot"))

            async def search() -> None:
                found = await process.found(W, "banana")
                assert (found.paths, found.answer.fresh) == (("banana.py",), True)

            nursery.start_soon(search)
            await own.reached()  # the search waits for apple.py
            bench.trees[P].delete("banana.py")
            moved.shut()
            await process.workspaces[P].sweep()
            await process.workspaces[P].settled()
            own.open()


async def test_a_search_is_not_fresh_before_the_worktree_has_followed_a_baseline_that_started_over(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench = fruit_bench()
    with trio.fail_after(PATIENCE):
        async with bench.process() as process, trio.open_nursery() as nursery:
            await start_both(process)
            overlay = process.workspaces[W]
            overlay.index.followed = trio.Event()
            assert not (await overlay.search(SearchRequest("banana", fresh_seconds=1))).fresh

            async def search() -> None:
                assert (await process.found(W, "banana")).answer.fresh

            nursery.start_soon(search)
            await trio.testing.wait_all_tasks_blocked()
            overlay.index.followed.set()


async def test_edits_of_the_worktree_itself_do_not_make_a_search_start_over(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, recorder = fruit_bench(), Recorder()
    gate = Gate("store.search")
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder, gate) as process, trio.open_nursery() as nursery:
            await start_both(process)
            gate.shut()
            recorder.calls.clear()
            nursery.start_soon(process.found, W, "banana")
            await gate.reached()
            bench.trees[W].write("apple.py", words("apricot"))
            await process.workspaces[W].sweep()
            gate.open()
            await trio.testing.wait_all_tasks_blocked()

            assert len([call for call in recorder.of("embedder.embed") if call.args[1] is Role.QUERY]) == 1
            assert len(recorder.of("store.search")) <= 2


async def test_what_is_shadowed_is_known_at_the_start_and_kept_true_by_every_change(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench = fruit_bench(banana=words("blueberry"), elder=words("elderberry"))
    bench.trees[W].delete("cherry.py")
    with trio.fail_after(PATIENCE):
        for _ in range(2):  # the second time from the ledger
            async with bench.process() as process:
                await start_both(process)
                assert process.workspaces[W].index.shadowed == {"banana.py", "cherry.py"}

        async with bench.process() as process:
            await start_both(process)
            overlay = process.workspaces[W]
            for tree, name, text, expected in [
                (W, "banana", FRUIT["banana"], {"cherry.py"}),
                (W, "cherry", FRUIT["cherry"], set()),
                (W, "apple", None, {"apple.py"}),
                (P, "apple", None, set()),
                (P, "damson", words("date"), {"damson.py"}),
                (P, "elder", words("elderflower"), {"damson.py", "elder.py"}),
                (P, "elder", words("elderberry"), {"damson.py"}),
                (P, "fig", words("fig"), {"damson.py", "fig.py"}),
            ]:
                if text is None:
                    bench.trees[tree].delete(f"{name}.py")
                else:
                    bench.trees[tree].write(f"{name}.py", text)
                for root in (P, W):
                    await process.workspaces[root].sweep()
                    await process.workspaces[root].settled()
                await overlay.settled()
                assert overlay.index.shadowed == expected, name


async def test_what_is_shadowed_is_not_asked_of_the_store(autojump_clock: trio.testing.MockClock) -> None:
    bench, recorder = fruit_bench(banana=words("blueberry")), Recorder()
    with trio.fail_after(PATIENCE):
        async with bench.process(recorder) as process:
            await start_both(process)
            await process.found(W, "banana")

            (asked,) = [call for call in recorder.of("store.search") if call.args[0] == collection_name(P)]
            assert asked.kwargs["exclude"] == {"banana.py"}


async def test_a_worktree_does_not_rely_on_what_its_baseline_has_lost(autojump_clock: trio.testing.MockClock) -> None:
    """While a search is under way the baseline's collection is deleted by somebody else, and half of it built again."""
    bench = Bench(HashingEmbedder(dimension=512, batch_size=1), cache=MemoryEmbeddingCache(max_bytes=0))
    asking, building = Gate("embedder.embed", about="QUERY"), Gate("embedder.embed", about="DOCUMENT")
    for root in (P, W):
        bench.tree(root, **{f"file{number}": words(f"token{number}") for number in range(12)})
    with trio.fail_after(PATIENCE):
        async with bench.process(asking, building) as process, trio.open_nursery() as nursery:
            await start_both(process)
            primary = process.workspaces[P]
            asking.shut()

            async def search() -> None:
                found = await process.found(W, "token0")
                assert (found.paths, found.answer.fresh) == (("file0.py",), True)

            nursery.start_soon(search)
            await asking.reached()
            await bench.store.drop(collection_name(P))
            bench.trees[P].write("file11.py", words("changed"))
            await primary.sweep()
            while primary.status().state is not State.ERROR:
                await primary.changes.beyond(primary.changes.value)
            building.shut()
            await trio.sleep(2)  # it begins anew
            await bench.store.create(collection_name(P), 512)
            asking.open()
            await trio.sleep(5)
            building.open()


async def test_what_the_baseline_holds_of_a_file_that_waits_is_shown_if_the_disk_agrees(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bench, gate = fruit_bench(banana=words("blueberry")), Gate("pool.chunk")
    with trio.fail_after(PATIENCE):
        async with bench.process(gate) as process:
            await start_both(process)
            gate.shut()
            bench.trees[W].write("banana.py", FRUIT["banana"])
            bench.trees[W].write("apple.py", words("apricot"))
            answer = await process.workspaces[W].search(SearchRequest("banana apple", fresh_seconds=1))

            assert [hit.file_path for hit in answer.results] == ["banana.py"]
            assert (answer.fresh, sorted(answer.pending)) == (False, ["apple.py", "banana.py"])
            gate.open()
