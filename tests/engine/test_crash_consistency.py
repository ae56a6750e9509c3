"""Killed between any two calls of store and ledger, or amid a write, an index is mended by the next start."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
import trio

from semindex.model.status import State
from semindex.testing.audit import differences
from semindex.testing.bench import Bench, Process, words
from semindex.testing.sweep import Check, PowerCut, cut_at_every_call

P, W = "/primary", "/worktree"
PATIENCE = 600.0
LONG = "\n".join(words(f"token{number}", units=1200) for number in range(4))
"""A file of several chunks."""


FILES = {
    P: {"a.py": words("apple"), "b.py": words("banana"), "c.py": LONG, "d.py": words("damson")},
    W: {
        "a.py": words("apple"),
        "b.py": words("blueberry"),
        "c.py": LONG,
        "d.py": words("damson"),
        "e.py": words("elderberry"),
    },
}


def made() -> Bench:
    bench = Bench()
    put_back(bench)
    return bench


def put_back(bench: Bench) -> None:
    """Give both trees the files that they have at the beginning, and no others."""
    for root, files in FILES.items():
        tree = bench.tree(root)
        for path in {*FILES[P], *FILES[W], "renamed.py", "new.py", "f.py", ".gitignore"} - set(files):
            with suppress(FileNotFoundError):
                tree.delete(path)
        for path, text in files.items():
            tree.write(path, text)
        tree.advance(10)


async def settle(process: Process, *roots: str) -> None:
    for root in roots:
        await process.workspaces[root].sweep()
        await process.workspaces[root].settled()


async def first_build(bench: Bench, power: PowerCut) -> None:
    async with bench.process(power) as process:
        power.begin()
        await (await process.start(P)).settled()


async def edits(bench: Bench, power: PowerCut) -> None:
    async with bench.process(power) as process:
        await (await process.start(P)).settled()
        power.begin()
        tree = bench.trees[P]
        tree.write("a.py", words("apricot"))
        tree.write("c.py", LONG + LONG.replace("token", "other"))
        tree.delete("b.py")
        tree.rename("d.py", "renamed.py")
        tree.write("new.py", words("new"))
        tree.advance(10)
        await settle(process, P)
        tree.write("c.py", words("short"))
        tree.write("a.py", "short")
        tree.write(".gitignore", "new.py\n")
        await settle(process, P)


async def overlay_build(bench: Bench, power: PowerCut) -> None:
    async with bench.process(power) as process:
        await (await process.start(P)).settled()
        power.begin()
        await (await process.start(W, baseline=P)).settled()


async def both_move(bench: Bench, power: PowerCut) -> None:
    async with bench.process(power) as process:
        await (await process.start(P)).settled()
        await (await process.start(W, baseline=P)).settled()
        power.begin()
        bench.trees[P].write("b.py", words("blueberry"))
        bench.trees[P].write("c.py", words("cherry"))
        bench.trees[P].delete("d.py")
        bench.trees[W].write("a.py", words("apricot"))
        bench.trees[W].rename("e.py", "f.py")
        for tree in bench.trees.values():
            tree.advance(10)
        await settle(process, P, W)
        bench.trees[W].write("a.py", words("apple"))
        bench.trees[W].write("c.py", words("cherry"))
        await settle(process, P, W)


async def rebuild(bench: Bench, power: PowerCut) -> None:
    async with bench.process(power) as process:
        workspace = await process.start(P)
        await workspace.settled()
        power.begin()
        await workspace.reindex()
        await workspace.settled()


async def purge(bench: Bench, power: PowerCut) -> None:
    async with bench.process(power) as process:
        workspace = await process.start(P)
        await workspace.settled()
        power.begin()
        await process.stop(P, purge=True)


async def another_embedder(bench: Bench, power: PowerCut) -> None:
    async with bench.process() as process:
        await (await process.start(P)).settled()
    bench.embedder = type(bench.embedder)(dimension=384)
    async with bench.process(power) as process:
        power.begin()
        await (await process.start(P)).settled()


@pytest.mark.parametrize("undone", [False, True], ids=["edits kept", "edits undone before the next start"])
@pytest.mark.parametrize("torn", [False, True], ids=["between calls", "in the midst"])
@pytest.mark.parametrize(
    "act",
    [first_build, edits, overlay_build, both_move, rebuild, purge, another_embedder],
    ids=lambda act: act.__name__,
)
def test_whenever_the_power_is_cut_the_next_start_has_the_index_of_a_new_build(
    act: Callable[[Bench, PowerCut], Awaitable[None]], torn: bool, undone: bool
) -> None:
    def make() -> tuple[Callable[[PowerCut], Awaitable[None]], Check]:
        bench = made()

        async def scenario(power: PowerCut) -> None:
            with trio.fail_after(PATIENCE):
                await act(bench, power)

        async def check(place: int) -> None:
            if undone:
                put_back(bench)
            with trio.fail_after(PATIENCE):
                async with bench.process() as process:
                    await process.start(P)
                    await process.start(W, baseline=P)
                    for workspace in process.workspaces.values():
                        assert (await workspace.settled()).state is State.INDEXED
                assert await differences(bench, P) == [], f"cut at call {place}"
                assert await differences(bench, W, baseline=P) == [], f"cut at call {place}"

        return scenario, check

    assert cut_at_every_call(make, torn=torn) >= 3
