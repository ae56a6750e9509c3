"""Hearing of changes from the kernel: what the twin cannot show."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
import pytest
import trio
import trio.testing

from semindex.files.watching.inotify import open_inotify_source
from semindex.ports import Watch
from tests.files.watching.conformance import PATIENCE, RESCAN, EventSourceConformance, told
from tests.files.watching.disk import NEVER, QUICK, DiskWorld, Listener, commit_of, directories_of, git, nothing_more


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[DiskWorld]:
    def count() -> None:
        disk.overflows += 1

    async with open_inotify_source(overflowed=count) as source:
        disk = DiskWorld(source, tmp_path)
        yield disk


class TestInotify(EventSourceConformance):
    pass


# Files


async def test_an_atomic_save_is_told_as_a_change_of_the_file_every_time(world: DiskWorld) -> None:
    world.write("a/file.py")
    async with world.source.watch(world.root()) as watch:
        await watch.follow(["", "a"])
        for number in range(25):
            world.write("a/.file.py.tmp", f"x = {number}\n")
            world.rename("a/.file.py.tmp", "a/file.py")

            assert await world.heard(watch) == told("a/file.py")


async def test_a_file_that_its_writer_keeps_open_is_told_of(world: DiskWorld) -> None:
    async with world.source.watch(world.root()) as watch:
        with world.open("open.py") as file:
            await watch.follow([""])
            file.write(b"x = 1\n")

            assert await world.heard(watch) == told("open.py")


async def test_a_file_that_becomes_unreadable_is_told_of(world: DiskWorld) -> None:
    world.write("file.py")
    async with world.source.watch(world.root()) as watch:
        await watch.follow([""])
        world.path("file.py").chmod(0)

        assert await world.heard(watch) == told("file.py")


async def test_names_that_are_not_utf8_break_nothing_and_are_never_told(world: DiskWorld) -> None:
    async with world.source.watch(world.root()) as watch:
        await watch.follow([""])
        with world.open(b"caf\xe9.py") as file:
            assert await world.heard(watch) == RESCAN
            file.write(b"x = 1\n")
        assert await world.heard(watch) == told()

        os.mkdir(os.fsencode(world.root()) + b"/\xff")
        assert await world.heard(watch) == RESCAN
        assert await watch.follow(directories_of(world.root()))


# Directories


async def test_no_file_of_a_new_directory_is_lost(world: DiskWorld) -> None:
    expected = {f"{number}/a/b/file.py" for number in range(200)}

    def make_all() -> None:
        for path in sorted(expected):
            world.write(path)

    async with world.source.watch(world.root()) as watch, trio.open_nursery() as nursery:
        listener = Listener(watch, world.root())
        await listener.look()
        nursery.start_soon(trio.to_thread.run_sync, make_all)
        await listener.listen_until(expected)


async def test_a_directory_that_was_renamed_is_followed_under_its_new_name(world: DiskWorld) -> None:
    world.write("a/deep/file.py")
    async with world.source.watch(world.root()) as watch:
        await watch.follow(directories_of(world.root()))
        world.rename("a", "b")
        assert await world.heard(watch) == RESCAN

        assert await watch.follow(directories_of(world.root()))
        world.write("b/deep/file.py", "x = 2\n")
        assert await world.heard(watch) == told("b/deep/file.py")


async def test_a_directory_in_the_place_of_a_renamed_one_is_not_taken_for_it(world: DiskWorld) -> None:
    world.write("a/file.py")
    async with world.source.watch(world.root()) as watch:
        await watch.follow(["", "a"])
        world.rename("a", "b")
        world.write("a/file.py")

        assert await watch.follow(["", "a", "b"])
        assert await world.heard(watch) == RESCAN
        world.write("a/file.py", "x = 2\n")
        world.write("b/file.py", "x = 2\n")
        assert await world.heard(watch) == told("a/file.py", "b/file.py")


async def test_a_directory_that_moved_away_is_let_go(world: DiskWorld) -> None:
    world.write("a/file.py")
    async with world.source.watch(world.root()) as watch:
        await watch.follow(["", "a"])
        world.path("a").rename(world.path("a", tree="elsewhere"))
        assert await world.heard(watch) == RESCAN

        assert not await watch.follow([""])
        assert await world.kernel_watches() == 1
        world.write("a/file.py", "x = 2\n", tree="elsewhere")
        assert await world.heard(watch) == told()


async def test_a_directory_that_moved_in_is_followed(world: DiskWorld) -> None:
    world.write("a/deep/file.py", tree="elsewhere")
    async with world.source.watch(world.root()) as watch:
        await watch.follow([""])
        world.path("a", tree="elsewhere").rename(world.path("a"))
        assert await world.heard(watch) == RESCAN

        assert await watch.follow(directories_of(world.root()))
        world.write("a/deep/file.py", "x = 2\n")
        assert await world.heard(watch) == told("a/deep/file.py")


async def test_a_deleted_tree_asks_for_a_rescan_and_leaves_nothing_watched(world: DiskWorld) -> None:
    for number in range(100):
        world.write(f"a/{number}/file.py")
    async with world.source.watch(world.root()) as watch:
        await watch.follow(directories_of(world.root()))
        assert await world.kernel_watches() == 102
        world.delete("a")
        assert await world.heard(watch) == RESCAN

        assert not await watch.follow([""])
        assert await world.kernel_watches() == 1


async def test_a_directory_that_was_deleted_and_made_again_is_new(world: DiskWorld) -> None:
    world.write("a/file.py")
    async with world.source.watch(world.root()) as watch:
        await watch.follow(["", "a"])
        world.delete("a")
        world.write("a/file.py")

        assert await watch.follow(["", "a"])


async def test_directories_that_are_gone_by_now_or_were_never_any_are_not_followed(world: DiskWorld) -> None:
    world.write("file.py")
    world.write("target/file.py", tree="elsewhere")
    world.path("link").symlink_to(world.path("target", tree="elsewhere"))
    async with world.source.watch(world.root()) as watch:
        await watch.follow(["", "gone", "file.py", "link", "gone/deeper"])

        assert watch.trouble is None
        assert await world.kernel_watches() == 1


async def test_the_switch_of_a_branch_with_thousands_of_files_collapses_into_a_rescan(
    world: DiskWorld, git_repository: Path
) -> None:
    directories = [str(number) for number in range(20)]
    few = [f"{directory}/always.py" for directory in directories]
    many = few + [f"{number % 20}/{number}.py" for number in range(2000)]
    git(git_repository, "fast-import", standard_input=commit_of("few", few) + commit_of("many", many))
    git(git_repository, "switch", "few")
    async with world.source.watch(str(git_repository)) as watch, world.source.watch(world.root()) as other:
        await watch.follow(["", *directories])
        await other.follow([""])
        git(git_repository, "switch", "many")
        await world.heard(other)

        assert await watch.changes() == RESCAN


# Rules


async def test_a_change_of_the_repository_s_own_exclude_file_asks_for_a_rescan(
    world: DiskWorld, git_repository: Path
) -> None:
    async with world.source.watch(str(git_repository)) as watch:
        await watch.follow([""])
        (git_repository / ".git/info/exclude").write_text("secret.py\n")

        with trio.fail_after(PATIENCE):
            assert await watch.changes() == RESCAN


async def test_a_worktree_hears_of_the_exclude_file_that_it_shares(world: DiskWorld, git_repository: Path) -> None:
    worktree = git_repository.parent / "worktree"
    git(git_repository, "commit", "--allow-empty", "--message", "first")
    git(git_repository, "worktree", "add", str(worktree))
    async with world.source.watch(str(worktree)) as watch:
        await watch.follow([""])
        (git_repository / ".git/info/exclude").write_text("secret.py\n")

        with trio.fail_after(PATIENCE):
            assert await watch.changes() == RESCAN


async def test_rules_above_the_root_count_and_nothing_else_there_does(world: DiskWorld, git_repository: Path) -> None:
    root = git_repository / "packages/one"
    root.mkdir(parents=True)
    async with world.source.watch(str(root)) as watch:
        await watch.follow([""])
        (git_repository / "packages/above.py").write_text("x = 1\n")
        (git_repository / "packages/two").mkdir()
        (root / "below.py").write_text("x = 1\n")
        with trio.fail_after(PATIENCE):
            assert await watch.changes() == told("below.py")

        (git_repository / ".gitignore").write_text("below.py\n")
        with trio.fail_after(PATIENCE):
            assert (await watch.changes()).rescan


@pytest.mark.usefixtures("git_repository")
async def test_a_clone_below_the_root_asks_for_a_rescan(world: DiskWorld) -> None:
    world.write("a/file.py")
    async with world.source.watch(world.root()) as watch:
        await watch.follow(["", "a"])
        git(world.path("a"), "init")

        assert await world.heard(watch) == RESCAN


# The root


@pytest.fixture
async def quick_world(tmp_path: Path) -> AsyncIterator[DiskWorld]:
    async with open_inotify_source(QUICK) as source:
        yield DiskWorld(source, tmp_path)


async def next_rescan(watch: Watch) -> None:
    with trio.fail_after(PATIENCE):
        assert await watch.changes() == RESCAN


async def test_the_end_of_the_root_is_heard_of_at_once(tmp_path: Path) -> None:
    async with open_inotify_source(NEVER) as source:
        world = DiskWorld(source, tmp_path)
        async with source.watch(world.root()) as watch:
            await watch.follow([""])
            shutil.rmtree(world.home / "tree")

            await next_rescan(watch)


@pytest.mark.parametrize("is_at_once", [True, False])
async def test_a_root_that_is_deleted_and_made_again_is_watched_again(quick_world: DiskWorld, is_at_once: bool) -> None:
    world = quick_world
    world.write("a/file.py")
    async with world.source.watch(world.root()) as watch:
        await watch.follow(["", "a"])
        shutil.rmtree(world.home / "tree")
        if not is_at_once:
            await next_rescan(watch)
            await nothing_more(watch)
            assert await world.kernel_watches() == 0
        world.write("a/file.py")
        await next_rescan(watch)
        assert await watch.follow(["", "a"])
        await nothing_more(watch)

        await watch.follow(["", "a"])
        world.write("a/file.py", "x = 2\n")
        assert await world.heard(watch) == told("a/file.py")


async def test_a_root_that_moved_away_is_let_go_until_it_comes_back(quick_world: DiskWorld) -> None:
    world = quick_world
    world.write("file.py")
    async with world.source.watch(world.root()) as watch:
        await watch.follow([""])
        (world.home / "tree").rename(world.home / "away")
        await next_rescan(watch)
        await nothing_more(watch)
        assert await world.kernel_watches() == 0

        (world.home / "away").rename(world.home / "tree")
        await next_rescan(watch)


async def test_a_directory_above_the_root_that_is_renamed_takes_the_root_away(quick_world: DiskWorld) -> None:
    world = quick_world
    root = world.home / "above/root"
    root.mkdir(parents=True)
    async with world.source.watch(str(root)) as watch:
        await watch.follow([""])
        (world.home / "above").rename(world.home / "elsewhere")

        await next_rescan(watch)
        assert await world.kernel_watches() == 0


async def test_a_root_that_is_not_there_yet_is_waited_for(quick_world: DiskWorld) -> None:
    world = quick_world
    async with world.source.watch(str(world.home / "tree")) as watch:
        assert not await watch.follow([""])
        world.write("file.py")

        await next_rescan(watch)
        assert await watch.follow([""])


# What the source holds


async def test_a_watch_that_ends_gives_its_directories_back(world: DiskWorld) -> None:
    for number in range(1200):
        world.path(f"{number}").mkdir()
    async with world.source.watch(world.root()) as watch:
        await watch.follow(directories_of(world.root()))
        assert await world.kernel_watches() == 1201

    assert await world.kernel_watches() == 0


async def test_a_directory_that_two_watch_is_heard_of_by_both_and_by_who_remains(world: DiskWorld) -> None:
    world.write("nested/file.py")
    async with world.source.watch(str(world.path("nested"))) as inner:
        await inner.follow([""])
        async with world.source.watch(world.root()) as outer:
            assert await outer.follow(["", "nested"])
            assert not await inner.follow([""])
            world.write("nested/file.py", "x = 2\n")
            assert await world.heard(outer) == told("nested/file.py")
            with trio.fail_after(PATIENCE):
                assert await inner.changes() == told("file.py")

            await outer.follow([""])
            assert await world.kernel_watches() == 2
            world.write("nested/file.py", "x = 3\n")
            with trio.fail_after(PATIENCE):
                assert await inner.changes() == told("file.py")
            assert await world.heard(outer) == told()


async def test_fifty_watches_share_one_descriptor_and_hold_no_thread(tmp_path: Path) -> None:
    descriptors = psutil.Process().num_fds
    before = descriptors()
    async with open_inotify_source() as source, AsyncExitStack() as watches, trio.open_nursery() as nursery:
        world = DiskWorld(source, tmp_path)
        for number in range(50):
            watch = await watches.enter_async_context(source.watch(world.root(f"tree{number}")))
            await watch.follow([""])
            nursery.start_soon(watch.changes)
        await trio.testing.wait_all_tasks_blocked()

        assert descriptors() == before + 1
        assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
        nursery.cancel_scope.cancel()
    assert descriptors() == before


# When the kernel refuses, or loses


async def test_an_overflow_of_the_kernel_s_queue_is_told_and_asks_every_watch_for_a_rescan(world: DiskWorld) -> None:
    async with world.source.watch(world.root("busy")) as busy, world.source.watch(world.root("quiet")) as quiet:
        await busy.follow([""])
        await quiet.follow([""])
        world.flood("busy")

        await next_rescan(quiet)
        await next_rescan(busy)
        assert world.overflows == 1
        world.write("file.py", tree="quiet")
        assert await world.heard(quiet, tree="quiet") == told("file.py")
