"""How much of what the whole cell shares first builds may hold at once.

The threads for files, the chunkers and the store serve whoever came first. Twenty worktrees that are registered at once
would fill their queues, and an edit elsewhere would wait behind all of it. So builds wait for their turn before those
queues, and whoever edits or searches finds in them at most what is under way. Embedding has a queue of its own, by
priority (see :mod:`semindex.engine.scheduler`).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from attrs import field, frozen

from semindex.engine.workqueue import Priority


@frozen
class BuildTurns:
    """The turns of a cell; they are taken in the order in which they are asked for."""

    scanning: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(1))
    """Looking at a whole tree for the first time."""
    chunking: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(2))
    """Having a group of files chunked."""
    storing: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(1))
    """Writing what was made of some files."""


@asynccontextmanager
async def in_turn(turns: trio.CapacityLimiter, priority: Priority) -> AsyncIterator[None]:
    """Do something in its turn; only back-fill waits for it."""
    if priority is not Priority.BACKFILL:
        yield
        return
    async with turns:
        yield
