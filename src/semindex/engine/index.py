"""What one workspace has indexed and what it still has to: the ledger in memory, the work queue, the overlay relation.

Changes are synchronous. In particular a file's hash changes in a baseline, and the file becomes pending in every
overlay above it, within one step: no search can run between the two.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import trio
from attrs import define, evolve, field, frozen

from semindex.engine.filetable import FILES_PER_STEP, FileTable
from semindex.engine.pacing import paced
from semindex.engine.priority import Priority
from semindex.engine.workqueue import WorkQueue
from semindex.model.chunks import Signature
from semindex.model.points import Payload
from semindex.model.status import FileCounts, FileRecord, FileState
from semindex.ports import Vectors

NO_VECTORS: Vectors = np.empty((0, 0), np.float32)


@frozen
class Outcome:
    """What is to become of one taken path: its final record, and the points that go with it."""

    path: str
    record: FileRecord | None
    """None: the file is gone or no longer eligible, so that nothing is left of it."""
    ids: tuple[str, ...] = ()
    vectors: Vectors = NO_VECTORS
    """Shape [len(ids), dimension]."""
    payloads: tuple[Payload, ...] = ()
    keeps_points: bool = False
    """The points stored for the path stay as they are; only the record changes."""


@define(eq=False)
class Index:
    """The state of one workspace's index."""

    table: FileTable = field(factory=FileTable)
    queue: WorkQueue = field(init=False)
    baseline: "Index | None" = None
    """Of the primary checkout, if this workspace is an overlay."""
    overlays: list["Index"] = field(factory=list)
    verdicts: dict[str, str | None] = field(factory=dict)
    """Paths that are to leave the index: None if gone or ineligible, else the reason why they are skipped."""
    moves: int = 0
    """How often the baseline changed under a file that this overlay may have inherited."""
    followed: trio.Event = field(init=False, factory=trio.Event)
    """Every change of the baseline up to now was followed; replaced by a new event when the baseline starts over."""
    embedded_chunks: int = 0
    reused_chunks: int = 0
    settled_files: int = 0
    """How often a file was brought up to date, in this process's life."""
    is_doubted: bool = False
    """A reindex was asked for, and no sweep has queued the files yet."""
    edit_settled: Callable[[float], None] = lambda _: None
    """Told of every edit that became searchable, with the seconds that it took."""
    _counts: Counter[FileState | None] = field(factory=Counter)
    """How many paths are told to be in each state; what is counted of those that are not known means nothing."""
    _shadowed: set[str] = field(factory=set)
    _known_shadowed: frozenset[str] | None = frozenset()
    """The same, until it changes."""

    def __attrs_post_init__(self) -> None:
        self.queue = WorkQueue(self.edit_settled)
        self.followed.set()

    async def start_over(self, table: FileTable) -> None:
        """Begin with these records and nothing outstanding; overlays look again at what they inherited.

        The records are replaced in one step, in which every overlay is put in doubt as a whole. They may be many, so
        that its files follow in steps, and until they have, no answer from it counts as fresh.
        """
        await trio.lowlevel.checkpoint()
        self.table = table
        self.queue.close()
        self.queue = WorkQueue(self.edit_settled)
        self._counts = Counter(table.states)
        self.verdicts = {}
        overlays = list(self.overlays)
        for overlay in overlays:
            overlay.moves += 1
            if overlay.followed.is_set():
                overlay.followed = trio.Event()
        for overlay in overlays:
            followed = overlay.followed
            async for record in paced(list(overlay.table), FILES_PER_STEP):
                if record.inherited and record.file_hash != self.hash_of(record.path):
                    overlay.follow_baseline(record.path)
            followed.set()

    def counts(self) -> FileCounts:
        """Return how many files are in each state; whatever is outstanding is pending, whatever is known of it."""
        return FileCounts(
            indexed=self._counts[FileState.INDEXED],
            pending=self._counts[FileState.PENDING],
            skipped=self._counts[FileState.SKIPPED],
            failed=self._counts[FileState.FAILED],
        )

    def state_of(self, path: str) -> FileState | None:
        """Return the state of a file as it is told, None if the file is not known."""
        record = self.table.get(path)
        if record is None:
            return None
        return FileState.PENDING if path in self.queue else record.state

    def mark(self, path: str, priority: Priority) -> None:
        """Line up a path that may have changed."""
        with self._recounting(path):
            self.queue.mark(path, priority)
        self._look_for_shadow(path)

    def expel(self, path: str, reason: str | None, priority: Priority) -> None:
        """Line up a path to leave the index: as skipped if there is a reason, else without a trace."""
        self.verdicts[path] = reason
        self.mark(path, priority)

    def readmit(self, path: str) -> bool:
        """Let a path stay in the index; return whether it was to leave."""
        was_leaving = path in self.verdicts
        self.verdicts.pop(path, None)
        return was_leaving

    def hash_of(self, path: str) -> str | None:
        """Return the hash of the text whose points this index surely holds (itself, not through a baseline)."""
        record = self.table.get(path)
        if record is None or record.state is not FileState.INDEXED or record.dirty or record.inherited:
            return None
        return record.file_hash

    def inheritable(self, path: str) -> str | None:
        """Return the hash that the baseline serves for a path."""
        return self.baseline.hash_of(path) if self.baseline is not None else None

    def expected_hash(self, path: str, chunking: str) -> str | None:
        """Return the hash with which a file needs no chunking: that of its own points, else the baseline's."""
        record = self.table.get(path)
        own = self.hash_of(path)
        if own is not None and record is not None and record.chunking == chunking:
            return own
        return self.inheritable(path)

    def needs_work(self, path: str, signature: Signature, chunking: str, *, retry_failed: bool) -> bool:
        """Say whether a file that has this signature now has to be read."""
        record = self.table.get(path)
        if record is None or record.state is FileState.PENDING or record.signature != signature:
            return True
        if record.state is FileState.FAILED:
            return retry_failed
        if record.dirty:
            return True
        if record.state is FileState.SKIPPED:
            return False
        return record.chunking != chunking or record.inherited != (record.file_hash == self.inheritable(path))

    def note_pending(self, path: str, priority: Priority) -> None:
        """Record that a file has to be read, and line it up."""
        if path not in self.table:
            self._put(FileRecord(path, FileState.PENDING))
        self.mark(path, priority)

    def begin_write(self, outcomes: Sequence[Outcome]) -> list[FileRecord]:
        """Mark records whose points are about to be replaced; return them, to be made durable before any write."""
        intents = [
            evolve(self.table.get(outcome.path) or FileRecord(outcome.path, FileState.PENDING), dirty=True)
            for outcome in outcomes
            if not outcome.keeps_points and (outcome.ids or self.has_points(outcome.path))
        ]
        self.take_over(intents)
        return intents

    def has_points(self, path: str) -> bool:
        """Say whether the store may hold points of this path."""
        record = self.table.get(path)
        return record is not None and (record.dirty or record.chunks > 0)

    def finish(self, outcome: Outcome) -> None:
        """Take over the final record of a path that was written, and settle it."""
        if outcome.record is not None:
            self._count_inherited(outcome.record)
            self._put(outcome.record)
        else:
            with self._recounting(outcome.path):
                self.table.forget(outcome.path)
            self._tell_overlays(outcome.path)
        with self._recounting(outcome.path):
            is_settled = self.queue.settle(outcome.path)
        self._look_for_shadow(outcome.path)
        if is_settled:
            self.settled_files += 1
            self.verdicts.pop(outcome.path, None)

    def note_skipped(self, path: str, reason: str) -> None:
        """Record a file that the walk leaves out and that has no points."""
        known = self.table.get(path)
        if known is None or known.state is not FileState.SKIPPED or known.reason != reason:
            self._put(FileRecord(path, FileState.SKIPPED, reason=reason))

    def take_over(self, records: Iterable[FileRecord]) -> None:
        """Replace records, and nothing else."""
        for record in records:
            self._put(record)

    async def doubt_everything(self) -> None:
        """Have every indexed file chunked anew by the next comparison with the disk."""
        self.is_doubted = True
        async for record in paced(list(self.table), FILES_PER_STEP):
            current = self.table.get(record.path)
            if current is not None and current.state is FileState.INDEXED:
                self.take_over([evolve(current, chunking="")])

    def attach(self, overlay: "Index") -> None:
        """Tell an overlay of every change from now on."""
        overlay.baseline = self
        overlay._shadowed, overlay._known_shadowed = set(), None
        overlay.followed.set()
        self.overlays.append(overlay)

    async def find_shadows(self) -> None:
        """Look which files of the baseline this overlay does not inherit; from then on every change keeps that true."""
        if self.baseline is not None:
            async for path in paced(self.baseline.table.paths(), FILES_PER_STEP):
                self._look_for_shadow(path)

    def detach(self, overlay: "Index") -> None:
        """Tell an overlay nothing more."""
        if overlay in self.overlays:
            self.overlays.remove(overlay)

    @property
    def shadowed(self) -> frozenset[str]:
        """Return, for an overlay, the files of the baseline that it surely does not inherit, as far as is known.

        Those that are outstanding are not among them: the disk may say by now that it does.
        """
        if self._known_shadowed is None:
            self._known_shadowed = frozenset(self._shadowed)
        return self._known_shadowed

    @contextmanager
    def _recounting(self, path: str) -> Iterator[None]:
        """Count a path anew whose record or place in the queue is changed inside."""
        self._counts[self.state_of(path)] -= 1
        yield
        self._counts[self.state_of(path)] += 1

    def _put(self, record: FileRecord) -> None:
        before = self.hash_of(record.path)
        with self._recounting(record.path):
            self.table.put(record)
        self._look_for_shadow(record.path)
        if self.hash_of(record.path) != before:
            self._tell_overlays(record.path)

    def follow_baseline(self, path: str) -> None:
        """Look again at a file whose hash changed in the baseline; what this index held of it may be gone there."""
        record = self.table.get(path)
        if record is None:
            self._look_for_shadow(path)
            return
        if record.inherited or path in self.queue:
            self.moves += 1
        self.mark(path, Priority.EDIT)

    def _look_for_shadow(self, path: str) -> None:
        if self.baseline is None:
            return
        record = self.table.get(path)
        is_inherited = record is not None and record.inherited
        is_shadowed = path in self.baseline.table and not is_inherited and path not in self.queue
        if is_shadowed is not (path in self._shadowed):
            (self._shadowed.add if is_shadowed else self._shadowed.discard)(path)
            self._known_shadowed = None

    def _tell_overlays(self, path: str) -> None:
        for overlay in self.overlays:
            overlay.follow_baseline(path)

    def _count_inherited(self, record: FileRecord) -> None:
        known = self.table.get(record.path)
        served = None if self.baseline is None else self.baseline.table.get(record.path)
        if record.inherited and served is not None and not (known is not None and known.inherited):
            self.reused_chunks += served.chunks
