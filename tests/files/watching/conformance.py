"""What every event source must do that hears of changes: subclass the suite and provide the fixture ``world``."""

from abc import ABC, abstractmethod

import pytest
import trio

from semindex.files.watching.hints import MAX_PATHS
from semindex.ports import Changes, EventSource, Watch

PATIENCE = 20.0
"""Seconds after which a wait is a hang."""

LAST = "the_last.py"
"""A file that is written after everything else: whoever has heard of it has heard of all that came before."""


class World(ABC):
    """Trees in which a test changes files, and the source that tells of them."""

    @property
    @abstractmethod
    def source(self) -> EventSource:
        """Return the source."""

    @abstractmethod
    def root(self, name: str = "tree") -> str:
        """Return a root, made on first use."""

    @abstractmethod
    def write(self, path: str, content: str = "x = 1\n", *, tree: str = "tree") -> None:
        """Write a file, making its directories if need be."""

    @abstractmethod
    def delete(self, path: str, *, tree: str = "tree") -> None:
        """Delete a file, or a directory with all that is in it."""

    @abstractmethod
    def rename(self, old: str, new: str, *, tree: str = "tree") -> None:
        """Rename a file."""

    async def heard(self, watch: Watch, *, tree: str = "tree") -> Changes:
        """Return all that the watch has heard of by now."""
        self.write(LAST, tree=tree)
        paths: frozenset[str] = frozenset()
        with trio.fail_after(PATIENCE):
            while True:
                changes = await watch.changes()
                paths |= changes.paths
                if changes.rescan or LAST in paths:
                    return Changes(paths - {LAST}, changes.rescan)


def told(*paths: str) -> Changes:
    return Changes(frozenset(paths), rescan=False)


RESCAN = Changes(frozenset(), rescan=True)


class EventSourceConformance:
    async def test_what_happens_to_a_file_of_a_followed_directory_is_told_by_path(self, world: World) -> None:
        for path in ("top.py", "a/changed.py", "a/b/deleted.py", "a/b/old.py"):
            world.write(path)
        async with world.source.watch(world.root()) as watch:
            await watch.follow(["", "a", "a/b"])
            world.write("a/changed.py", "x = 2\n")
            world.write("a/new.py")
            world.delete("a/b/deleted.py")
            world.rename("a/b/old.py", "a/b/renamed.py")

            assert await world.heard(watch) == told(
                "a/changed.py", "a/new.py", "a/b/deleted.py", "a/b/old.py", "a/b/renamed.py"
            )

    async def test_following_says_whether_a_directory_is_new(self, world: World) -> None:
        world.write("a/b/file.py")
        async with world.source.watch(world.root()) as watch:
            answers = [
                await watch.follow(directories)
                for directories in (["", "a"], ["", "a"], ["", "a", "a/b"], ["a/b", ""], ["", "a/b", "a"])
            ]

            assert answers == [True, False, True, False, True]

    async def test_nothing_is_told_of_a_directory_that_is_followed_no_longer(self, world: World) -> None:
        world.write("a/file.py")
        async with world.source.watch(world.root()) as watch:
            await watch.follow(["", "a"])
            await watch.follow([""])
            world.write("a/file.py", "x = 2\n")

            assert await world.heard(watch) == told()

    @pytest.mark.parametrize("name", ["notes.bin", ".hidden.py", "file.py.swp", "debug.log", "no_extension"])
    async def test_nothing_is_told_of_a_file_that_no_index_holds(self, world: World, name: str) -> None:
        async with world.source.watch(world.root()) as watch:
            await watch.follow([""])
            world.write(name)

            assert await world.heard(watch) == told()

    @pytest.mark.parametrize("path", ["node_modules/x.py", ".venv/x.py", "build/x.py"])
    async def test_nothing_is_told_of_a_directory_that_is_never_entered(self, world: World, path: str) -> None:
        async with world.source.watch(world.root()) as watch:
            await watch.follow([""])
            world.write(path)

            assert await world.heard(watch) == told()

    @pytest.mark.parametrize("name", [".gitignore", ".kilocodeignore"])
    async def test_a_change_of_the_rules_asks_for_a_rescan(self, world: World, name: str) -> None:
        world.write("a/file.py")
        async with world.source.watch(world.root()) as watch:
            await watch.follow(["", "a"])
            world.write(f"a/{name}", "file.py\n")

            assert await world.heard(watch) == RESCAN

    async def test_a_new_directory_asks_for_a_rescan(self, world: World) -> None:
        async with world.source.watch(world.root()) as watch:
            await watch.follow([""])
            world.write("new/deep/file.py")

            assert await world.heard(watch) == RESCAN

    async def test_more_paths_than_a_sweep_is_worth_collapse_into_a_rescan(self, world: World) -> None:
        async with world.source.watch(world.root()) as watch, world.source.watch(world.root("other")) as other:
            await watch.follow([""])
            await other.follow([""])
            for number in range(MAX_PATHS + 1):
                world.write(f"file{number}.py")
            await world.heard(other, tree="other")

            assert await watch.changes() == RESCAN

    async def test_a_cancelled_wait_takes_nothing(self, world: World) -> None:
        async with world.source.watch(world.root()) as watch:
            await watch.follow([""])
            with trio.move_on_after(0):
                await watch.changes()
            world.write("file.py")
            with trio.CancelScope() as scope:
                scope.cancel()
                await watch.changes()

            assert await world.heard(watch) == told("file.py")

    async def test_two_watches_hear_of_their_own_trees_only(self, world: World) -> None:
        async with (
            world.source.watch(world.root("one")) as one,
            world.source.watch(world.root("other")) as other,
        ):
            await one.follow([""])
            await other.follow([""])
            world.write("here.py", tree="one")
            world.write("there.py", tree="other")

            assert await world.heard(one, tree="one") == told("here.py")
            assert await world.heard(other, tree="other") == told("there.py")

    async def test_a_watch_without_trouble_has_none_to_tell_and_counts(self, world: World) -> None:
        assert world.source.watched == 0
        async with world.source.watch(world.root()) as watch:
            await watch.follow([""])

            assert watch.trouble is None
            assert world.source.watched == 1
        assert world.source.watched == 0

    async def test_a_tree_can_be_watched_again_after_its_watch_ended(self, world: World) -> None:
        for _ in range(2):
            async with world.source.watch(world.root()) as watch:
                assert await watch.follow([""])
                world.write("file.py")

                assert await world.heard(watch) == told("file.py")
