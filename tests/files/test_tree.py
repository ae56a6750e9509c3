"""The tree on disk: the suite of all source trees, and what only a disk can have."""

import errno
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio.testing
from attrs import define, field

from semindex.core.eligibility import Standing
from semindex.files.tree import MEMORY_SECONDS, WorkingTree
from semindex.model.errors import WorkspaceUnavailable
from tests.files.conformance import TEXT, SourceTreeConformance


@define
class DiskWorld:
    root: Path
    boundaries: list[str] = field(factory=list)
    tree: WorkingTree = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tree = self.small_tree(1000)

    def small_tree(self, max_files: int) -> WorkingTree:
        return WorkingTree(
            str(self.root), trio.CapacityLimiter(2), boundaries=lambda: self.boundaries, max_files=max_files
        )

    def write(self, path: str, data: bytes | str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(data.encode() if isinstance(data, str) else data)

    def write_raw(self, path: bytes) -> None:
        """Write a file whose name need not be UTF-8."""
        self.write(os.fsdecode(path), TEXT)

    def delete(self, path: str) -> None:
        target = self.root / path
        shutil.rmtree(target) if target.is_dir() else target.unlink()


@pytest.fixture
def world(tmp_path: Path) -> DiskWorld:
    root = tmp_path / "workspace"
    root.mkdir()
    return DiskWorld(root)


class TestWorkingTree(SourceTreeConformance):
    """A root that is no repository; :mod:`tests.files.test_rules` has the others."""


async def test_links_are_skipped_with_a_reason_and_never_followed(world: DiskWorld) -> None:
    world.write("src/real.py", TEXT)
    (world.root.parent / "outside.py").write_text(TEXT)
    (world.root.parent / "outside").mkdir()
    (world.root.parent / "outside/a.py").write_text(TEXT)
    for name, target in {
        "src/link.py": "real.py",
        "src/outside.py": "../../outside.py",
        "src/broken.py": "nowhere.py",
        "src/loop": "..",
        "linked": "src",
        "elsewhere": "../outside",
        "folder.py": "src",
    }.items():
        (world.root / name).symlink_to(target)
    scan = await world.tree.scan()
    links = {"src/link.py", "src/outside.py", "src/broken.py", "folder.py"}

    assert scan.files.keys() == {"src/real.py"}
    assert scan.skipped == dict.fromkeys(links, "Symbolic links are not followed.")
    assert set(scan.directories) == {"", "src"}
    assert (await world.tree.look(sorted(links))).skipped == scan.skipped
    paths = [*links, "linked/real.py", "elsewhere/a.py", "src/loop/src/real.py", "folder.py/real.py"]
    assert await world.tree.hashes(paths) == dict.fromkeys(paths)
    verdict = await world.tree.explain("elsewhere/a.py")
    assert (verdict.standing, verdict.decided_by) == (Standing.LINK, "elsewhere")


async def test_what_is_no_regular_file_is_skipped_and_never_opened(world: DiskWorld) -> None:
    os.mkfifo(world.root / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(world.root / "socket.py"))
        with trio.fail_after(30):
            scan = await world.tree.scan()
            hashes = await world.tree.hashes(["pipe.py", "socket.py"])

    assert scan.files == {}
    assert scan.skipped == dict.fromkeys(["pipe.py", "socket.py"], "It is not a regular file.")
    assert hashes == {"pipe.py": None, "socket.py": None}


async def test_an_ignore_file_that_is_a_link_or_a_fifo_has_no_rules(world: DiskWorld) -> None:
    world.write("rules", "*.py")
    world.write("a.py", TEXT)
    world.write("src/b.py", TEXT)
    (world.root / ".gitignore").symlink_to("rules")
    os.mkfifo(world.root / "src/.gitignore")
    with trio.fail_after(30):
        assert (await world.tree.scan()).files.keys() == {"a.py", "src/b.py"}


async def test_names_that_are_not_utf_8_are_skipped_and_shown_with_escapes(world: DiskWorld) -> None:
    for path in (b"\xff.py", b"\xfe.txt", b"ignored\xff.py", b"bad\xffdir/a.py", b".\xff/a.py", b"good/a.py"):
        world.write_raw(path)
    world.write(".gitignore", b"ignored\xff*\n")
    scan = await world.tree.scan()
    raw = os.fsdecode(b"\xff.py")

    assert scan.files.keys() == {"good/a.py"}
    assert scan.skipped == {"\\xff.py": "The name is not valid UTF-8."}
    assert scan.unreadable == {"bad\\xffdir": "The name is not valid UTF-8."}
    assert await world.tree.hashes([raw]) == {raw: None}
    assert (await world.tree.explain(raw)).standing is Standing.NAME


async def test_a_file_whose_name_is_the_escape_of_another_is_found(world: DiskWorld) -> None:
    world.write_raw(b"\xff.py")
    world.write("\\xff.py", TEXT)
    scan = await world.tree.scan()

    assert scan.files.keys() == {"\\xff.py"}
    assert scan.skipped == {}


async def test_of_a_directory_that_cannot_be_reached_nothing_is_known(world: DiskWorld) -> None:
    world.write("a.py", TEXT)
    deep, depth = os.open(world.root, os.O_RDONLY), 0
    while depth < 17:
        os.mkdir("d" * 250, dir_fd=deep)
        below = os.open("d" * 250, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep, depth = below, depth + 1
    os.close(deep)
    scan = await world.tree.scan()

    assert scan.files.keys() == {"a.py"}
    (unreadable,) = scan.unreadable
    assert set(unreadable) == {"d", "/"}
    assert len(os.path.join(world.root, unreadable)) > 4096 > len(os.path.join(world.root, os.path.dirname(unreadable)))


async def test_registered_workspaces_below_are_not_entered(world: DiskWorld) -> None:
    world.write("a.py", TEXT)
    world.write("inner/b.py", TEXT)
    world.write("inner2/c.py", TEXT)
    world.boundaries.extend([str(world.root), str(world.root / "inner"), str(world.root.parent)])

    assert (await world.tree.scan()).files.keys() == {"a.py", "inner2/c.py"}
    assert await world.tree.hashes(["inner/b.py"]) == {"inner/b.py": None}
    assert (await world.tree.explain("inner/b.py")).standing is Standing.BOUNDARY

    world.boundaries.clear()
    assert (await world.tree.scan()).files.keys() == {"a.py", "inner/b.py", "inner2/c.py"}


async def test_a_root_that_became_a_link_or_a_file_is_unavailable(world: DiskWorld) -> None:
    world.write("a.py", TEXT)
    world.root.rename(world.root.with_name("moved"))
    world.root.symlink_to("moved")
    with pytest.raises(WorkspaceUnavailable, match="not a directory any more"):
        await world.tree.scan()

    world.root.unlink()
    world.root.write_text(TEXT)
    with pytest.raises(WorkspaceUnavailable, match="not a directory any more"):
        await world.tree.look(["a.py"])


async def test_a_root_that_vanishes_during_a_scan_is_unavailable_and_not_empty(
    world: DiskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("src/a.py", TEXT)
    lstat = os.lstat

    def vanish(path: str) -> os.stat_result:
        if path.endswith("/src") and world.root.exists():
            world.root.rename(world.root.with_name("moved"))
        return lstat(path)

    await world.tree.scan()
    monkeypatch.setattr(os, "lstat", vanish)
    monkeypatch.setattr("time.time_ns", lambda: 2**62)
    with pytest.raises(WorkspaceUnavailable):
        await world.tree.scan()


async def test_a_file_that_cannot_be_looked_at_costs_no_other(
    world: DiskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("good.py", TEXT)
    world.write("broken.py", TEXT)
    lstat = os.lstat

    def fail(path: str) -> os.stat_result:
        if path.endswith("broken.py"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", fail)
    scan, look = await world.tree.scan(), await world.tree.look(["good.py", "broken.py"])

    assert scan.files.keys() == look.files.keys() == {"good.py"}
    assert scan.skipped == look.skipped == {"broken.py": "The file cannot be looked at."}
    assert await world.tree.hashes(["broken.py"]) == {"broken.py": None}


async def test_a_hanging_file_system_does_not_hold_up_a_cancelled_scan(
    world: DiskWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("a.py", TEXT)
    scandir, hanging, released = os.scandir, threading.Event(), threading.Event()

    def hang(path: int) -> object:
        hanging.set()
        released.wait(30)
        return scandir(path)

    with monkeypatch.context() as patched, trio.fail_after(20):
        patched.setattr(os, "scandir", hang)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(world.tree.scan)
            await trio.to_thread.run_sync(hanging.wait, 30)
            nursery.cancel_scope.cancel(reason="tired of waiting")
        assert not released.is_set()
        released.set()

    assert (await world.tree.scan()).files.keys() == {"a.py"}


async def test_all_work_is_counted_by_the_limiter(world: DiskWorld) -> None:
    world.write("a.py", TEXT)
    limiter = trio.CapacityLimiter(1)
    tree = WorkingTree(str(world.root), limiter)
    async with limiter:
        for work in (
            tree.scan,
            lambda: tree.look(["a.py"]),
            lambda: tree.hashes(["a.py"]),
            lambda: tree.explain("a.py"),
        ):
            with trio.move_on_after(0) as scope:
                await work()
            assert scope.cancelled_caught


async def test_patterns_of_the_configuration_win_over_ignore_files(world: DiskWorld) -> None:
    world.write(".gitignore", "!*.gen.py\n")
    world.write("src/.gitignore", "!*.gen.py\n")
    for path in ("a.gen.py", "src/b.gen.py", "src/c.py"):
        world.write(path, TEXT)
    tree = WorkingTree(str(world.root), trio.CapacityLimiter(1), exclude=["# comment", "*.gen.py"])
    verdict = await tree.explain("src/b.gen.py")

    assert (await tree.scan()).files.keys() == {"src/c.py"}
    assert verdict.rule is not None
    assert (verdict.rule.source, verdict.rule.line) == ("indexing.exclude", 2)


NOBODY = 65534


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[DiskWorld]:
    """A world that belongs to a user who is not almighty: the one who runs the tests, or nobody."""
    if os.geteuid() != 0:
        yield DiskWorld(tmp_path)
        return
    # The directories of pytest are closed to others.
    with tempfile.TemporaryDirectory() as directory:
        os.chown(directory, NOBODY, NOBODY)
        os.seteuid(NOBODY)
        try:
            yield DiskWorld(Path(directory).resolve())
        finally:
            os.seteuid(0)


@pytest.mark.parametrize("mode", [0o000, 0o444, 0o300], ids=["closed", "no entry", "no listing"])
async def test_of_a_directory_without_permission_nothing_is_known(guarded: DiskWorld, mode: int) -> None:
    guarded.write("a.py", TEXT)
    guarded.write("src/b.py", TEXT)
    guarded.write("src/deep/c.py", TEXT)
    before = await guarded.tree.scan()
    (guarded.root / "src").chmod(mode)
    try:
        scan = await guarded.tree.scan()
        look = await guarded.tree.look(["a.py", "src/deep/c.py"])
    finally:
        (guarded.root / "src").chmod(0o755)

    assert scan.files.keys() == {"a.py"}
    assert scan.unreadable == {"src": "Permission denied."}
    assert "src/deep" not in scan.directories
    assert look.files.keys() == {"a.py"} if mode != 0o300 else {"a.py", "src/deep/c.py"}
    assert await guarded.tree.scan() == before


async def test_a_file_without_permission_is_found_and_has_no_hash(guarded: DiskWorld) -> None:
    guarded.write("a.py", TEXT)
    (guarded.root / "a.py").chmod(0)

    assert (await guarded.tree.scan()).files.keys() == {"a.py"}
    assert await guarded.tree.hashes(["a.py"]) == {"a.py": None}


async def test_a_memory_that_is_old_is_not_used(
    world: DiskWorld, mock_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write("a.py", TEXT)
    now, scandir, listings = time.time_ns, os.scandir, []

    def note(directory: int) -> object:
        listings.append(directory)
        return scandir(directory)

    monkeypatch.setattr(time, "time_ns", lambda: now() + 3_600_000_000_000)
    monkeypatch.setattr(os, "scandir", note)
    for seconds, expected in ((0, 1), (MEMORY_SECONDS - 1, 1), (1, 2), (MEMORY_SECONDS - 1, 2), (1, 3)):
        mock_clock.jump(seconds)
        await world.tree.scan()
        assert len(listings) == expected
