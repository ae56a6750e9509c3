"""Who may use a collection of the embedded store: many calls at once, or one optimiser alone."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Gates:
    """One gate per collection, open to calls unless someone asked to be alone with it."""

    def __init__(self) -> None:
        """Begin with every gate open."""
        self._inside: Counter[str] = Counter()
        self._shut: dict[str, trio.Event] = {}
        self._emptied: dict[str, trio.Event] = {}

    @asynccontextmanager
    async def shared(self, collection: str) -> AsyncIterator[None]:
        """Be inside together with others, after whoever is alone there has left."""
        while (opened := self._shut.get(collection)) is not None:
            await opened.wait()
        self._inside[collection] += 1
        try:
            yield
        finally:
            self._inside[collection] -= 1
            if not self._inside[collection]:
                del self._inside[collection]
                if collection in self._emptied:
                    self._emptied[collection].set()

    @asynccontextmanager
    async def alone(self, collection: str) -> AsyncIterator[None]:
        """Let nobody else in, wait until those inside have left, and be alone."""
        while (opened := self._shut.get(collection)) is not None:
            await opened.wait()
        opened = self._shut[collection] = trio.Event()
        try:
            if self._inside[collection]:
                self._emptied[collection] = trio.Event()
                await self._emptied[collection].wait()
            yield
        finally:
            self._emptied.pop(collection, None)
            del self._shut[collection]
            opened.set()
