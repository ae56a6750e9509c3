"""How much of what the whole cell shares first builds may hold at once.

The threads for files, the chunkers and the store serve whoever came first. Twenty worktrees that are registered at
once would fill their queues, and an edit elsewhere would wait behind all of it. Builds therefore wait for a turn before
they enter those queues, so that an edit or a search waits at most for the build work already under way. Embedding has a
queue of its own, by priority (see :mod:`semindex.engine.scheduler`).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from attrs import field, frozen

from semindex.engine.priority import Priority

LONGEST_TURN = 2.0
"""Seconds after which a turn counts as over although it is not: a build that hangs holds up no other."""


class Turns:
    """A few turns at a time."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._begun: dict[object, float] = {}
        self._waiting = trio.lowlevel.ParkingLot()

    @asynccontextmanager
    async def turn(self, priority: Priority) -> AsyncIterator[None]:
        """Do something in turn; only back-fill has to wait for it."""
        if priority is not Priority.BACKFILL:
            yield
            return
        while len(counting := self._counting()) >= self._number:
            with trio.move_on_at(min(counting) + LONGEST_TURN):
                await self._waiting.park()
        this = object()
        self._begun[this] = trio.current_time()
        try:
            yield
        finally:
            del self._begun[this]
            self._waiting.unpark()

    def _counting(self) -> list[float]:
        """Return when each turn began that is not over."""
        over = trio.current_time() - LONGEST_TURN
        return [begun for begun in self._begun.values() if begun > over]


@frozen
class BuildTurns:
    """The turns of a cell."""

    scanning: Turns = field(factory=lambda: Turns(1))
    """To look at a whole tree for the first time."""
    chunking: Turns = field(factory=lambda: Turns(2))
    """To have a group of files chunked; a cell has one for each chunker."""
    storing: Turns = field(factory=lambda: Turns(1))
    """To write what was made of some files."""
