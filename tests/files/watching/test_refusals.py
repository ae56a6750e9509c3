"""When the kernel refuses, fails or hangs: the tree is compared from time to time, which is told, until it is over."""

import errno
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import trio

from semindex.files.watching.inotify import InotifySource
from semindex.files.watching.kernel import Event, Instance
from semindex.files.watching.polling import Pace
from tests.architecture.checkout import ROOT
from tests.files.watching.conformance import PATIENCE, RESCAN, told
from tests.files.watching.disk import NEVER, QUICK, DiskWorld, nothing_more


@pytest.mark.parametrize("scenario", ["few_watches", "no_instance"])
def test_the_kernel_s_limits_are_told_and_outlived(scenario: str, tmp_path: Path) -> None:
    as_root = ["unshare", "--user", "--map-root-user"]
    try:
        subprocess.run([*as_root, "test", "-w", "/proc/sys/user/max_inotify_watches"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("limits cannot be lowered here: user namespaces are not allowed")
    program = [sys.executable, "-m", "tests.files.watching.limited", scenario, str(tmp_path)]

    done = subprocess.run([*as_root, *program], cwd=ROOT, capture_output=True, text=True, timeout=3 * PATIENCE)

    assert done.returncode == 0, done.stderr


class Faulty(Instance):
    """An instance of which a test can make calls fail or hang."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[Exception] = []
        """Raised by the next calls that read."""
        self.refused: dict[str, OSError] = {}
        """Directory → why it is not watched."""
        self.hanging: str | None = None
        """The directory whose watching hangs."""
        self.hangs = trio.Event()
        self.go_on = threading.Event()

    def add(self, directory: str) -> int:
        if directory in self.refused:
            raise self.refused[directory]
        if directory == self.hanging:
            trio.from_thread.run_sync(self.hangs.set)
            self.go_on.wait(PATIENCE)
        return super().add(directory)

    def read(self) -> tuple[list[Event], bool]:
        events, more = super().read()
        if self.errors:
            raise self.errors.pop()
        return events, more


class FaultyWorld(DiskWorld):
    """Trees watched by faulty instances."""

    def __init__(self, home: Path, pace: Pace) -> None:
        self.instances: list[Faulty] = []
        super().__init__(InotifySource(pace, open_instance=self._open), home)

    @property
    def instance(self) -> Faulty:
        return self.instances[-1]

    def _open(self) -> Faulty:
        self.instances.append(Faulty())
        return self.instances[-1]


@pytest.fixture
async def world(tmp_path: Path, nursery: trio.Nursery) -> FaultyWorld:
    world = FaultyWorld(tmp_path, QUICK)
    await nursery.start(world.source.run)
    return world


@pytest.fixture
async def slow_world(tmp_path: Path, nursery: trio.Nursery) -> FaultyWorld:
    world = FaultyWorld(tmp_path, NEVER)
    await nursery.start(world.source.run)
    return world


@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), ZeroDivisionError()])
async def test_a_source_that_fails_says_so_and_begins_again_with_a_rescan(
    world: FaultyWorld, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.source.watch(world.root()) as watch:
        await watch.follow([""])
        world.instance.errors.append(error)
        world.write("file.py")
        with trio.fail_after(PATIENCE):
            assert await watch.changes() == RESCAN
            assert watch.trouble is not None
            assert type(error).__name__ in watch.trouble
            while watch.trouble is not None:
                assert await watch.changes() == RESCAN
        assert any(record.exc_info for record in caplog.records)

        assert len(world.instances) == 2
        assert await watch.follow([""])
        await nothing_more(watch)
        world.write("file.py", "x = 2\n")
        assert await world.heard(watch) == told("file.py")


async def test_the_failure_of_a_source_asks_for_a_rescan_at_once(slow_world: FaultyWorld) -> None:
    world = slow_world
    async with world.source.watch(world.root()) as watch:
        await watch.follow([""])
        world.instance.errors.append(OSError(errno.EIO, "broken"))
        world.write("file.py")

        with trio.fail_after(PATIENCE):
            assert await watch.changes() == RESCAN


async def test_what_was_refused_is_not_tried_again_at_once(slow_world: FaultyWorld) -> None:
    world = slow_world
    async with world.source.watch(world.root()) as watch:
        world.instance.refused[world.root()] = OSError(errno.ENOSPC, "no watch left")
        await watch.follow([""])
        world.instance.refused.clear()

        assert not await watch.follow([""])
        assert watch.trouble is not None


async def test_an_error_for_which_there_is_no_name_is_told_in_the_system_s_words(world: FaultyWorld) -> None:
    async with world.source.watch(world.root()) as watch:
        world.instance.refused[world.root()] = OSError(errno.ENOMEM, "no memory")

        assert not await watch.follow([""])
        assert watch.trouble is not None
        assert "Cannot allocate memory" in watch.trouble
        assert world.source.watched == 0


async def test_a_tree_that_can_be_watched_in_part_only_is_not_watched_at_all(world: FaultyWorld) -> None:
    world.write("a/file.py")
    async with world.source.watch(world.root()) as watch:
        await watch.follow([""])
        world.instance.refused[str(world.path("a"))] = OSError(errno.ENOSPC, "no watch left")

        assert not await watch.follow(["", "a"])
        assert await world.kernel_watches() == 0


async def test_a_file_system_that_hangs_holds_up_its_own_watch_only(world: FaultyWorld) -> None:
    world.write("hanging/file.py", tree="slow")
    async with world.source.watch(world.root("slow")) as slow, world.source.watch(world.root("other")) as other:
        world.instance.hanging = str(world.path("hanging", tree="slow"))
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(slow.follow, ["", "hanging"])
                await world.instance.hangs.wait()

                await other.follow([""])
                world.write("file.py", tree="other")
                assert await world.heard(other, tree="other") == told("file.py")
                scope.cancel()
        assert scope.cancelled_caught
        world.instance.go_on.set()


async def test_what_a_cancelled_call_leaves_behind_in_the_kernel_is_given_back_once_it_is_heard_of(
    world: FaultyWorld,
) -> None:
    world.write("hanging/file.py", tree="slow")
    world.write("later/file.py", tree="slow")
    async with world.source.watch(world.root("slow")) as slow, world.source.watch(world.root("other")) as other:
        await other.follow([""])
        world.instance.hanging = str(world.path("hanging", tree="slow"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(slow.follow, ["hanging", "later"])
            await world.instance.hangs.wait()
            nursery.cancel_scope.cancel()
        world.instance.go_on.set()
        # The same thread token: this call begins when the thread that was left alone has ended.
        world.instance.hanging = None
        await slow.follow([])
        assert await world.kernel_watches() == 2

        world.write("hanging/file.py", "x = 2\n", tree="slow")
        await world.heard(other, tree="other")
        assert await world.kernel_watches() == 1


async def test_a_directory_that_one_lets_go_while_another_begins_to_follow_it_is_not_lost(world: FaultyWorld) -> None:
    world.write("nested/file.py")
    world.write("nested/hanging/file.py")
    nested = str(world.path("nested"))
    async with world.source.watch(world.root()) as outer, world.source.watch(nested) as inner:
        await outer.follow(["", "nested"])
        world.instance.hanging = f"{nested}/hanging"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(inner.follow, ["", "hanging"])
            await world.instance.hangs.wait()
            await outer.follow([""])
            assert await world.kernel_watches() == 1
            world.instance.go_on.set()

        with trio.fail_after(PATIENCE):
            assert await inner.changes() == RESCAN
        assert await inner.follow(["", "hanging"])
        world.write("nested/file.py", "x = 2\n")
        with trio.fail_after(PATIENCE):
            assert await inner.changes() == told("file.py")
