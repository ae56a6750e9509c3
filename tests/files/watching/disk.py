"""Trees on the disk, watched by the kernel: what the tests of the real source share."""

import os
import shutil
import subprocess
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import BinaryIO

import trio
import trio.testing

from semindex.files.watching.inotify import InotifySource
from semindex.files.watching.polling import Pace
from semindex.ports import Watch
from tests.files.watching.conformance import PATIENCE, World

QUICK = Pace(poll=0.02, poll_per_directory=0.0, root=0.02, retry=0.05)
"""For tests of what a watch does by itself."""

NEVER = Pace(poll=3600.0, root=3600.0, retry=3600.0)
"""For tests of what is heard without that."""


class DiskWorld(World):
    """Trees below one directory."""

    def __init__(self, source: InotifySource, home: Path) -> None:
        self._source = source
        self.home = home.resolve()
        self.overflows = 0
        """How often the source said that events were lost."""

    @property
    def source(self) -> InotifySource:
        return self._source

    def root(self, name: str = "tree") -> str:
        path = self.home / name
        path.mkdir(exist_ok=True)
        return str(path)

    def path(self, path: str, tree: str = "tree") -> Path:
        return Path(self.root(tree), path)

    def write(self, path: str, content: str = "x = 1\n", *, tree: str = "tree") -> None:
        target = self.path(path, tree)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)

    def open(self, path: bytes | str) -> BinaryIO:
        """Open a file of any name for writing, unbuffered."""
        return open(os.path.join(os.fsencode(self.root()), os.fsencode(path)), "wb", buffering=0)

    def delete(self, path: str, *, tree: str = "tree") -> None:
        target = self.path(path, tree)
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink()

    def rename(self, old: str, new: str, *, tree: str = "tree") -> None:
        self.path(old, tree).rename(self.path(new, tree))

    def flood(self, tree: str) -> None:
        """Let more happen in a tree than the kernel's queue holds; as nothing here waits, nobody reads meanwhile."""
        longest = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        path = self.path("flood.py", tree)
        for _ in range(longest // 2):
            path.touch()
            path.unlink()

    async def kernel_watches(self) -> int:
        """How many directories the kernel watches for the source, by the kernel's own account."""
        # The source gives watches back by itself, but at once.
        await trio.testing.wait_all_tasks_blocked()
        assert self.source.instance is not None
        return _account_of(self.source.instance.fileno()).count("inotify wd:")


def directories_of(root: str) -> list[str]:
    """All directories of a tree, as a scan would tell them."""
    return [os.path.relpath(path, root).removeprefix(".") for path, _, _ in os.walk(root)]


def _account_of(descriptor: int) -> str:
    return Path(f"/proc/self/fdinfo/{descriptor}").read_text()


def git(directory: Path, *arguments: str, standard_input: str = "") -> None:
    """Run git in a directory."""
    subprocess.run(["git", *arguments], cwd=directory, check=True, capture_output=True, input=standard_input.encode())


def commit_of(branch: str, paths: Iterable[str]) -> str:
    """Return what ``git fast-import`` makes a branch from, with these files; nothing is written to a working tree."""
    files = "".join(f"M 644 inline {path}\ndata 6\nx = 1\n\n" for path in paths)
    return f"commit refs/heads/{branch}\ncommitter A Tester <tester@example.invalid> 0 +0000\ndata 0\n{files}\n"


def files_of(root: str) -> set[str]:
    return {os.path.relpath(os.path.join(path, name), root) for path, _, names in os.walk(root) for name in names}


async def nothing_more(watch: Watch) -> None:
    """Take what is there, until the watch has looked at its root a few times and found nothing."""
    while True:
        with trio.move_on_after(10 * QUICK.root) as scope:
            await watch.changes()
        if scope.cancelled_caught:
            return


class Listener:
    """Does with hints what the engine does: follows the directories of each look at the whole tree, and looks again
    while one of them was new. It knows a file once it has looked at it."""

    def __init__(self, watch: Watch, root: str) -> None:
        self.watch = watch
        self.root = root
        self.seen: set[str] = set()
        self.looks = 0

    async def look(self) -> None:
        """Look at the whole tree."""
        while True:
            self.looks += 1
            directories = directories_of(self.root)
            self.seen |= files_of(self.root)
            if not await self.watch.follow(directories):
                return

    async def listen_until(self, seen: Collection[str]) -> None:
        """Take hints until all of these files were seen."""
        with trio.fail_after(PATIENCE):
            while not self.seen.issuperset(seen):
                changes = await self.watch.changes()
                self.seen |= changes.paths
                if changes.rescan:
                    await self.look()
