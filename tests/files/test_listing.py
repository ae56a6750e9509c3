"""What is remembered of a tree never shows: a walk with a memory finds what a first walk finds."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import define, evolve, field
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from semindex.core.eligibility import FileTypes, Standing
from semindex.core.ignore import IgnoreStack
from semindex.core.judge import Judge
from semindex.files.listing import Folder, Lister
from semindex.files.reading import MAX_FILE_BYTES
from semindex.files.rules import IgnoreRules
from semindex.files.sight import DiskSight
from semindex.files.tree import told
from semindex.files.walk import Memory, Walk
from semindex.model.errors import WorkspaceUnavailable
from semindex.ports import TreeScan
from tests.files.repositories import write


def lister_at(root: Path) -> Lister:
    return Lister(f"{root}/", FileTypes(), IgnoreRules(str(root), [], {}))


def walk(lister: Lister, memory: Memory) -> tuple[TreeScan, Memory]:
    return Walk(lister, memory, boundaries=(), max_files=1000, checkpoint=lambda: None).run()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an hour have passed since every file and directory changed, so that all signatures are trusted."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 3_600_000_000_000)


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every directory that is listed is noted here."""
    noted: list[object] = []
    scandir = os.scandir

    def note(directory: int) -> object:
        noted.append(directory)
        return scandir(directory)

    monkeypatch.setattr(os, "scandir", note)
    return noted


@pytest.mark.usefixtures("later")
def test_a_tree_that_did_not_change_is_not_listed_again(tmp_path: Path, listings: list[object]) -> None:
    write(tmp_path, "a.py", "src/b.py", "src/deep/c.py")
    write(tmp_path, ".gitignore", "src/.kilocodeignore", text="*.gen.py\n")
    lister = lister_at(tmp_path)
    first, memory = walk(lister, Memory())
    assert len(listings) == 3

    second, memory = walk(lister, memory)
    assert len(listings) == 3
    assert second == first

    write(tmp_path, "src/deep/d.py")
    third, memory = walk(lister, memory)
    assert len(listings) == 4
    assert third.files.keys() == first.files.keys() | {"src/deep/d.py"}


@pytest.mark.usefixtures("later")
def test_a_new_file_beside_an_ignore_file_costs_the_listing_of_one_directory(
    tmp_path: Path, listings: list[object]
) -> None:
    write(tmp_path, ".gitignore", text="*.gen.py\n")
    write(tmp_path, "a.py", "src/b.py", "src/deep/c.py")
    lister = lister_at(tmp_path)
    _, memory = walk(lister, Memory())
    write(tmp_path, "new.py")
    walk(lister, memory)

    assert len(listings) == 4


def test_a_directory_that_changed_less_than_two_seconds_ago_is_listed_again(
    tmp_path: Path, listings: list[object]
) -> None:
    write(tmp_path, "a.py")
    lister = lister_at(tmp_path)
    first = lister.current("", IgnoreStack(), None)
    assert lister.current("", first.above, first) is not first
    assert len(listings) == 2


@pytest.mark.usefixtures("later")
def test_a_listing_is_kept_only_as_long_as_all_that_it_was_decided_by(tmp_path: Path) -> None:
    write(tmp_path, "src/a.py", "src/sub/b.py")
    write(tmp_path, "src/.gitignore", text="*.gen.py\n")
    write(tmp_path, "src/sub/.git", text="gitdir: ../../.git/modules/sub\n")
    lister, above = lister_at(tmp_path), IgnoreStack()
    source = lister.current("src/", above, None)
    sub = lister.current("src/sub/", source.rules, None)

    def unchanged(prefix: str, above: IgnoreStack, known: Folder) -> bool:
        return lister.current(prefix, above, known) is known

    assert unchanged("src/", above, source)
    assert not unchanged("src/", IgnoreStack(), source)
    assert unchanged("src/sub/", source.rules, sub)

    write(tmp_path, "src/sub/.git", text="gitdir: ../../.git/worktrees/sub\n")
    assert not unchanged("src/sub/", source.rules, sub)
    assert lister.current("src/sub/", source.rules, sub).boundary

    write(tmp_path, "src/.gitignore", text="*.generated.py\n")
    assert not unchanged("src/", above, source)


NAMES = ["a", "b.py", "c.gen.py", ".gitignore", ".kilocodeignore", ".git", ".git/HEAD", "build", "d.txt"]
CONTENT = [
    "x = 1\n",
    "*.py\n",
    "!b.py\n",
    "a/\n",
    "/a/*\n!/a/b.py",
    "gitdir: /r/.git/worktrees/w\n",
    "gitdir: /r/.git/modules/m\n",
]
PATHS = st.lists(st.sampled_from(["a", "b.py", "build"]), max_size=3).flatmap(
    lambda parents: st.sampled_from(NAMES).map(lambda name: "/".join([*parents, name]))
)


@define
class Disk:
    """A tree that is edited while time passes: after every edit what changed has a time that it never had."""

    root: Path
    clock: int = field(default=1_000_000_000_000_000_000)

    def edit(self, path: str, change: Callable[[Path], object]) -> None:
        target = self.root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            change(target)
        except OSError:
            pass
        for each in [target, *target.parents]:
            if each.is_relative_to(self.root) and os.path.lexists(each):
                self.clock += 1_000_000_000
                os.utime(each, ns=(self.clock, self.clock), follow_symlinks=False)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


class Edits(RuleBasedStateMachine):
    """Edits of every kind between walks that remember; each is compared with one that does not, and with verdicts."""

    directory: Path
    number = 0

    @initialize()
    def start(self) -> None:
        Edits.number += 1
        root = self.directory / str(Edits.number)
        root.mkdir()
        self.disk = Disk(root)
        self.lister, self.memory = lister_at(root), Memory()

    @rule(path=PATHS, text=st.sampled_from(CONTENT))
    def write(self, path: str, text: str) -> None:
        self.disk.edit(path, lambda target: target.write_text(text))

    @rule(path=PATHS)
    def write_too_much(self, path: str) -> None:
        self.disk.edit(path, lambda target: target.write_bytes(b"a" * (MAX_FILE_BYTES + 1)))

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        self.disk.edit(path, remove)

    @rule(path=PATHS)
    def make_directory(self, path: str) -> None:
        self.disk.edit(path, lambda target: target.mkdir())

    @rule(path=PATHS, to=st.sampled_from(["b.py", "../a", "."]))
    def link(self, path: str, to: str) -> None:
        self.disk.edit(path, lambda target: target.symlink_to(to))

    @rule(old=PATHS, new=PATHS)
    def move(self, old: str, new: str) -> None:
        self.disk.edit(old, lambda source: self.disk.edit(new, source.rename))

    @invariant()
    def the_memory_does_not_show(self) -> None:
        scan, self.memory = walk_if_possible(self.lister, self.memory)
        afresh, _ = walk_if_possible(lister_at(self.disk.root), Memory())

        assert scan == afresh
        self.check_that_every_single_path_is_judged_like_that(scan)

    def check_that_every_single_path_is_judged_like_that(self, scan: TreeScan | None) -> None:
        root = self.disk.root
        paths = [str(path.relative_to(root)) for path in root.rglob("*")]
        judge = Judge(DiskSight(str(root), self.lister.rules, ()), self.lister.types, MAX_FILE_BYTES)
        looked = told(judge, paths, lambda: None)
        if scan is None:
            assert looked.unreadable.keys() <= {""}
            return

        assert (looked.files, looked.skipped, looked.unreadable) == (scan.files, scan.skipped, scan.unreadable)
        entered = {path for path in paths if judge.verdict(path).standing is Standing.DIRECTORY}
        assert entered | {""} == set(scan.directories)


def walk_if_possible(lister: Lister, memory: Memory) -> tuple[TreeScan | None, Memory]:
    """Walk; None if the rules of the root itself cannot be read."""
    try:
        scan, memory = walk(lister, memory)
    except WorkspaceUnavailable:
        return None, memory
    return evolve(scan, directories=sorted(scan.directories)), memory


@pytest.mark.usefixtures("later")
def test_whatever_is_edited_a_walk_with_a_memory_finds_what_a_first_walk_finds(tmp_path: Path) -> None:
    Edits.directory = tmp_path
    run_state_machine_as_test(
        Edits,
        settings=settings(max_examples=25, stateful_step_count=20, suppress_health_check=list(HealthCheck)),
    )
