"""How soon an edit is found by searches that do not ask for freshness, and what a cell costs while nothing happens.

python -m qualification.bench_watch [--workspaces 32] [--idle 50] [--edits 200] [--seconds 30] [--directory DIR]

Workspaces are indexed with vectors that cost nothing. Files of random ones are edited, one after another and several
at once, and searched with ``fresh`` off until the new text is there: the way of the event, its debounce, chunking and
storing. Then as many workspaces as are to idle are left alone, and the CPU time of the cell with all its processes is
told; looking at each whole tree from time to time is added as the share that it takes over its interval. What watching
alone costs, and of what, says bench_watch_idle. Ends with 1 if idling takes more than a hundredth of a core.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil
import trio

from semindex.cell.cell import Cell
from semindex.engine.workspace import Limits
from semindex.testing.cells import indexed, workspace_of
from tests.freshness.cells import Watching, cheap_cell
from tests.freshness.moves import git_environment

DIRECTORIES, FILES = 20, 100
"""Of each workspace."""
TRUSTED_AFTER = 2.5
"""Seconds after which the time stamps of new files can be trusted, so that sweeps read them no more."""
POLL = 0.01
AT_ONCE = 8
MOST_IDLE = 0.01
"""Share of one core."""
AIM = 0.5
"""Seconds for an edit."""


def make_tree(root: Path) -> None:
    """Make a workspace of small files."""
    for number in range(FILES):
        write(root / f"package{number % DIRECTORIES}/module{number}.py", f"word{root.name}x{number}")


def write(file: Path, word: str) -> None:
    """Write a file that holds a word."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"# {word} {word} {word} {word} {word} {word} {word}\n")


async def edit(cell: Cell, root: Path, file: int, word: str) -> float:
    """Edit a file, and return the seconds until it is found without asking for freshness."""
    write(root / f"package{file % DIRECTORIES}/module{file}.py", word)
    began = time.perf_counter()
    while True:
        answer = await cell.searches.search(root.name, word, fresh=False)
        if any(word in hit.code_chunk for hit in answer.results):
            return time.perf_counter() - began
        await trio.sleep(POLL)


async def edits(cell: Cell, roots: list[Path], number: int) -> None:
    """Edit random files, alone and several at once, and print how long each took."""
    chance = random.Random(0)
    alone = [
        await edit(cell, chance.choice(roots), chance.randrange(FILES), f"alone{count}word") for count in range(number)
    ]
    together: list[float] = []

    async def note(root: Path, word: str) -> None:
        together.append(await edit(cell, root, chance.randrange(FILES), word))

    for count in range(number // AT_ONCE):
        async with trio.open_nursery() as nursery:
            for root in chance.sample(roots, AT_ONCE):
                nursery.start_soon(note, root, f"together{count}{root.name}")
    for label, values in (("one at a time", alone), (f"{AT_ONCE} at once", together)):
        p95 = statistics.quantiles(values, n=20)[-1]
        print(
            f"  edit to searchable, {label:13}: {len(values)} edits, p50 {1000 * statistics.median(values):.0f} ms, "
            f"p95 {1000 * p95:.0f} ms (aim {1000 * AIM:.0f}), longest {1000 * max(values):.0f} ms"
        )


def cpu_seconds() -> float:
    """Return the CPU time of this process and of all its descendants that live."""
    this = psutil.Process()
    return sum(
        times.user + times.system for times in (each.cpu_times() for each in (this, *this.children(recursive=True)))
    )


async def idle(cell: Cell, roots: list[Path], seconds: float) -> float:
    """Leave the cell alone, and return the share of a core that it takes."""
    for root in roots:
        # The first look since time stamps can be trusted reads every file once more.
        await workspace_of(cell, root.name).sweep()
        await workspace_of(cell, root.name).settled()
    began, used = time.perf_counter(), cpu_seconds()
    for root in roots:
        await workspace_of(cell, root.name).sweep()
    sweeps = cpu_seconds() - used
    share_of_sweeps = sweeps / Limits().sweep_interval
    print(f"  one look at all {len(roots)} trees: {time.perf_counter() - began:.2f} s, {sweeps:.2f} s of CPU time")
    await trio.sleep(10)
    began, used = time.perf_counter(), cpu_seconds()
    await trio.sleep(seconds)
    alone = (cpu_seconds() - used) / (time.perf_counter() - began)
    share = alone + share_of_sweeps
    print(
        f"  idle: {share:.2%} of a core, of which {share_of_sweeps:.2%} for looking at all trees every "
        f"{Limits().sweep_interval:.0f} s"
    )
    print(f"  Trio's default limiter: {trio.to_thread.current_default_thread_limiter().borrowed_tokens} threads held")
    return share


async def main(home: Path, workspaces: int, idling: int, number: int, seconds: float) -> float:
    """Run all of it."""
    roots = [home / f"tree{index}" for index in range(max(workspaces, idling))]
    async with cheap_cell(home / "cell", home, watching=Watching.ON) as cell:
        for count, root in enumerate(roots):
            if count == workspaces:
                await trio.sleep(TRUSTED_AFTER)
                print(f"{workspaces} workspaces of {FILES} files")
                await edits(cell, roots[:workspaces], number)
            await trio.to_thread.run_sync(make_tree, root)
            await indexed(cell, root.name, root)
        await trio.sleep(TRUSTED_AFTER)
        print(f"{len(roots)} workspaces, {(await cell.status()).watchers} of them watched")
        return await idle(cell, roots, seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workspaces", type=int, default=32)
    parser.add_argument("--idle", type=int, default=50)
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--directory", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory) as scratch:
        scratch_home = Path(scratch).resolve()
        os.environ.update(git_environment(scratch_home))
        taken = trio.run(main, scratch_home, options.workspaces, options.idle, options.edits, options.seconds)
    sys.exit(taken >= MOST_IDLE)
