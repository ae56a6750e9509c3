"""Long loops on the event loop, cut into steps short enough for everybody else."""

from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

import trio

T = TypeVar("T")

ITEMS_PER_STEP = 200
"""Chunks or files handled between two checkpoints: a millisecond or two of hashing or building payloads."""


async def paced(items: Iterable[T], step: int = ITEMS_PER_STEP) -> AsyncIterator[T]:
    """Yield the items, with a checkpoint before each ``step`` of them; their source must not change meanwhile."""
    for number, item in enumerate(items):
        if number % step == 0:
            await trio.lowlevel.checkpoint()
        yield item
