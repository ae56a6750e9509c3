"""Whole programs of edits, searches, restarts and kills on a primary checkout and a worktree above it.

A search is held against the trees themselves: every file, chunked and ranked by brute force.
"""

from collections.abc import Iterator, Sequence
from itertools import cycle, product
from typing import Any

import numpy as np
import trio
from attrs import define, evolve, field, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from semindex.core.ranking import rank_key
from semindex.embedders.hashing import HashingEmbedder
from semindex.engine.search import SearchRequest
from semindex.engine.workspace import Workspace
from semindex.model.chunks import ChunkedFile
from semindex.model.errors import NotReady
from semindex.model.points import Hit, chunk_payload
from semindex.model.profiles import Role
from semindex.testing.audit import differences
from semindex.testing.bench import Bench, Process, words
from semindex.testing.chunker import MemoryChunkerPool
from semindex.testing.intercept import Call, Proceed
from semindex.testing.watch import DelayedSource, MemorySource

P, W = "/primary", "/worktree"
PATIENCE = 100_000.0
TOKENS = ["apple", "banana", "cherry"]
FILES = ["a.py", "b.py", "src/c.py", "src/d.py"]
MIN_SCORE = 0.3


@frozen
class Write:
    root: str
    path: str
    tokens: tuple[str, ...]
    units: int


@frozen
class Copy:
    """Gives a file of the worktree the content, and the absence, that it has in the primary."""

    path: str


@frozen
class Delete:
    root: str
    path: str


@frozen
class Rename:
    root: str
    old: str
    new: str


@frozen
class Ignore:
    root: str
    pattern: str


Edit = Write | Copy | Delete | Rename | Ignore


@frozen
class Search:
    root: str
    tokens: tuple[str, ...]
    most: int
    during: Sequence[Edit] = ()
    """What is edited while the search is under way."""


@frozen
class Sweep:
    root: str


@frozen
class Reindex:
    root: str


@frozen
class Wait:
    seconds: float


@frozen
class Restart:
    orderly: bool
    lost: str | None
    """A file whose points are gone from both collections afterwards."""


Command = Edit | Search | Sweep | Reindex | Wait | Restart

roots, paths = st.sampled_from([P, W]), st.sampled_from(FILES)
tokens = st.lists(st.sampled_from(TOKENS), min_size=1, max_size=2, unique=True).map(tuple)
edits = st.one_of(
    st.builds(Write, roots, paths, tokens, st.sampled_from([60, 60, 3000])),
    st.builds(Copy, paths),
    st.builds(Delete, roots, paths),
    st.builds(Rename, roots, paths, paths),
    st.builds(Ignore, roots, st.sampled_from(["", "a.py", "src/", "*.py"])),
)
commands = st.one_of(
    edits,
    edits,
    st.builds(Search, roots, tokens, st.integers(1, 8)),
    st.builds(Search, roots, tokens, st.integers(1, 8), st.lists(edits, min_size=1, max_size=3)),
    st.builds(Sweep, roots),
    st.builds(Reindex, roots),
    st.builds(Wait, st.sampled_from([0.5, 3.0, 400.0])),
    st.builds(Restart, st.booleans(), st.none() | paths),
)


@define
class Interpreter:
    """Carries out a program, and compares."""

    latencies: Iterator[int]
    watching: str
    bench: Bench = field(factory=Bench)
    history: dict[tuple[str, str], list[str | None]] = field(factory=dict)
    """Every content that a file had since the running search began."""

    def __attrs_post_init__(self) -> None:
        source = MemorySource()
        self.bench.events = {"off": None, "prompt": source, "late": DelayedSource(source, 5)}[self.watching]
        for root in (P, W):
            source.listen(root, self.bench.tree(root, a=words("apple"), b=words("banana")))

    async def run(self, program: Sequence[Command]) -> None:
        with trio.fail_after(PATIENCE):
            rest: Sequence[Command] = list(program)
            while rest:
                rest = await self.live(rest)
            async with self.bench.process() as process:
                await process.start(P)
                await process.start(W, baseline=P)
                for workspace in process.workspaces.values():
                    await workspace.settled()
            assert await differences(self.bench, P) == []
            assert await differences(self.bench, W, baseline=P) == []

    async def live(self, program: Sequence[Command]) -> Sequence[Command]:
        """Run one process; return what is left of the program when it ends."""
        with trio.CancelScope() as life:
            async with self.bench.process(self.delay) as process:
                await process.start(P)
                await process.start(W, baseline=P)
                for number, command in enumerate(program):
                    if isinstance(command, Restart):
                        program = program[number + 1 :]
                        if not command.orderly:
                            life.cancel(reason="the process is killed")
                            await trio.lowlevel.checkpoint()
                        break
                    await self.carry_out(process, command)
                else:
                    return []
        await self.lose(command)
        return program

    async def lose(self, command: Command) -> None:
        assert isinstance(command, Restart)
        for name in await self.bench.store.collections() if command.lost else ():
            await self.bench.store.delete_files(name, [command.lost or ""])

    async def delay(self, call: Call, proceed: Proceed) -> Any:
        """Let every call take its time, and scores be the same for the same text in any collection."""
        if latency := next(self.latencies):
            await trio.sleep(latency / 10)
        result = await proceed()
        if call.is_named("store.search"):
            return [evolve(hit, score=round(hit.score, 4)) for hit in result]
        return result

    async def carry_out(self, process: Process, command: Command) -> None:
        match command:
            case Search():
                await self.search(process, command)
            case Sweep(root):
                await process.workspaces[root].sweep()
            case Reindex(root):
                await process.workspaces[root].reindex()
            case Wait(seconds):
                await trio.sleep(seconds)
                for tree in self.bench.trees.values():
                    tree.advance(seconds)
            case _:
                self.edit(command)

    def edit(self, command: Command) -> None:
        self.remember()
        match command:
            case Write(root, path, tokens, units):
                self.bench.trees[root].write(path, words(*tokens, units=units))
            case Copy(path) if (content := self.content(P, path)) is not None:
                self.bench.trees[W].write(path, content)
            case Delete(root, path) if self.content(root, path) is not None:
                self.bench.trees[root].delete(path)
            case Rename(root, old, new) if old != new and self.content(root, old) is not None:
                self.bench.trees[root].rename(old, new)
            case Ignore(root, pattern):
                self.bench.trees[root].write(".gitignore", pattern + "\n")
            case _:
                """There is nothing to copy, delete or rename."""
        self.remember()

    def content(self, root: str, path: str) -> str | None:
        read = self.bench.trees[root].read(path)
        return getattr(read, "data", b"").decode() or None

    def remember(self) -> None:
        for root, path in product((P, W), FILES):
            self.history.setdefault((root, path), []).append(self.content(root, path))

    async def search(self, process: Process, search: Search) -> None:
        workspace = process.workspaces[search.root]
        self.history.clear()
        self.remember()
        request = SearchRequest(
            " ".join(search.tokens), max_results=search.most, candidates=1, min_score=MIN_SCORE, fresh_seconds=600
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.edit_meanwhile, search.during)
            answer = await self.ask(workspace, request)
        if search.during:
            for hit in answer:
                versions = self.history[search.root, hit.file_path]
                assert any(version is not None and hit.code_chunk in version for version in versions)
        else:
            assert [self.shown(hit) for hit in answer] == [
                self.shown(hit) for hit in await self.expected(search.root, request)
            ]

    async def ask(self, workspace: Workspace, request: SearchRequest) -> Sequence[Hit]:
        """Search once that is possible."""
        while True:
            try:
                answer = await workspace.search(request)
            except NotReady:
                await workspace.changes.beyond(workspace.changes.value)
                continue
            if answer.fresh:
                return answer.results
            await workspace.settled()

    async def edit_meanwhile(self, edits: Sequence[Edit]) -> None:
        for edit in edits:
            await trio.sleep(0.15)
            self.edit(edit)

    @staticmethod
    def shown(hit: Hit) -> tuple[str, int, int, float, str]:
        return hit.file_path, hit.start_line, hit.end_line, hit.score, hit.code_chunk

    async def expected(self, root: str, request: SearchRequest) -> Sequence[Hit]:
        """Rank every chunk of every file on disk."""
        found = list((await self.bench.trees[root].scan()).files)
        results = await MemoryChunkerPool(self.bench.trees).chunk(root, found, self.bench.chunking, {})
        files = [result for result in results if isinstance(result, ChunkedFile)]
        chunks = [(file, chunk) for file in files for chunk in file.chunks]
        embedder = HashingEmbedder(self.bench.embedder.profile.dimension, batch_size=1 + len(chunks))
        query, *vectors = await embedder.embed(
            [request.query, *(chunk.text.strip() for _, chunk in chunks)], Role.DOCUMENT
        )
        hits = [
            Hit.from_payload(
                round(float(np.dot(query.astype(float), vector.astype(float))), 4),
                chunk_payload(file.path, file.file_hash, chunk),
            )
            for (file, chunk), vector in zip(chunks, vectors, strict=True)
        ]
        ranked = sorted((hit for hit in hits if hit and hit.score >= request.min_score), key=rank_key)
        return ranked[: request.max_results]


@settings(max_examples=60)
@given(
    program=st.lists(commands, min_size=1, max_size=14),
    latencies=st.lists(st.integers(0, 9), max_size=12),
    watching=st.sampled_from(["off", "prompt", "late"]),
)
def test_whatever_happens_a_fresh_search_tells_what_is_on_disk(
    program: Sequence[Command], latencies: Sequence[int], watching: str
) -> None:
    interpreter = Interpreter(cycle(latencies or [0]), watching)
    trio.run(interpreter.run, program, clock=MockClock(autojump_threshold=0))
