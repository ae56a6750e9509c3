"""The tree in memory: the suite of all source trees, and what a test can do to it."""

import pytest
import trio.testing
from attrs import define, field

from semindex.files.reading import FileRead
from semindex.model.chunks import FileProblem, ProblemKind
from semindex.testing.tree import MemoryTree
from tests.files.conformance import SourceTreeConformance


@define
class MemoryWorld:
    tree: MemoryTree = field(factory=MemoryTree)

    def small_tree(self, max_files: int) -> MemoryTree:
        self.tree.max_files = max_files
        return self.tree

    def write(self, path: str, data: bytes | str) -> None:
        self.tree.write(path, data)

    def delete(self, path: str) -> None:
        if path:
            self.tree.delete(path)
        else:
            self.tree.missing = True


class TestMemoryTree(SourceTreeConformance):
    @pytest.fixture
    def world(self) -> MemoryWorld:
        return MemoryWorld()


async def test_every_call_is_a_checkpoint() -> None:
    tree = MemoryTree({"a.py": b"x"})
    with trio.testing.assert_checkpoints():
        await tree.scan()
    with trio.testing.assert_checkpoints():
        await tree.look(["a.py"])
    with trio.testing.assert_checkpoints():
        await tree.hashes(["a.py"])
    with trio.testing.assert_checkpoints():
        await tree.explain("a.py")


def test_a_read_is_trusted_once_the_clock_has_moved_on() -> None:
    tree = MemoryTree({"old.py": b"x"})
    tree.write("young.py", b"y")
    old, young = tree.read("old.py"), tree.read("young.py")

    assert isinstance(old, FileRead)
    assert isinstance(young, FileRead)
    assert (old.trusted, young.trusted) == (True, False)

    tree.advance(2)
    young = tree.read("young.py")
    assert isinstance(young, FileRead)
    assert young.trusted


async def test_writes_in_one_instant_can_leave_the_signature_alone() -> None:
    tree = MemoryTree({"a.py": b"x"})
    tree.write("a.py", b"1")
    before = (await tree.scan()).files
    tree.write("a.py", b"2")

    assert (await tree.scan()).files == before


async def test_a_renamed_file_keeps_all_but_its_change_time() -> None:
    tree = MemoryTree({"a.py": b"x"})
    before = (await tree.scan()).files["a.py"]
    tree.rename("a.py", "src/b.py")
    after = (await tree.scan()).files

    assert after.keys() == {"src/b.py"}
    assert (after["src/b.py"].inode, after["src/b.py"].mtime_ns) == (before.inode, before.mtime_ns)
    assert after["src/b.py"].ctime_ns == tree.now_ns
    assert tree.read("a.py") == FileProblem("a.py", ProblemKind.GONE, "There is no regular file at this path.")


async def test_nothing_is_told_of_what_lies_below_an_unreadable_directory() -> None:
    tree = MemoryTree({"a.py": b"x", "src/b.py": b"x", "src/deep/c.py": b"x"})
    tree.unreadable["src"] = "Input/output error."
    scan, looked = await tree.scan(), await tree.look(["a.py", "src/deep/c.py"])

    assert scan.files.keys() == {"a.py"}
    assert set(scan.directories) == {""}
    assert scan.unreadable == looked.unreadable == {"src": "Input/output error."}


def test_a_path_is_a_file_or_a_directory_and_never_both() -> None:
    tree = MemoryTree({"src/a.py": b"x"})
    with pytest.raises(IsADirectoryError):
        tree.write("src", b"x")
    with pytest.raises(NotADirectoryError):
        tree.write("src/a.py/b.py", b"x")

    tree.delete("src/a.py")
    tree.write("src", b"x")


def test_observers_hear_of_each_file() -> None:
    tree = MemoryTree({"src/a.py": b"x", "src/b.py": b"x"})
    heard: list[str] = []
    tree.observers.append(heard.append)
    tree.write("c.py", b"x")
    tree.rename("c.py", "d.py")
    tree.delete("src")

    assert heard == ["c.py", "c.py", "d.py", "src/a.py", "src/b.py"]
