"""How soon a worktree can be searched, what it costs, and whether many of them hold up an edit elsewhere.

python -m qualification.bench_worktree [--files 2500] [--worktrees 20] [--directory DIR]

A repository of small files is indexed with vectors that cost nothing, so that all else shows. Then one worktree that
equals it is registered and edited, and then many at once, each with files of its own, while somebody edits another
workspace and searches it. Aims: the first is ready within two seconds without a call of the embedder, and an edit is
found within two seconds whatever goes on.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import trio

from semindex.cell.cell import Cell
from semindex.model.status import State
from semindex.testing.cells import indexed, workspace_of
from tests.freshness.cells import CountingEmbedder, Watching, cheap_cell
from tests.freshness.moves import git_environment

FILES_PER_DIRECTORY = 25
CHANGED = 50
"""Files that each of many worktrees has of its own."""
EDITS = 30
PAUSE = 0.1
"""Seconds between two edits while many worktrees are being indexed."""


def write_module(place: Path, word: str) -> None:
    """Write a file of some functions."""
    place.parent.mkdir(parents=True, exist_ok=True)
    functions = (
        f"def {word}_{part}(request, limit={part}):\n"
        f'    """Transform what {word} was asked for in part {part}."""\n'
        f"    value = request.get('{word}', limit)\n    return transform(value, {part}, limit)\n"
        for part in range(4)
    )
    place.write_text("\n\n".join(functions))


def make_repository(primary: Path, files: int) -> None:
    """Make a repository of so many files."""
    for number in range(files):
        write_module(primary / f"package{number // FILES_PER_DIRECTORY}/module{number}.py", f"handler{number}")
    git(primary, "init", "--quiet", "--initial-branch=main")
    git(primary, "add", "--all")
    git(primary, "commit", "--quiet", "--message=All of it")


def add_worktree(primary: Path, tree: Path, changed: int) -> None:
    """Add a worktree in which some files are new."""
    git(primary, "worktree", "add", "--quiet", "--detach", str(tree))
    for number in range(changed):
        write_module(tree / f"package{number}/own{number}.py", f"{tree.name}own{number}")


def git(tree: Path, *arguments: str) -> None:
    """Run git."""
    subprocess.run(["git", *arguments], cwd=tree, check=True, capture_output=True)


async def found(cell: Cell, name: str, word: str) -> float:
    """Return the seconds until a fresh answer shows a word."""
    began = time.perf_counter()
    while True:
        answer = await cell.searches.search(name, word)
        if any(word in hit.code_chunk for hit in answer.results):
            return time.perf_counter() - began


async def one_worktree(cell: Cell, home: Path, embedder: CountingEmbedder) -> None:
    """Register one worktree that equals its primary, and edit it."""
    await trio.to_thread.run_sync(add_worktree, home / "primary", home / "equal", 0)
    calls = len(embedder.calls)
    began = time.perf_counter()
    status = await indexed(cell, "equal", home / "equal")
    seconds = time.perf_counter() - began
    assert status.state is State.INDEXED, status.message
    print(
        f"one worktree: ready after {seconds:.2f} s, {len(embedder.calls) - calls} calls of the embedder, "
        f"{status.embedded_chunks} chunks embedded, {status.files.indexed} files"
    )
    for label in ("first", "second"):
        write_module(home / "equal/package0/module0.py", f"{label}edit")
        print(f"  its {label} edit is in a fresh answer after {await found(cell, 'equal', f'{label}edit_0'):.3f} s")


async def many_worktrees(cell: Cell, home: Path, number: int) -> None:
    """Register many worktrees at once, and edit another workspace meanwhile."""
    other, trees = home / "other", [home / f"tree{index}" for index in range(number)]
    write_module(other / "module.py", "before")
    for tree in trees:
        await trio.to_thread.run_sync(add_worktree, home / "primary", tree, CHANGED)
    await indexed(cell, "other", other)
    quiet = [await edit(cell, other, f"quiet{index}") for index in range(EDITS)]
    began = time.perf_counter()
    busy: list[float] = []

    async def edit_until_ready() -> None:
        while True:
            busy.append(await edit(cell, other, f"busy{len(busy)}"))
            await trio.sleep(PAUSE)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(edit_until_ready)
        async with trio.open_nursery() as registering:
            for tree in trees:
                registering.start_soon(indexed, cell, tree.name, tree)
        seconds = time.perf_counter() - began
        nursery.cancel_scope.cancel()
    print(f"{number} worktrees at once, {CHANGED} files of their own each: all ready after {seconds:.1f} s")
    for label, values in (("at rest", quiet), ("meanwhile", busy)):
        print(
            f"  an edit elsewhere, {label:9}: {len(values):4} edits, p50 {statistics.median(values):.3f} s, "
            f"longest {max(values):.3f} s"
        )
    embedded = [workspace_of(cell, tree.name).status().embedded_chunks for tree in trees]
    print(f"  embedded by each: {min(embedded)} to {max(embedded)} chunks")


async def edit(cell: Cell, other: Path, word: str) -> float:
    """Edit the other workspace, and return the seconds until it is found."""
    write_module(other / "module.py", word)
    return await found(cell, other.name, f"{word}_0")


async def main(home: Path, files: int, worktrees: int) -> None:
    """Run all of it."""
    await trio.to_thread.run_sync(make_repository, home / "primary", files)
    embedder = CountingEmbedder()
    async with cheap_cell(home / "cell", home, embedder=embedder, watching=Watching.ON) as cell:
        began = time.perf_counter()
        status = await indexed(cell, "primary", home / "primary")
        print(f"primary: {status.files.indexed} files, {status.chunks} chunks in {time.perf_counter() - began:.1f} s")
        await one_worktree(cell, home, embedder)
        await many_worktrees(cell, home, worktrees)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2500)
    parser.add_argument("--worktrees", type=int, default=20)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        scratch_home = Path(scratch).resolve()
        os.environ.update(git_environment(scratch_home))
        trio.run(main, scratch_home, options.files, options.worktrees)
