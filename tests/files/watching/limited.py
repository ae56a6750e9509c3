"""A program for :mod:`tests.files.watching.test_refusals`, run as root of a user namespace whose limits it may set."""

import sys
from pathlib import Path

import trio

from semindex.files.watching.inotify import open_inotify_source
from tests.files.watching.conformance import PATIENCE, RESCAN, told
from tests.files.watching.disk import QUICK, DiskWorld, directories_of


def allow(name: str, number: int) -> None:
    Path("/proc/sys/user", name).write_text(str(number))


async def few_watches(home: Path) -> None:
    """A tree that needs more watches than are left is polled, says so, takes none from others, and is watched later."""
    allow("max_inotify_watches", 20)
    async with open_inotify_source(QUICK) as source:
        world = DiskWorld(source, home)
        for number in range(30):
            world.write(f"{number}/file.py", tree="large")
        world.write("a/file.py", tree="small")
        directories = directories_of(world.root("large"))
        async with source.watch(world.root("large")) as large, source.watch(world.root("small")) as small:
            assert not await large.follow(directories)
            assert large.trouble is not None
            assert "needs 31 inotify watches" in large.trouble, large.trouble
            assert "fs.inotify.max_user_watches" in large.trouble, large.trouble
            assert await world.kernel_watches() == 0
            for _ in range(3):
                assert await large.changes() == RESCAN

            assert await small.follow(["", "a"])
            assert small.trouble is None
            world.write("a/file.py", "x = 2\n", tree="small")
            assert await world.heard(small, tree="small") == told("a/file.py")

            allow("max_inotify_watches", 100)
            while not await large.follow(directories):
                assert await large.changes() == RESCAN
            assert large.trouble is None
            world.write("7/file.py", "x = 2\n", tree="large")
            assert await world.heard(large, tree="large") == told("7/file.py")


async def no_instance(home: Path) -> None:
    """Without an instance everything is polled, and watched as soon as there is one."""
    allow("max_inotify_instances", 0)
    async with open_inotify_source(QUICK) as source:
        world = DiskWorld(source, home)
        async with source.watch(world.root()) as watch:
            assert not await watch.follow([""])
            assert watch.trouble is not None
            assert "fs.inotify.max_user_instances" in watch.trouble, watch.trouble
            for _ in range(3):
                assert await watch.changes() == RESCAN

            allow("max_inotify_instances", 1)
            while watch.trouble is not None:
                assert await watch.changes() == RESCAN
            assert await watch.follow([""])
            world.write("file.py")
            assert await world.heard(watch) == told("file.py")


async def main(scenario: str, home: Path) -> None:
    with trio.fail_after(PATIENCE):
        await {"few_watches": few_watches, "no_instance": no_instance}[scenario](home)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], Path(sys.argv[2]))
