"""Ignore rules against git for as long as one likes.

python -m qualification.fuzz_ignore [SECONDS]

Draws long patterns and whole trees anew until the time is over (default: 60 seconds), and ends with 1 at the first on
which git and we disagree, after printing it. The tests of every change do the same for a few seconds.
"""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.core.ignore_trees import Repository, Tree, disagreements, pattern_disagreements, random_patterns, trees

PATTERNS_AT_ONCE = 2000
TREES_AT_ONCE = 200


def rounds(repository: Repository) -> Iterator[tuple[int, int]]:
    """Yield the numbers of patterns and trees that were compared, after each round. Raises AssertionError."""
    patterns_done = trees_done = 0
    for number in itertools.count(time.time_ns()):
        wrong = pattern_disagreements(repository, random_patterns(PATTERNS_AT_ONCE, seed=number))
        assert not wrong, f"seed {number}: (pattern, path) {wrong[:10]}"
        patterns_done += PATTERNS_AT_ONCE
        compare_trees(repository, number)
        trees_done += TREES_AT_ONCE
        yield patterns_done, trees_done


def compare_trees(repository: Repository, number: int) -> None:
    """Compare trees drawn from a seed; the smallest wrong one is in the error."""

    @seed(number)
    @settings(
        max_examples=TREES_AT_ONCE,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(tree=trees())
    def compare(tree: Tree) -> None:
        wrong = disagreements(repository, tree)
        assert not wrong, f"seed {number}: (path, git, we) {wrong}"

    compare()


def main() -> int:
    """Compare until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("seconds", nargs="?", type=float, default=60.0)
    end = time.monotonic() + parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as directory:
        os.environ.update(
            HOME=directory, XDG_CONFIG_HOME=directory, GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL=os.devnull
        )
        root = Path(directory) / "repository"
        subprocess.run(["git", "init", "--quiet", str(root)], check=True)
        for patterns_done, trees_done in rounds(Repository(root)):
            print(f"{patterns_done:,} patterns and {trees_done:,} trees: git says the same of all")
            if time.monotonic() > end:
                return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
