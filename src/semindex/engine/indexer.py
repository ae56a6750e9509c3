"""The pipeline of one workspace: taken paths ▸ chunk ▸ embed ▸ store ▸ settle.

Workers take paths from the queue and hand outcomes to one settler through a bounded channel, so that storing slower
than parsing makes parsing wait. The settler writes in an order that survives kill -9 at any point: the ledger says
"dirty", old points are deleted, new ones written, the ledger says what is now stored. Trouble with a dependency is
reported and waited out; the paths concerned stay outstanding.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
import trio
from attrs import evolve

from semindex.engine.backoff import Backoff
from semindex.engine.condition import Condition, Dependency
from semindex.engine.index import NO_VECTORS, Index, Outcome
from semindex.engine.pacing import paced
from semindex.engine.priority import Priority
from semindex.engine.tools import Tools
from semindex.engine.workqueue import Taken
from semindex.model.chunks import Chunk, ChunkedFile, FileProblem, ProblemKind, Signature, UnchangedFile
from semindex.model.errors import (
    ChunkingFailed,
    CollectionMissing,
    EmbedderUnavailable,
    SemindexError,
    StateUnwritable,
    StoreRejected,
    StoreUnavailable,
)
from semindex.model.ids import point_id
from semindex.model.points import chunk_payload
from semindex.model.profiles import ChunkingProfile
from semindex.model.status import FileRecord, FileState
from semindex.ports import Vectors

logger = logging.getLogger(__name__)

WORKERS = 6
"""Groups of files of one workspace that are chunked or embedded at the same time."""
FILES_PER_GROUP = 8
"""Files chunked by one round trip to a worker process."""
POINTS_PER_COMMIT = 240
"""Points after which the settler writes instead of collecting more."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds between tries while a dependency is in trouble: doubling from the first to the longest."""


class Indexer:
    """Works off the queue of one index until it is closed."""

    def __init__(
        self,
        root: str,
        collection: str,
        profile: ChunkingProfile,
        index: Index,
        tools: Tools,
        condition: Condition,
        *,
        prepare: Callable[[], Awaitable[None]],
    ) -> None:
        """Make an indexer.

        ``condition`` is told of every dependency in trouble, of the end of that, and of progress; ``prepare`` is
        awaited before the first write (an overlay's collection is made then).
        """
        self._root = root
        self._collection = collection
        self._profile = profile
        self._index = index
        self._tools = tools
        self._condition = condition
        self._prepare = prepare

    async def run(self) -> None:
        """Work until the queue is closed and everything taken from it is settled."""
        outcomes_in, outcomes_out = trio.open_memory_channel[Outcome](4 * FILES_PER_GROUP)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._settle, outcomes_out)
            with outcomes_in:
                for number in range(WORKERS):
                    lanes = (Priority.EDIT,) if number == 0 else (Priority.EDIT, Priority.BACKFILL)
                    nursery.start_soon(self._work, lanes, outcomes_in.clone())

    async def _work(self, lanes: Sequence[Priority], outcomes: trio.MemorySendChannel[Outcome]) -> None:
        with outcomes:
            backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
            while (taken := await self._index.queue.take(FILES_PER_GROUP, lanes)).paths:
                left = await self._work_on(taken, outcomes)
                if not left:
                    backoff.reset()
                    continue
                for path in left:
                    self._index.queue.give_back(path)
                with trio.move_on_after(backoff.next()):
                    await self._index.queue.closed()

    async def _work_on(self, taken: Taken, outcomes: trio.MemorySendChannel[Outcome]) -> Sequence[str]:
        """Bring a group of files as far as their outcomes; return the paths to try again, after having told why."""
        # Verdicts come and go whenever this waits: which way each path goes is decided once, here.
        leaving = [self._leave(path) for path in taken.paths if path in self._index.verdicts]
        paths = [path for path in taken.paths if path not in self._index.verdicts]
        for outcome in leaving:
            await outcomes.send(outcome)
        try:
            async with self._tools.turns.chunking.turn(taken.priority):
                results = await self._chunk(paths) if paths else []
        except ChunkingFailed as error:
            self._condition.report(Dependency.CHUNKER, str(error))
            return paths
        files: list[ChunkedFile] = []
        for result in results:
            match result:
                case ChunkedFile() if result.file_hash != self._index.inheritable(result.path):
                    files.append(result)
                case ChunkedFile():
                    await outcomes.send(self._inherited(result))
                case UnchangedFile():
                    await outcomes.send(self._unchanged(result))
                case FileProblem():
                    await outcomes.send(self._problem(result))
        return await self._embed(files, taken.priority, outcomes)

    async def _chunk(self, paths: Sequence[str]) -> Sequence[ChunkedFile | UnchangedFile | FileProblem]:
        """Return one result per path. Raises ChunkingFailed."""
        known = {path: known for path in paths if (known := self._index.expected_hash(path, self._profile.version))}
        results = await self._tools.pool.chunk(self._root, paths, self._profile, known)
        if len(results) != len(paths):
            raise ChunkingFailed(f"The chunker gave {len(results)} results for {len(paths)} files.")
        self._condition.report(Dependency.CHUNKER, None)
        return results

    async def _embed(
        self, files: Sequence[ChunkedFile], priority: Priority, outcomes: trio.MemorySendChannel[Outcome]
    ) -> Sequence[str]:
        """Embed chunked files; return the paths of those for which the embedder is not available."""
        chunked = [
            (file, [(chunk, text) async for chunk in paced(file.chunks) if (text := chunk.text.strip())])
            for file in files
        ]
        texts = [text for _, chunks in chunked for _, text in chunks]
        embedded = await self._tools.scheduler.embed_documents(texts, priority)
        self._index.embedded_chunks += embedded.sent
        self._index.reused_chunks += len(embedded.vectors) - embedded.sent
        left, first = list[str](), 0
        for file, chunks in chunked:
            span = range(first, first + len(chunks))
            first += len(chunks)
            error = next((embedded.errors[index] for index in span if index in embedded.errors), None)
            if isinstance(error, EmbedderUnavailable):
                left.append(file.path)
                self._condition.report(Dependency.EMBEDDER, str(error))
            elif error is not None:
                await outcomes.send(self._rejected(file, error))
            else:
                vectors = [embedded.vectors[index] for index in span]
                await outcomes.send(await self._stored(file, [chunk for chunk, _ in chunks], vectors))
        if embedded.sent and not left:
            self._condition.report(Dependency.EMBEDDER, None)
        return left

    def _leave(self, path: str) -> Outcome:
        reason = self._index.verdicts[path]
        return Outcome(path, None if reason is None else FileRecord(path, FileState.SKIPPED, reason=reason))

    def _unchanged(self, file: UnchangedFile) -> Outcome:
        if file.file_hash == self._index.inheritable(file.path):
            return self._inherited(file)
        known = self._index.table.get(file.path)
        if known is not None and self._index.hash_of(file.path) == file.file_hash:
            known = evolve(known, signature=_trusted(file))
        # Otherwise the baseline has moved on while the file was read, and has marked it again.
        return Outcome(file.path, known, keeps_points=True)

    def _inherited(self, file: ChunkedFile | UnchangedFile) -> Outcome:
        record = FileRecord(
            file.path,
            FileState.INDEXED,
            file.file_hash,
            _trusted(file),
            chunking=self._profile.version,
            inherited=True,
        )
        return Outcome(file.path, record)

    async def _stored(self, file: ChunkedFile, chunks: Sequence[Chunk], vectors: Sequence[Vectors]) -> Outcome:
        return Outcome(
            file.path,
            FileRecord(
                file.path,
                FileState.INDEXED,
                file.file_hash,
                _trusted(file),
                len(chunks),
                self._profile.version,
                reason=file.warning,
            ),
            tuple([point_id(chunk.segment_hash) async for chunk in paced(chunks)]),
            np.stack(vectors) if vectors else NO_VECTORS,
            tuple([chunk_payload(file.path, file.file_hash, chunk) async for chunk in paced(chunks)]),
        )

    def _problem(self, problem: FileProblem) -> Outcome:
        if problem.kind is ProblemKind.GONE:
            return Outcome(problem.path, None)
        state = FileState.SKIPPED if problem.kind is ProblemKind.SKIPPED else FileState.FAILED
        return Outcome(
            problem.path, FileRecord(problem.path, state, signature=problem.signature, reason=problem.reason)
        )

    def _rejected(self, file: ChunkedFile, error: SemindexError) -> Outcome:
        return Outcome(file.path, FileRecord(file.path, FileState.FAILED, signature=_trusted(file), reason=str(error)))

    async def _settle(self, outcomes: trio.MemoryReceiveChannel[Outcome]) -> None:
        with outcomes:
            async for first in outcomes:
                batch, points = [first], len(first.ids)
                while points < POINTS_PER_COMMIT:
                    try:
                        batch.append(outcomes.receive_nowait())
                    except (trio.WouldBlock, trio.EndOfChannel):
                        break
                    points += len(batch[-1].ids)
                await self._commit(batch)

    async def _commit(self, batch: Sequence[Outcome]) -> None:
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        while True:
            priority = min(self._index.queue.priority_of(outcome.path) for outcome in batch)
            try:
                async with self._tools.turns.storing.turn(priority):
                    await self._write(batch)
            except (StoreUnavailable, StateUnwritable) as error:
                self._condition.report(Dependency.STORAGE, str(error))
                await trio.sleep(backoff.next())
            except CollectionMissing:
                raise  # no file is at fault: the workspace has to open its collection anew
            except StoreRejected as error:
                await self._isolate(batch, error)
                return
            else:
                break
        for outcome in batch:
            self._index.finish(outcome)
        self._condition.report(Dependency.STORAGE, None)
        self._condition.touch()

    async def _isolate(self, batch: Sequence[Outcome], error: StoreRejected) -> None:
        """Find the outcome that the store refuses; it alone is reported, and its path stays dirty."""
        if len(batch) > 1:
            for outcome in batch:
                await self._commit([outcome])
            return
        logger.error("the store refused the points of one file: %s", error)
        (outcome,) = batch
        signature = None if outcome.record is None else outcome.record.signature
        record = FileRecord(outcome.path, FileState.FAILED, signature=signature, dirty=True, reason=str(error))
        await self._commit([Outcome(outcome.path, record, keeps_points=True)])

    async def _write(self, batch: Sequence[Outcome]) -> None:
        stale = [o.path for o in batch if not o.keeps_points and self._index.has_points(o.path)]
        intents = self._index.begin_write(batch)
        if intents:
            await self._tools.ledger.apply(intents)
            await self._prepare()
        if stale:
            await self._tools.store.delete_files(self._collection, stale)
        if ids := [point for o in batch for point in o.ids]:
            vectors = np.concatenate([o.vectors for o in batch if o.ids])
            payloads = [payload for o in batch for payload in o.payloads]
            await self._tools.store.upsert(self._collection, ids, vectors, payloads)
        await self._tools.ledger.apply(
            [o.record for o in batch if o.record is not None], [o.path for o in batch if o.record is None]
        )


def _trusted(file: ChunkedFile | UnchangedFile) -> Signature | None:
    return file.signature if file.trusted else None
