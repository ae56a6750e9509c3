"""However many better hits a worktree hides, its answer is that of an index built for it alone, on the real store."""

import shutil
from pathlib import Path

import trio

from semindex.cell.cell import Cell
from semindex.testing.cells import indexed
from tests.freshness.cells import Watching, cheap_cell
from tests.freshness.moves import Repository

PATIENCE = 300.0
MASKED_FILES, SECTIONS = 100, 50
"""Files of which the baseline holds more and better hits than the worktree may show: 5,000 hits in all."""
VALID_FILES = 60
PREFIXES = (None, "alpha", "alpha/deep")


def write_masked(tree: Path) -> None:
    """Write the files that hold nothing but what is asked for."""
    text = "\n".join(f"# wanted wanted wanted wanted {'wanted ' * 5}{number}\n" for number in range(SECTIONS))
    for number in range(MASKED_FILES):
        (tree / f"alpha/masked{number}.md").write_text(text)


def write_valid(tree: Path) -> None:
    """Write files that hold what is asked for and ever more of other things, and some that are equal."""
    for number in range(VALID_FILES):
        others = " ".join(f"other{number // 2}{letter}" for letter in "abcdefgh"[: 1 + number % 8])
        directory = ("alpha", "alpha/deep", "beta")[number % 3]
        (tree / f"{directory}/valid{number}.md").write_text(f"# wanted wanted wanted wanted wanted {others} {others}\n")


async def answers(cell: Cell, name: str, *, fresh: bool) -> list[list[tuple[str, int, str, float]]]:
    """Return what is found for several numbers of results and several prefixes, to the last digit that counts."""
    found = []
    for prefix in PREFIXES:
        for wanted in (1, 20, 50):
            answer = await cell.searches.search(name, "wanted", path=prefix, max_results=wanted, fresh=fresh)
            found.append(
                [(hit.file_path, hit.start_line, hit.code_chunk, round(hit.score, 5)) for hit in answer.results]
            )
    return found


async def test_five_thousand_masked_hits_leave_the_same_answer_as_an_index_from_scratch(
    home: Path, tmp_path: Path
) -> None:
    trees = Repository(tmp_path / "project")
    await trio.to_thread.run_sync(trees.make)
    for directory in ("alpha/deep", "beta"):
        (trees.primary / directory).mkdir(parents=True, exist_ok=True)
    await trio.to_thread.run_sync(write_masked, trees.primary)
    await trio.to_thread.run_sync(write_valid, trees.primary)
    trees.commit(trees.primary)
    trees.git(trees.linked, "merge", "--quiet", "main")
    alone = trees.directory / "alone"

    with trio.fail_after(PATIENCE):
        async with cheap_cell(home, trees.directory, watching=Watching.OFF) as cell:
            assert (await indexed(cell, "primary", trees.primary)).chunks > MASKED_FILES * SECTIONS
            assert (await indexed(cell, "linked", trees.linked)).chunks == 0
            for number in range(MASKED_FILES):
                (trees.linked / f"alpha/masked{number}.md").unlink()
            await trio.to_thread.run_sync(shutil.copytree, trees.linked, alone)
            (alone / ".git").unlink()
            await indexed(cell, "alone", alone)
            expected = await answers(cell, "alone", fresh=True)
            assert [len(found) for found in expected[:3]] == [1, 20, 50]

            # Known to the disk alone; then to the index; then changed rather than gone.
            assert await answers(cell, "linked", fresh=False) == expected
            assert await answers(cell, "linked", fresh=True) == expected
            for number in range(MASKED_FILES):
                (trees.linked / f"alpha/masked{number}.md").write_text("nothing of the kind\n")
            assert await answers(cell, "linked", fresh=False) == expected
            assert await answers(cell, "linked", fresh=True) == expected
