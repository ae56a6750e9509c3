"""What the parts of a workspace work with."""

from attrs import frozen

from semindex.engine.scheduler import EmbeddingScheduler
from semindex.engine.turns import BuildTurns
from semindex.ports import ChunkerPool, Ledger, VectorStore


@frozen
class Tools:
    """The adapters of one workspace, and what it shares with the whole cell."""

    pool: ChunkerPool
    scheduler: EmbeddingScheduler
    store: VectorStore
    ledger: Ledger
    """Of this workspace alone."""
    turns: BuildTurns
