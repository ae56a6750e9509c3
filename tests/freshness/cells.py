"""Cells on real files that embed at no cost, count what they embed, and hear of changes at once, late or never."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import Enum
from pathlib import Path

from semindex.cell.cell import Cell
from semindex.embedders.hashing import HashingEmbedder
from semindex.files.watching.source import open_event_source
from semindex.model.profiles import Role
from semindex.ports import Embedder, EventSource
from semindex.testing.cells import config_below, embedding_with, running_cell
from semindex.testing.watch import DelayedSource, MemorySource

DELAY = 5.0
"""Seconds by which late events are late."""


class Watching(Enum):
    """How a cell hears of changes."""

    ON = "on"
    LATE = "late"
    OFF = "off"

    @asynccontextmanager
    async def source(self, overflowed: Callable[[], object]) -> AsyncIterator[EventSource]:
        """Open the event source of a cell, as the real one is opened."""
        if self is Watching.OFF:
            yield MemorySource()
            return
        async with open_event_source(overflowed=overflowed) as source:
            yield DelayedSource(source, DELAY) if self is Watching.LATE else source


class CountingEmbedder(HashingEmbedder):
    """Tells apart the words of these tests, and counts."""

    def __init__(self) -> None:
        super().__init__(dimension=512)

    @property
    def documents(self) -> list[str]:
        """Return every text of a chunk that was ever sent."""
        return [text for call in self.calls if call.role is Role.DOCUMENT for text in call.texts]


@asynccontextmanager
async def cheap_cell(
    home: Path, *roots: Path, embedder: Embedder | None = None, watching: Watching = Watching.ON
) -> AsyncIterator[Cell]:
    """Run a cell that keeps everything below a directory; ``embedder`` may outlive it, to count over several lives."""
    opened = embedding_with(embedder or CountingEmbedder())
    async with running_cell(config_below(home, *roots), embedder=opened, events=watching.source) as cell:
        yield cell
