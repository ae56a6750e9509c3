"""How often answers are stale: a repository with two worktrees is edited at length, and every answer is checked.

python -m qualification.freshness [--moves 1000] [--seed 0] [--watching on late off] [--directory DIR]

The moves are those of tests/freshness, drawn at random: edits of every kind, renames, branches, stashes, ignore files,
links and more, with rests of random length. The service is stopped now and then while the moves go on, and worktrees
are released and registered again. After each move every tree is asked for what it must hold; at any time, others ask
anything. It ends with 1 if a single answer was wrong.
"""

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import trio

from tests.freshness.cells import CountingEmbedder, Watching, cheap_cell
from tests.freshness.machine import Machine, Tally
from tests.freshness.moves import FREQUENT, MOVES, Move, Repository, git_environment

RESTS = (*[0.0] * 20, *[0.02] * 4, *[0.2] * 4, 0.6, 2.2)
"""Seconds after a move.

After the longest, time stamps are trusted, and edits have been heard of even if late events are off.
"""
LIFE = 100
"""Moves between two starts of the service."""
DOWN = 10
"""Moves of those that are made while it is down."""
LEASE = 25
"""Moves between two releases of a worktree."""
BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Bounds of the histogram, in seconds."""


def drawn(source: random.Random, number: int) -> list[Move]:
    """Return moves drawn at random."""
    names = [*FREQUENT, *FREQUENT, *MOVES]
    return [
        Move(
            source.choice(names),
            source.randrange(3),
            source.randrange(1000),
            source.randrange(1000),
            source.choice(RESTS),
        )
        for _ in range(number)
    ]


def parts(moves: Sequence[Move], length: int) -> Iterator[Sequence[Move]]:
    """Cut moves into parts."""
    return (moves[first : first + length] for first in range(0, len(moves), length))


async def play(home: Path, watching: Watching, moves: Sequence[Move], source: random.Random) -> Tally:
    """Play all moves on one repository, in several lives of the service."""
    tally, embedder = Tally(), CountingEmbedder()
    repository = Repository(home / "project")
    await trio.to_thread.run_sync(repository.make)
    machine: Machine | None = None
    for life in parts(moves, LIFE):
        async with cheap_cell(home / "cell", repository.directory, embedder=embedder, watching=watching) as cell:
            machine = machine or Machine(cell, repository, tally)
            machine.cell = cell
            await machine.begin()
            await machine.ask_for_all()
            for part in parts(life[:-DOWN], LEASE):
                await machine.play(part)
                if tally.faults:
                    return tally
                await machine.renew(source.choice(repository.trees[1:]), purge=source.random() < 0.5)
                await machine.ask_for_all()
            print(f"  {tally.moves.total()} moves, {tally.answers} answers", file=sys.stderr)
        await trio.to_thread.run_sync(play_unseen, repository, life[-DOWN:], tally)
    return tally


def play_unseen(repository: Repository, moves: Sequence[Move], tally: Tally) -> None:
    """Make moves while no service runs."""
    for move in moves:
        repository.play(move)
        tally.moves[move.name] += 1


def report(watching: Watching, tally: Tally) -> None:
    """Print what was counted."""
    asked = tally.fresh + tally.unfresh
    print(f"\nwatching {watching.value}: {tally.moves.total()} moves, {tally.answers} answers with {tally.hits} hits")
    print(f"  stale hits                    {len(tally.stale):6}  ({len(tally.stale) / max(1, tally.hits):.4%})")
    print(f"  missing from fresh answers    {len(tally.missed):6}  (in {tally.fresh} of them)")
    print(f"  too much in fresh answers     {len(tally.surplus):6}")
    print(
        f"  not fresh within two seconds  {tally.unfresh:6}  ({tally.unfresh / max(1, asked):.2%}; {tally.unnamed} named no file)"
    )
    print("  seconds until a fresh answer")
    for low, high in zip((0.0, *BUCKETS), (*BUCKETS, float("inf")), strict=True):
        number = sum(low <= seconds < high for seconds in tally.seconds)
        print(f"    {low:5g} to {high:5g}  {number:6}  {'#' * round(60 * number / max(1, len(tally.seconds)))}")
    for fault in tally.faults:
        print(f"  WRONG {fault}")


def main() -> int:
    """Play, print what came of it, and return 1 if a single answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--watching", nargs="+", type=Watching, default=list(Watching), metavar="on|late|off")
    parser.add_argument("--directory", type=Path, help="where the repository and the cell are made")
    options = parser.parse_args()
    is_wrong = False
    for watching in options.watching:
        with ExitStack() as stack:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.directory))).resolve()
            os.environ.update(git_environment(home))
            source = random.Random(options.seed)
            tally = trio.run(play, home, watching, drawn(source, options.moves), source)
        report(watching, tally)
        is_wrong |= bool(tally.faults)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
