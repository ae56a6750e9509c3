"""A cell as its doors see it: the calls, the status of the whole, and waiting for a change."""

import re
import uuid
from collections.abc import Callable
from datetime import datetime

import trio
from attrs import define, field

from semindex.cell.inspection import Inspection
from semindex.cell.leases import Leases
from semindex.cell.operations import Operations
from semindex.cell.searches import Searches
from semindex.cell.tokens import SearchTokens
from semindex.clock import utc_now
from semindex.engine.revision import Revision
from semindex.engine.scheduler import EmbeddingScheduler
from semindex.janitor import Janitor
from semindex.model.answers import CellPhase, CellStatus, DependencyStatus
from semindex.model.limits import MAX_HOLD
from semindex.ports import EmbeddingCache

_COUNTER = re.compile(r"[0-9]{1,18}")
_MESSAGES = {
    CellPhase.STARTING: "Reading the registrations.",
    CellPhase.READY: "Ready.",
    CellPhase.STOPPING: "Stopping; accepted work is brought to its end.",
}


@define(kw_only=True)
class Cell:
    """Everything that HTTP, MCP and RPC need."""

    leases: Leases
    searches: Searches
    operations: Operations
    inspection: Inspection
    search_tokens: SearchTokens
    janitor: Janitor
    changes: Revision
    scheduler: EmbeddingScheduler
    cache: EmbeddingCache
    embedder_health: Callable[[], DependencyStatus]
    store_health: Callable[[], DependencyStatus]
    watchers: Callable[[], int] = lambda: 0
    metrics: Callable[[CellStatus], bytes] = lambda _: b""
    """Returns the metrics as text, given the status of now."""
    missing_grammars: tuple[str, ...] = ()
    is_restored: bool = False
    is_stopping: bool = False
    mcp_sessions: Callable[[], int] = lambda: 0
    boot: str = field(factory=lambda: uuid.uuid4().hex)
    started_at: datetime = field(factory=utc_now)

    @property
    def revision(self) -> str:
        """Return what to give back as ``since`` when waiting: the boot, and a counter of its changes."""
        return f"{self.boot}-{self.changes.value}"

    async def wait(self, since: str | None, seconds: float) -> None:
        """Return once something changed after that revision, at once for one of another boot, or when the time is up.

        While the cell is stopping nobody is kept waiting.
        """
        boot, _, counter = (self.revision if since is None else since).rpartition("-")
        if boot != self.boot or not _COUNTER.fullmatch(counter) or self.is_stopping:
            await trio.lowlevel.checkpoint()
            return
        with trio.move_on_after(min(seconds, MAX_HOLD)):
            await self.changes.beyond(min(int(counter), self.changes.value))

    def begin_stopping(self) -> None:
        """Say that the cell is about to end: whoever waits for a change is answered at once."""
        self.is_stopping = True
        self.changes.bump()

    def phase(self) -> tuple[CellPhase, str]:
        """Return where the cell stands, and a sentence about it."""
        if self.is_stopping:
            return CellPhase.STOPPING, _MESSAGES[CellPhase.STOPPING]
        if not self.is_restored:
            return CellPhase.STARTING, _MESSAGES[CellPhase.STARTING]
        faults = [
            f"The {name} does not answer: {health.last_error}"
            for name, health in (("embedder", self.embedder_health()), ("vector store", self.store_health()))
            if not health.reachable
        ]
        if self.missing_grammars:
            faults.append(f"No grammar for {', '.join(self.missing_grammars)}: such files are chunked by lines.")
        if faults:
            return CellPhase.DEGRADED, " ".join(faults)
        return CellPhase.READY, _MESSAGES[CellPhase.READY]

    async def status(self) -> CellStatus:
        """Return the status of the whole cell."""
        counters = await self.cache.counters()
        phase, message = self.phase()
        statuses = tuple(self.leases.statuses())
        updates = [status.workspace.updated_at for status in statuses if status.workspace.updated_at is not None]
        paths = {status.registration.path for status in statuses}
        return CellStatus(
            phase=phase,
            message=message,
            started_at=self.started_at,
            updated_at=max(updates, default=self.started_at),
            revision=self.revision,
            registrations=statuses,
            active_workspaces=sum(self.leases.registry.workspace_of(path) is not None for path in paths),
            watchers=self.watchers(),
            queue_depth=self.scheduler.queued,
            mcp_sessions=self.mcp_sessions(),
            cache_hits=counters.hits,
            cache_misses=counters.misses,
            cache_bytes=counters.bytes,
            embedder=self.embedder_health(),
            store=self.store_health(),
            missing_grammars=self.missing_grammars,
            orphans=self.janitor.count,
        )
