"""Who may use a collection of the embedded store: many calls at once, or one alone that copies or replaces it."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from semindex.model.errors import StoreUnavailable


class Gates:
    """One gate per collection, open to calls unless someone asked to be alone with it."""

    def __init__(self, patience: float) -> None:
        """Begin with every gate open; ``patience`` is how many seconds a call waits before one that is shut."""
        self._patience = patience
        self._inside: Counter[str] = Counter()
        self._shut: dict[str, trio.Event] = {}
        self._emptied: dict[str, trio.Event] = {}

    @asynccontextmanager
    async def shared(self, collection: str) -> AsyncIterator[None]:
        """Be inside together with others, after whoever is alone there has left. Raises StoreUnavailable."""
        with trio.move_on_after(self._patience) as waiting:
            while (opened := self._shut.get(collection)) is not None:
                await opened.wait()
        if waiting.cancelled_caught:
            raise StoreUnavailable("The embedded vector store is busy with this collection; try again.")
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
