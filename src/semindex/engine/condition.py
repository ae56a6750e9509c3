"""What a workspace says of itself: phase, errors and times, and the state and message that follow from them.

The state is computed from facts whenever it is asked for, so that it cannot drift away from them.
"""

import logging
from datetime import datetime
from enum import Enum, auto

from semindex.clock import utc_now
from semindex.engine.index import Index
from semindex.engine.revision import Revision
from semindex.engine.workqueue import WorkQueue
from semindex.model.errors import NotReady, SemindexError, StoreUnavailable
from semindex.model.status import State, WorkspaceStatus

logger = logging.getLogger(__name__)

FAILED_SHARE = 0.1
"""A build in which a larger share of the files failed has failed as a whole."""

SHOWN_FAILURES = 10
"""Failed files that a status names."""


class Phase(Enum):
    """How far a workspace has come since its present life began."""

    STANDBY = auto()
    """Waiting for its baseline."""
    OPENING = auto()
    INDEXING = auto()
    """Comparing the tree with the index for the first time, and working off the differences."""
    READY = auto()


class Dependency(Enum):
    """What work may have to wait for."""

    CHUNKER = auto()
    EMBEDDER = auto()
    STORAGE = auto()
    """The vector store and the ledger."""


class Condition:
    """The facts; whoever changes one touches ``changes``."""

    def __init__(self, root: str, changes: Revision) -> None:
        self._root = root
        self.phase = Phase.OPENING
        self.is_built = False
        """A build was finished at some time: the index is whole but for what changed since."""
        self.error: SemindexError | None = None
        """Why the workspace does not work now."""
        self.change: str | None = None
        """What was configured anew, and is being carried out."""
        self.troubles: dict[Dependency, str] = {}
        """What work is waiting for, the oldest first."""
        self.watch_trouble: str | None = None
        """Why changes of the tree are not heard of at once."""
        self.verdict: str | None = None
        """Why the last build counts as failed."""
        self.updated_at = utc_now()
        self.completed_at: datetime | None = None
        self._changes = changes

    def enter(self, phase: Phase) -> None:
        """Take note of a new phase."""
        self.phase = phase
        self.touch()

    def fail(self, error: SemindexError) -> None:
        """Take note of what keeps the workspace from working, and log it once."""
        if str(error) != str(self.error):
            logger.warning("%s: %s", self._root, error)
        self.error = error
        self.touch()

    def recover(self) -> None:
        """Take note that it works."""
        if self.error is not None:
            logger.info("%s: works again", self._root)
        self.error = None
        self.touch()

    def begin(self, *, is_built: bool, change: str | None) -> None:
        """Take note that the index is open, whether it was once whole, and what was configured anew since."""
        self.is_built, self.change, self.error = is_built, change, None
        self.troubles.clear()
        self.enter(Phase.INDEXING)

    def report(self, dependency: Dependency, trouble: str | None) -> None:
        """Take note that a dependency is in trouble, or that it works."""
        if trouble == self.troubles.get(dependency):
            return
        if trouble is None:
            del self.troubles[dependency]
        else:
            logger.warning("%s: the indexing is held up: %s", self._root, trouble)
            self.troubles[dependency] = trouble
        self.touch()

    def rest(self) -> None:
        """Take note that nothing is outstanding, so nothing is waited for: what works may not have been asked again."""
        if self.troubles:
            self.troubles.clear()
            self.touch()

    def report_watch(self, watch_trouble: str | None) -> None:
        """Take note of why the tree cannot be watched, or of the end of that."""
        self.watch_trouble = watch_trouble
        self.touch()

    def snapshot(self, index: Index) -> WorkspaceStatus:
        """Return all that is told of a workspace."""
        return WorkspaceStatus(
            path=self._root,
            state=self.state(index.queue),
            message=self.message(index.queue),
            files=index.counts(),
            processed=index.queue.settled_in_run,
            total=index.queue.marked_in_run,
            chunks=index.table.chunks,
            embedded_chunks=index.embedded_chunks,
            reused_chunks=index.reused_chunks,
            last_error=self.worst,
            failed_files=index.table.failures(SHOWN_FAILURES),
            lag=index.queue.lag(),
            updated_at=self.updated_at,
            completed_at=self.completed_at,
        )

    @property
    def worst(self) -> str | None:
        """Return what people should know first of all that is wrong."""
        return self._failure or self._trouble or self.watch_trouble

    @property
    def _trouble(self) -> str | None:
        return next(iter(self.troubles.values()), None)

    @property
    def _failure(self) -> str | None:
        return self.verdict if self.error is None else str(self.error)

    def judge(self, verdict: str | None) -> None:
        """Take note of whether a build, in which nothing is outstanding any more, counts as failed."""
        self.verdict = verdict
        self.touch()

    def complete(self) -> None:
        """Take note that everything that was outstanding is settled."""
        self.completed_at, self.is_built, self.change = utc_now(), True, None
        self.enter(Phase.READY)

    def touch(self) -> None:
        """Say that something changed."""
        self.updated_at = utc_now()
        self._changes.bump()

    def state(self, queue: WorkQueue) -> State:
        """Return the state that people and machines see."""
        if self._failure:
            return State.ERROR
        if self.phase is Phase.STANDBY:
            return State.STANDBY
        return State.INDEXED if self.phase is Phase.READY and not queue else State.INDEXING

    def message(self, queue: WorkQueue) -> str:
        """Return one sentence that goes with the state."""
        match self.state(queue):
            case State.ERROR:
                return self._failure or ""
            case State.STANDBY:
                return "Waiting for the primary worktree index to become available."
            case State.INDEXED:
                return "Index up-to-date."
            case State.INDEXING if self._trouble:
                return f"{self._trouble} Trying again."
            case State.INDEXING:
                return " ".join(filter(None, (self.change, _progress(queue))))

    def require_searchable(self, queue: WorkQueue, *, is_overlay: bool) -> None:
        """Raise NotReady unless a search can be answered; an overlay has to be compared with its baseline first."""
        state = self.state(queue)
        if isinstance(self.error, StoreUnavailable):
            raise StoreUnavailable(str(self.error))
        if state in (State.STANDBY, State.ERROR) or self.phase is Phase.OPENING:
            raise NotReady(f"Code index is not ready for search. Current state: {state}. {self.message(queue)}")
        if is_overlay and self.phase is not Phase.READY:
            raise NotReady("Worktree index reconciliation is not complete. Try again in a moment.")


def _progress(queue: WorkQueue) -> str:
    if not queue:
        return "Checking for new or modified files..."
    share = round(100 * queue.settled_in_run / max(1, queue.marked_in_run))
    return f"Indexed {queue.settled_in_run} / {queue.marked_in_run} files ({share}%)."


def build_verdict(index: Index) -> str | None:
    """Return why a build that has come to its end counts as failed, None if it does not."""
    files = index.counts()
    if files.failed <= FAILED_SHARE * (files.indexed + files.failed):
        return None
    path, reason = index.table.failures(1)[0]
    return f"{files.failed} of {files.discovered} files could not be indexed, for example {path}: {reason}"
