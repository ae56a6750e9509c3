"""Cancelled at any step of anything, a cell leaves nothing open, nothing torn and nothing that was to be purged."""

from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
import trio
from attrs import define, field

from semindex.engine.workspace import Workspace
from semindex.model.ids import collection_name
from semindex.model.profiles import Role
from semindex.model.status import State
from semindex.testing.audit import differences
from semindex.testing.bench import Bench, Process, words
from semindex.testing.intercept import Call, Proceed
from semindex.testing.sweep import Begin, cancel_at_every_step

P, W = "/primary", "/worktree"
PATIENCE = 600.0


@define
class Arrivals:
    """Notes the texts whose vectors have arrived: they must never be sent again."""

    texts: list[str] = field(factory=list)

    async def __call__(self, call: Call, proceed: Proceed) -> object:
        result = await proceed()
        if call.is_named("embedder.embed") and call.args[1] is Role.DOCUMENT:
            self.texts += call.args[0]
        return result


@define
class Doors:
    """Notes which collections the store holds open: what any call opened, and no call has closed."""

    open: set[str] = field(factory=set)

    async def __call__(self, call: Call, proceed: Proceed) -> object:
        if call.port == "store" and call.name not in {"describe", "close", "drop"}:
            self.open.add(call.args[0])
        result = await proceed()
        if call.port == "store" and call.name in {"close", "drop"}:
            self.open.discard(call.args[0])
        return result


@define
class Scene:
    """A cell in which one thing is done, watched from outside."""

    bench: Bench = field(factory=Bench)
    doors: Doors = field(factory=Doors)
    arrivals: Arrivals = field(factory=Arrivals)
    workspaces: list[Workspace] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.bench.tree(P, a=words("apple"), b=words("banana"))
        self.bench.tree(W, a=words("apple"), b=words("blueberry"))

    async def start(self, process: Process, root: str = P, baseline: str | None = None) -> Workspace:
        workspace = await process.start(root, baseline=baseline)
        self.workspaces.append(workspace)
        return workspace

    async def check(self, step: int) -> None:
        """Nothing is left open; the next start finds its way."""
        assert all(workspace.closed.is_set() for workspace in self.workspaces)
        assert all(workspace.index.overlays == [] for workspace in self.workspaces)
        assert self.doors.open == set()
        for workspace in self.workspaces:
            if workspace.purged:
                assert collection_name(workspace.root) not in await self.bench.store.collections()
                assert self.bench.ledgers[workspace.root] == {}
        with trio.fail_after(PATIENCE):
            async with self.bench.process() as process:
                await process.start(P)
                await process.start(W, baseline=P)
                for workspace in process.workspaces.values():
                    assert (await workspace.settled()).state is State.INDEXED
            assert await differences(self.bench, P) == []
            assert await differences(self.bench, W, baseline=P) == []
        assert len(self.arrivals.texts) == len(set(self.arrivals.texts))
        sent = Counter(self.bench.sent())
        assert not [text for text in self.arrivals.texts if sent[text] > 1], f"sent again after step {step}"


async def first_build(scene: Scene, begin: Begin) -> None:
    async with scene.bench.process(scene.doors, scene.arrivals) as process:
        begin()
        await (await scene.start(process)).settled()


async def edit(scene: Scene, begin: Begin) -> None:
    async with scene.bench.process(scene.doors, scene.arrivals) as process:
        workspace = await scene.start(process)
        await workspace.settled()
        tree = scene.bench.trees[P]
        begin()
        tree.write("a.py", words("apricot"))
        tree.delete("b.py")
        tree.write("c.py", words("cherry"))
        await workspace.sweep()
        await workspace.settled()


async def search(scene: Scene, begin: Begin) -> None:
    async with scene.bench.process(scene.doors, scene.arrivals) as process:
        await (await scene.start(process)).settled()
        scene.bench.trees[P].write("a.py", words("apricot"))
        begin()
        assert (await process.found(P, "apricot")).paths == ("a.py",)


async def stop(scene: Scene, begin: Begin) -> None:
    async with scene.bench.process(scene.doors, scene.arrivals) as process:
        workspace = await scene.start(process)
        await workspace.settled()
        scene.bench.trees[P].write("a.py", words("apricot"))
        await workspace.sweep()
        begin()
        await process.stop(P)


async def stop_and_purge(scene: Scene, begin: Begin) -> None:
    async with scene.bench.process(scene.doors, scene.arrivals) as process:
        workspace = await scene.start(process)
        await workspace.settled()
        scene.bench.trees[P].write("a.py", words("apricot"))
        await workspace.sweep()
        workspace.stop(purge=True)
        begin()
        await process.stop(P, purge=True)


async def overlay_build(scene: Scene, begin: Begin) -> None:
    async with scene.bench.process(scene.doors, scene.arrivals) as process:
        await (await scene.start(process)).settled()
        begin()
        await (await scene.start(process, W, P)).settled()


async def baseline_change(scene: Scene, begin: Begin) -> None:
    async with scene.bench.process(scene.doors, scene.arrivals) as process:
        await (await scene.start(process)).settled()
        await (await scene.start(process, W, P)).settled()
        begin()
        scene.bench.trees[P].write("a.py", words("apricot"))
        scene.bench.trees[P].write("b.py", words("blueberry"))
        await process.workspaces[P].sweep()
        await process.workspaces[P].settled()
        assert (await process.found(W, "apple")).paths == ("a.py",)


@pytest.mark.parametrize(
    "act",
    [first_build, edit, search, stop, stop_and_purge, overlay_build, baseline_change],
    ids=lambda act: act.__name__,
)
def test_wherever_it_is_cancelled_a_cell_ends_clean_and_starts_again(
    act: Callable[[Scene, Begin], Awaitable[None]],
) -> None:
    def make() -> tuple[Callable[[Begin], Awaitable[None]], Callable[[int], Awaitable[None]]]:
        scene = Scene()

        async def scenario(begin: Begin) -> None:
            with trio.fail_after(PATIENCE):
                await act(scene, begin)

        async def check(step: int) -> None:
            await scene.check(step)
            if act is stop_and_purge:
                assert scene.workspaces[0].purged

        return scenario, check

    assert cancel_at_every_step(make) > 10
