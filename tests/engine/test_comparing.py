"""Comparing the disk with the index: what is lined up, in which turn, and when something is left alone."""

import pytest
import trio
import trio.testing

from semindex.engine.comparing import Comparison
from semindex.engine.filetable import FILES_PER_STEP, FileTable
from semindex.engine.index import Index, Outcome
from semindex.engine.priority import Priority
from semindex.model.errors import WorkspaceUnavailable
from semindex.model.status import FileRecord, FileState
from semindex.ports import TreeScan
from semindex.testing.intercept import Call, Gate, Proceed, intercept
from semindex.testing.tree import MemoryTree

CHUNKING = "extended-1"


async def indexed(tree: MemoryTree, *paths: str) -> Index:
    """Return an index that holds these files as they are."""
    index = Index()
    await index.start_over(FileTable(record(tree, path) for path in paths))
    return index


def record(tree: MemoryTree, path: str, state: FileState = FileState.INDEXED) -> FileRecord:
    entry = tree.entry(path)
    assert entry is not None
    return FileRecord(path, state, "hash", entry.signature, chunks=1, chunking=CHUNKING)


async def waiting(index: Index, lane: Priority) -> list[str]:
    """Take everything that waits in one lane."""
    taken: list[str] = []

    async def take() -> None:
        taken.extend((await index.queue.take(1000, (lane,))).paths)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(take)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    return sorted(taken)


async def test_a_file_that_waits_keeps_its_turn_when_the_tree_is_compared_again() -> None:
    tree = MemoryTree({"old.py": b"x = 1\n"})
    index = Index()
    comparison = Comparison(tree, index, CHUNKING)
    await comparison.of_tree(Priority.BACKFILL, retry_failed=True)
    tree.write("new.py", "x = 2\n")
    await comparison.of_tree(Priority.EDIT, retry_failed=False)

    assert await waiting(index, Priority.EDIT) == ["new.py"]
    assert await waiting(index, Priority.BACKFILL) == ["old.py"]


async def test_a_file_that_may_just_have_changed_goes_first_even_if_it_waits_already() -> None:
    tree = MemoryTree({"a.py": b"x = 1\n", "b.py": b"x = 1\n"})
    index = Index()
    comparison = Comparison(tree, index, CHUNKING)
    await comparison.of_tree(Priority.BACKFILL, retry_failed=True)
    await comparison.of_files(["b.py"])

    assert await waiting(index, Priority.EDIT) == ["b.py"]


async def test_only_files_that_differ_are_lined_up() -> None:
    tree = MemoryTree({"same.py": b"x = 1\n", "edited.py": b"x = 1\n", "gone.py": b"x = 1\n", "other.py": b"x = 1\n"})
    index = await indexed(tree, "same.py", "edited.py", "gone.py")
    tree.write("edited.py", "x = 2\n")
    tree.delete("gone.py")

    await Comparison(tree, index, CHUNKING).of_files(["same.py", "edited.py", "gone.py", "never.py", "notes.bin"])

    assert await waiting(index, Priority.EDIT) == ["edited.py", "gone.py"]
    assert index.verdicts == {"gone.py": None}
    assert "other.py" not in index.table


async def test_a_file_that_became_ignored_leaves_when_it_is_looked_at() -> None:
    tree = MemoryTree({"a.py": b"x = 1\n"})
    index = await indexed(tree, "a.py")
    tree.write(".gitignore", "a.py\n")

    await Comparison(tree, index, CHUNKING).of_files(["a.py"])

    assert index.verdicts == {"a.py": None}


async def test_nothing_is_concluded_from_a_directory_that_cannot_be_read() -> None:
    tree = MemoryTree({"a/file.py": b"x = 1\n"})
    index = await indexed(tree, "a/file.py")
    tree.unreadable["a"] = "Permission denied."

    await Comparison(tree, index, CHUNKING).of_files(["a/file.py"])

    assert index.verdicts == {}
    assert await waiting(index, Priority.EDIT) == []


async def test_nothing_is_concluded_from_a_root_that_is_gone() -> None:
    tree = MemoryTree({"a.py": b"x = 1\n"})
    index = await indexed(tree, "a.py")
    tree.missing = True

    with pytest.raises(WorkspaceUnavailable):
        await Comparison(tree, index, CHUNKING).of_files(["a.py"])
    assert index.verdicts == {}


async def test_a_file_that_failed_is_tried_again_when_something_happens_to_it() -> None:
    tree = MemoryTree({"a.py": b"x = 1\n"})
    index = Index()
    await index.start_over(FileTable([record(tree, "a.py", FileState.FAILED)]))
    comparison = Comparison(tree, index, CHUNKING)

    await comparison.of_tree(Priority.EDIT, retry_failed=False)
    assert await waiting(index, Priority.EDIT) == []
    await comparison.of_files(["a.py"])
    assert await waiting(index, Priority.EDIT) == ["a.py"]


async def test_what_was_seen_earlier_never_overrules_what_was_seen_later(
    autojump_clock: trio.testing.MockClock,
) -> None:
    tree, gate, index = MemoryTree({"a.py": b"x = 1\n"}), Gate("tree.scan", after=True), Index()
    comparison = Comparison(intercept(tree, "tree", [gate]), index, CHUNKING)
    gate.shut()
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: comparison.of_tree(Priority.EDIT, retry_failed=False))
            await gate.reached()  # this comparison has read the tree already
            tree.write("new.py", "x = 1\n")
            nursery.start_soon(comparison.of_files, ["new.py"])
            await trio.testing.wait_all_tasks_blocked()
            gate.open()

    assert index.verdicts == {}
    assert "new.py" in index.queue


async def test_a_file_that_comes_back_while_it_leaves_is_worked_on_again() -> None:
    tree = MemoryTree({"a.py": b"x = 1\n"})
    index = await indexed(tree, "a.py")
    comparison = Comparison(tree, index, CHUNKING)
    tree.delete("a.py")
    await comparison.of_files(["a.py"])
    assert await waiting(index, Priority.EDIT) == ["a.py"]
    tree.write("a.py", "x = 1\n")
    await comparison.of_files(["a.py"])
    index.finish(Outcome("a.py", None))

    assert await waiting(index, Priority.EDIT) == ["a.py"]


async def test_however_many_files_are_skipped_others_get_their_turn_meanwhile() -> None:
    tree = MemoryTree({f"f{number}.py": b"x = 1\n" for number in range(3 * FILES_PER_STEP)})
    files = (await tree.scan()).files

    async def skip_all(call: Call, proceed: Proceed) -> TreeScan:
        await trio.lowlevel.checkpoint()
        return TreeScan({}, dict.fromkeys(files, "too large"), {})

    index, told = Index(), set[int]()

    async def look() -> None:
        while True:
            told.add(index.counts().skipped)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        comparison = Comparison(intercept(tree, "tree", [skip_all]), index, CHUNKING)
        await comparison.of_tree(Priority.EDIT, retry_failed=False)
        nursery.cancel_scope.cancel()

    assert index.counts().skipped == len(files)
    assert told - {0, len(files)}
