"""Plays moves on a real repository under a running cell, and holds every answer against what is on disk.

Two things are checked. An answer that says it is fresh shows exactly the files that hold the word that was asked for.
And no answer, fresh or not, at rest or in the middle of a move, shows text that its file did not hold at some instant
between the question and the answer.
"""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

import trio
from attrs import define, field, frozen

from semindex.cell.cell import Cell
from semindex.model.answers import SearchResponse
from semindex.model.limits import MAX_RESULTS
from semindex.model.points import Hit
from semindex.model.status import FileState
from semindex.testing.cells import workspace_of
from tests.freshness.moves import COMMON, TOKEN, Move, Repository
from tests.freshness.oracle import Oracle

PATIENCE = 120.0
"""Seconds after which an answer that is not fresh yet never will be, on a busy machine."""
TOKENS_ASKED = 2
"""Words asked for in each tree after a move, besides the one that all files hold."""
COUNTED = (FileState.INDEXED, FileState.PENDING, FileState.SKIPPED, FileState.FAILED)
PRYING_PAUSE = 0.005
"""Seconds between two questions that are asked at any time."""


@define
class Tally:
    """What was counted."""

    moves: Counter[str] = field(factory=Counter)
    answers: int = 0
    """All of them, with those asked at any time."""
    hits: int = 0
    stale: list[str] = field(factory=list)
    """Hits with a text that was not on disk."""
    fresh: int = 0
    """Answers at rest that said that they are fresh."""
    missed: list[str] = field(factory=list)
    """Files that such an answer lacks."""
    surplus: list[str] = field(factory=list)
    """Files in such an answer that are not for the index, or do not hold the word."""
    miscounted: list[str] = field(factory=list)
    """Statuses whose numbers of files were not those of the records."""
    unfresh: int = 0
    """Answers at rest that said that they are not fresh,"""
    unnamed: int = 0
    """and did not say what is pending."""
    seconds: list[float] = field(factory=list)
    """Of each fresh answer at rest."""

    @property
    def faults(self) -> list[str]:
        """Return everything that must not be."""
        return [*self.stale, *self.missed, *self.surplus, *self.miscounted]


@frozen
class _Claim:
    """An answer to be checked, and between which states it was given."""

    root: Path
    question: str
    first: int
    last: int
    hits: Sequence[Hit]


class Chronicle:
    """What every file has held, state by state. A state may be noted in a thread while claims are made."""

    def __init__(self, roots: Iterable[Path], tally: Tally) -> None:
        self.is_moving = False
        """Whether the disk may be on its way to the next state."""
        self._roots = tuple(roots)
        self._tally = tally
        self._states: dict[int, Mapping[tuple[Path, str], str]] = {}
        self._now = -1
        self._asked: Counter[int] = Counter()
        self._claims: list[_Claim] = []

    def note(self) -> None:
        """Note the present state."""
        state = {(root, path): text for root in self._roots for path, text in _contents(root)}
        self._states[self._now + 1] = state
        self._now += 1

    @contextmanager
    def question(self) -> Iterator[int]:
        """Yield the state in which a question is asked, and keep it until it is answered."""
        first = self._now
        self._asked[first] += 1
        try:
            yield first
        finally:
            self._asked[first] -= 1

    def claim(self, root: Path, question: str, first: int, hits: Sequence[Hit]) -> None:
        """Take in an answer that is being given now."""
        last = self._now + 1 if self.is_moving else self._now
        self._claims.append(_Claim(root, question, first, last, hits))

    def check(self) -> None:
        """Check the answers for which all states are known, and forget what nobody needs any more."""
        ripe = [claim for claim in self._claims if claim.last <= self._now]
        self._claims = [claim for claim in self._claims if claim.last > self._now]
        for claim in ripe:
            for hit in claim.hits:
                texts = [
                    self._states[number].get((claim.root, hit.file_path))
                    for number in range(claim.first, claim.last + 1)
                ]
                if not any(text is not None and hit.code_chunk in text for text in texts):
                    self._tally.stale.append(
                        f"{claim.root.name}, {claim.question}: {hit.file_path} shows {hit.code_chunk!r}"
                    )
        needed = [*(+self._asked), *(claim.first for claim in self._claims), self._now]
        for number in [number for number in self._states if number < min(needed)]:
            del self._states[number]


def _contents(root: Path) -> Iterator[tuple[str, str]]:
    for directory, below, files in os.walk(root):
        below[:] = [name for name in below if name != ".git"]
        for file in files:
            path = os.path.join(directory, file)
            if stat.S_ISREG(os.lstat(path).st_mode):
                yield os.path.relpath(path, root), Path(path).read_text(errors="replace")


class Machine:
    """Plays moves and asks questions; each tree is registered by its name."""

    def __init__(self, cell: Cell, repository: Repository, tally: Tally) -> None:
        self.cell = cell
        self.repository = repository
        self.tally = tally
        self._oracle = Oracle(repository.trees, repository.excludes, repository.directory / "oracle")
        self._chronicle = Chronicle(repository.trees, tally)
        self._expected: dict[Path, dict[str, str]] = {}
        self._random = Random(0)
        repository.note = self._chronicle.note

    def identity(self, tree: Path) -> str:
        """Return the id under which a tree is registered."""
        return f"{self.repository.directory.name}-{tree.name}"

    async def begin(self) -> None:
        """Register all trees, and wait until they are indexed."""
        await self.look()
        for tree in self.repository.trees:
            await self.register(tree)

    async def register(self, tree: Path) -> None:
        """Register a tree, and wait until it is indexed."""
        await self.cell.leases.register(self.identity(tree), str(tree))
        with trio.fail_after(PATIENCE):
            await workspace_of(self.cell, self.identity(tree)).settled()

    async def renew(self, tree: Path, *, purge: bool) -> None:
        """Release a tree, with or without what is stored of it, and register it again."""
        await self.cell.leases.release(self.identity(tree), purge=purge)
        await self.register(tree)

    async def end(self) -> None:
        """Release all trees, and delete what was stored of them."""
        for tree in reversed(self.repository.trees):
            await self.cell.leases.release(self.identity(tree), purge=True)

    async def play(self, moves: Iterable[Move]) -> None:
        """Play moves, with questions after each and at any time; stop at the first fault."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._pry)
            for move in moves:
                await self.step(move)
                if self.tally.faults:
                    break
            nursery.cancel_scope.cancel(reason="all moves are played")

    async def step(self, move: Move) -> None:
        """Make one move, rest, and ask in every tree: at once for what all files hold, then for what changed."""
        before = self._expected
        answers: dict[Path, SearchResponse] = {}
        self._chronicle.is_moving = True
        async with trio.open_nursery() as others:
            others.start_soon(self._prod, self.repository.trees[move.tree % 3])
            await trio.to_thread.run_sync(self.repository.play, move)
            self.tally.moves[move.name] += 1
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.look)
                await trio.sleep(move.pause)
                for tree in self.repository.trees:
                    nursery.start_soon(self._ask_at_rest, tree, COMMON, answers)
            others.cancel_scope.cancel(reason="the move was played and asked for")
        for tree, answer in answers.items():
            self._compare(tree, COMMON, answer)
        await self.ask_for(before)
        self._chronicle.check()
        for tree in self.repository.trees:
            self._count(tree)

    async def look(self) -> None:
        """Note what is on disk, where nothing moves any more, and work out what is to be found."""
        await trio.to_thread.run_sync(self._chronicle.note)
        self._chronicle.is_moving = False
        self._expected = await trio.to_thread.run_sync(
            lambda: {tree: self._oracle.texts(tree) for tree in self.repository.trees}
        )

    async def ask_for(self, before: Mapping[Path, Mapping[str, str]]) -> None:
        """Ask for some of what is there and was not before, or the other way round."""
        async with trio.open_nursery() as nursery:
            for tree in self.repository.trees:
                changed = _tokens(before[tree]) ^ _tokens(self._expected[tree])
                for question in sorted(changed, reverse=True)[:TOKENS_ASKED]:
                    nursery.start_soon(self._ask_and_compare, tree, question)

    async def ask_for_all(self) -> None:
        """Ask for what all files hold, in every tree."""
        async with trio.open_nursery() as nursery:
            for tree in self.repository.trees:
                nursery.start_soon(self._ask_and_compare, tree, COMMON)

    async def _prod(self, tree: Path) -> None:
        """Have a tree compared with its index all the time: who asks now must not be served by what began before."""
        while True:
            await workspace_of(self.cell, self.identity(tree)).sweep(full=False)

    async def _pry(self) -> None:
        """Ask anything of anyone at any time."""
        while True:
            tree = self._random.choice(self.repository.trees)
            question = self._random.choice([COMMON, *_tokens(self._expected[tree])])
            await self._ask(tree, question, fresh=self._random.random() < 0.5)
            await trio.sleep(PRYING_PAUSE)

    async def _ask_and_compare(self, tree: Path, question: str) -> None:
        answers: dict[Path, SearchResponse] = {}
        await self._ask_at_rest(tree, question, answers)
        self._compare(tree, question, answers[tree])

    async def _ask_at_rest(self, tree: Path, question: str, answers: dict[Path, SearchResponse]) -> None:
        """Ask until the answer is fresh, and note it."""
        with trio.fail_after(PATIENCE):
            while True:
                began = trio.current_time()
                answer = await self._ask(tree, question, fresh=True)
                if answer.fresh:
                    break
                self.tally.unfresh += 1
                self.tally.unnamed += not answer.pending
        self.tally.fresh += 1
        self.tally.seconds.append(trio.current_time() - began)
        answers[tree] = answer

    def _compare(self, tree: Path, question: str, answer: SearchResponse) -> None:
        """Hold a fresh answer against what is expected."""
        found = {hit.file_path for hit in answer.results if question in hit.code_chunk}
        expected = {path for path, text in self._expected[tree].items() if question in text}
        self.tally.surplus += [f"{tree.name}, {question}: {path} is found" for path in sorted(found - expected)]
        if len(answer.results) < MAX_RESULTS:
            self.tally.missed += [f"{tree.name}, {question}: {path} is missing" for path in sorted(expected - found)]

    def _count(self, tree: Path) -> None:
        """Hold the numbers of the status against the records."""
        index = workspace_of(self.cell, self.identity(tree)).index
        states = Counter(index.state_of(record.path) for record in index.table)
        told = index.counts()
        if (told.indexed, told.pending, told.skipped, told.failed) != tuple(states[state] for state in COUNTED):
            self.tally.miscounted.append(f"{tree.name}: {told}, and it is {states}")

    async def _ask(self, tree: Path, question: str, *, fresh: bool) -> SearchResponse:
        with self._chronicle.question() as first:
            answer = await self.cell.searches.search(
                self.identity(tree), question, max_results=MAX_RESULTS, fresh=fresh, keep_overlaps=True
            )
            self._chronicle.claim(tree, question, first, answer.results)
        self.tally.answers += 1
        self.tally.hits += len(answer.results)
        return answer


def _tokens(texts: Mapping[str, str]) -> set[str]:
    return {token for text in texts.values() for token in TOKEN.findall(text)}
