"""Writes that race with a look at the disk."""

from pathlib import Path

import trio

from semindex.model.chunks import RACY_WINDOW_NS
from semindex.testing.cells import indexed, workspace_of
from tests.freshness.cells import Watching, cheap_cell

PATIENCE = 120.0
ROUNDS = 60
FILES = 300


async def test_what_was_written_just_before_a_search_is_found_although_a_sweep_has_just_passed_it(
    home: Path, tmp_path: Path
) -> None:
    """The tree is compared with its index all the time, so that nearly every search comes in the middle of that."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for number in range(FILES):
        (tree / f"file{number:03}.py").write_text(f"x = {number}\n")

    def write(number: int, word: str) -> None:
        (tree / f"file{number:03}.py").write_text(f"# {word} {word} {word} {word} {word}\n")

    async with cheap_cell(home, tmp_path, watching=Watching.OFF) as cell, trio.open_nursery() as nursery:
        await indexed(cell, "tree", tree)
        # Files that were written a moment ago are read by every sweep, which would hide what this is about.
        await trio.sleep(RACY_WINDOW_NS / 1e9)
        await workspace_of(cell, "tree").sweep()
        await workspace_of(cell, "tree").settled()

        async def sweep() -> None:
            while True:
                await workspace_of(cell, "tree").sweep(full=False)

        nursery.start_soon(sweep)
        with trio.fail_after(PATIENCE):
            for number in range(ROUNDS):
                word = f"worthwhile{number:06}"
                write(number, word)
                answer = await cell.searches.search("tree", word)
                assert answer.fresh
                assert [word in hit.code_chunk for hit in answer.results[:1]] == [True], word
        nursery.cancel_scope.cancel()
