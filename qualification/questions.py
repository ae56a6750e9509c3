"""Command: ask twenty plain questions of three foreign trees and print how often the first files hold the answer.

python -m qualification.questions [--json]

The trees are installed packages that this project depends on, two of them held out when the embedded table was
trained, the third unknown to it. Questions and accepted files (``questions/PACKAGE.json``; a folder ends in a
slash) were written from knowledge of the packages before any result was seen; to change one because of a result
would make all of it void.
"""

import argparse
import json
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import trio
from attrs import asdict, frozen

from semindex.config import CellConfig
from semindex.model.errors import ScanFailed
from semindex.model.limits import MAX_RESULTS
from semindex.model.status import State
from semindex.service import open_cell, restore
from semindex.state.cell_directory import open_cell_directory

QUESTIONS: Final = Path(__file__).with_name("questions")
FIRST: Final = (1, 3, 10)
"""Numbers of files for which recall is printed."""
INDEXING_TIMEOUT = 300
"""Seconds for one tree."""
REGISTRATION = "questions"

Ask = Callable[[str], Awaitable[Sequence[str]]]
"""Takes a question, returns the files of the hits, best first, as often as they occur."""


@frozen
class Question:
    """A question, and the files any of which answers it."""

    question: str
    files: tuple[str, ...]

    def rank(self, found: Sequence[str]) -> int | None:
        """Return the place, from 1, of the first accepted file among the different files found; None if none is."""
        for place, path in enumerate(dict.fromkeys(found), 1):
            if any(path == file or (file.endswith("/") and path.startswith(file)) for file in self.files):
                return place
        return None


@frozen
class Outcome:
    """What came of one question."""

    package: str
    question: str
    rank: int | None


def read_questions(package: str) -> list[Question]:
    """Return the questions on a package."""
    entries = json.loads((QUESTIONS / f"{package}.json").read_text())
    return [Question(entry["question"], tuple(entry["files"])) for entry in entries]


def packages() -> list[str]:
    """Return the names of the packages that are asked about, sorted."""
    return sorted(path.stem for path in QUESTIONS.glob("*.json"))


def installed(package: str) -> Path | None:
    """Return the folder of an installed package without importing it."""
    spec = find_spec(package)
    return Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None


@contextmanager
def tree_of(package: str) -> Iterator[tuple[Path, Path]]:
    """Provide a copy of an installed package that no repository around it can affect, and an empty folder beside it."""
    source = installed(package)
    if source is None:
        sys.exit(f"The package {package} is not installed here; run this in the project's test environment.")
    with TemporaryDirectory() as scratch:
        tree, home = Path(scratch).resolve() / package, Path(scratch).resolve() / "cell"
        shutil.copytree(source, tree, ignore=shutil.ignore_patterns("__pycache__"))
        yield tree, home


@asynccontextmanager
async def index_of(tree: Path, home: Path) -> AsyncIterator[Ask]:
    """Index a tree with the defaults in a cell of its own, and ask it while it is open."""
    config = CellConfig(state_directory=home / "state", cache_directory=home / "cache", allowed_roots=(tree,))
    async with open_cell_directory(config.state_directory) as directory, open_cell(config, directory) as cell:
        await restore(cell)
        await cell.leases.register(REGISTRATION, str(tree))
        with trio.fail_after(INDEXING_TIMEOUT):
            while (status := cell.leases.status(REGISTRATION).workspace).state is not State.INDEXED:
                if status.state is State.ERROR:
                    raise ScanFailed(status.message)
                await cell.changes.beyond(cell.changes.value)

        async def ask(question: str) -> Sequence[str]:
            answer = await cell.searches.search(REGISTRATION, question, max_results=MAX_RESULTS)
            return [hit.file_path for hit in answer.results]

        yield ask


async def outcomes_of(package: str) -> list[Outcome]:
    """Ask every question on a package."""
    with tree_of(package) as (tree, home):
        async with index_of(tree, home) as ask:
            return [
                Outcome(package, question.question, question.rank(await ask(question.question)))
                for question in read_questions(package)
            ]


def recall(outcomes: Sequence[Outcome]) -> dict[int, int]:
    """Return how many questions are answered within each number of files of ``FIRST``."""
    return {first: sum(out.rank is not None and out.rank <= first for out in outcomes) for first in FIRST}


def main() -> None:
    """Ask everything and print the ranks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    outcomes = [outcome for package in packages() for outcome in trio.run(outcomes_of, package)]
    found = recall(outcomes)
    if options.json:
        report = {"questions": len(outcomes), "answeredInFirst": found, "outcomes": [asdict(out) for out in outcomes]}
        print(json.dumps(report, indent=2))
        return
    for out in outcomes:
        print(f"{out.rank or '-':>4}  {out.package:10}  {out.question}")
    print("\n".join(f"answered by the first {first}: {count} of {len(outcomes)}" for first, count in found.items()))


if __name__ == "__main__":
    main()
