"""The twin of the event source, and the delay of any."""

import pytest
import trio
import trio.testing

from semindex.testing.tree import MemoryTree
from semindex.testing.watch import DelayedSource, MemorySource
from tests.files.watching.conformance import RESCAN, EventSourceConformance, World, told


class MemoryWorld(World):
    def __init__(self) -> None:
        self.twin = MemorySource()
        self.trees: dict[str, MemoryTree] = {}

    @property
    def source(self) -> MemorySource:
        return self.twin

    def root(self, name: str = "tree") -> str:
        if name not in self.trees:
            self.trees[name] = MemoryTree()
            self.twin.listen(f"/{name}", self.trees[name])
        return f"/{name}"

    def tree(self, name: str) -> MemoryTree:
        self.root(name)
        return self.trees[name]

    def write(self, path: str, content: str = "x = 1\n", *, tree: str = "tree") -> None:
        self.tree(tree).write(path, content)

    def delete(self, path: str, *, tree: str = "tree") -> None:
        self.tree(tree).delete(path)

    def rename(self, old: str, new: str, *, tree: str = "tree") -> None:
        self.tree(tree).rename(old, new)


@pytest.fixture
def world() -> World:
    return MemoryWorld()


class TestMemorySource(EventSourceConformance):
    async def test_it_can_lose_changes_without_a_trace(self) -> None:
        world = MemoryWorld()
        async with world.source.watch(world.root()) as watch:
            await watch.follow([""])
            world.twin.losing = True
            world.write("lost.py")
            world.twin.losing = False

            assert await world.heard(watch) == told()

    async def test_it_can_overflow(self) -> None:
        world = MemoryWorld()
        async with world.source.watch(world.root()) as watch:
            await watch.follow([""])
            world.write("file.py")
            world.twin.overflow()

            assert await watch.changes() == RESCAN


async def test_a_delayed_change_is_told_late_and_not_lost_by_who_gives_up_waiting(
    autojump_clock: trio.testing.MockClock,
) -> None:
    world = MemoryWorld()
    async with DelayedSource(world.source, 5.0).watch(world.root()) as watch:
        await watch.follow([""])
        world.write("file.py")
        with trio.move_on_after(3.0) as scope:
            await watch.changes()
        assert scope.cancelled_caught

        assert await watch.changes() == told("file.py")
        assert trio.current_time() == pytest.approx(5.0)
