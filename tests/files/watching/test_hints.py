"""Which changes are worth a hint, and the box in which hints wait."""

import pytest
import trio

from semindex.files.watching.hints import MAX_PATHS, Hint, Inbox, hint_of
from semindex.ports import Changes
from tests.files.watching.conformance import RESCAN, told

NOT_UTF8 = b"caf\xe9.py".decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("name", "directory", "entry", "hint"),
    [
        ("main.py", False, False, Hint.FILE),
        ("Makefile", False, True, Hint.FILE),
        ("notes.bin", False, True, Hint.NOTHING),
        ("main.py~", False, True, Hint.NOTHING),
        (".main.py.swp", False, True, Hint.NOTHING),
        (".gitignore", False, False, Hint.TREE),
        (".kilocodeignore", False, True, Hint.TREE),
        (".git", True, True, Hint.TREE),
        (".git", False, False, Hint.TREE),
        ("src", True, True, Hint.TREE),
        ("src", True, False, Hint.TREE),
        ("node_modules", True, True, Hint.NOTHING),
        (".venv", True, True, Hint.NOTHING),
        (NOT_UTF8, False, True, Hint.TREE),
        (NOT_UTF8, False, False, Hint.NOTHING),
        (NOT_UTF8, True, True, Hint.TREE),
    ],
)
def test_a_change_hints_at_the_least_that_has_to_be_looked_at(
    name: str, directory: bool, entry: bool, hint: Hint
) -> None:
    assert hint_of(name, directory=directory, entry=entry) is hint


async def test_paths_of_many_changes_are_taken_at_once_and_once() -> None:
    inbox = Inbox()
    for path in ("a.py", "b.py", "a.py"):
        inbox.put(path)

    assert await inbox.take() == told("a.py", "b.py")
    with trio.move_on_after(0) as scope:
        await inbox.take()
    assert scope.cancelled_caught


async def test_a_rescan_makes_paths_needless() -> None:
    inbox = Inbox()
    inbox.put("a.py")
    inbox.put_rescan()
    inbox.put("b.py")

    assert await inbox.take() == RESCAN
    inbox.put("c.py")
    assert await inbox.take() == told("c.py")


async def test_an_inbox_holds_its_bound_and_not_more() -> None:
    inbox = Inbox()
    paths = [f"{number}.py" for number in range(MAX_PATHS)]
    for path in paths:
        inbox.put(path)
    assert await inbox.take() == Changes(frozenset(paths), rescan=False)

    for path in (*paths, "one more.py"):
        inbox.put(path)
    assert await inbox.take() == RESCAN
