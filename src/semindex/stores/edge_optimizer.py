"""When the search structures of a collection of the embedded store are built, and how: on a copy, in another process.

Building takes a minute for 100,000 points, in which the engine lets nobody in. So a copy is built, which then takes the
place of the collection; that is left alone only for as long as copying takes, and again for changing places. A write
makes the copy worthless, so it ends the attempt; the next one comes after a pause that doubles.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import trio
from attrs import field, frozen

from semindex.model.errors import StoreUnavailable
from semindex.shielding import shielded
from semindex.stores.edge_connection import open_lifeline, worker_command
from semindex.stores.edge_gates import Gates
from semindex.stores.edge_protocol import Settings

LARGE_VECTORS = 64 * 1024 * 1024
"""Bytes of vectors above which looking at each one becomes slower than a walk through a graph is worth."""

LARGE_POINTS = 50_000

STALE_SHARE = 0.2
"""Share of a collection that may lack a graph, or be dead weight, before it is optimised again (the engine's own
threshold for the latter)."""

DEAD_POINTS = 1_000
"""Removed points below which the engine does not clean up."""

OPTIMIZE_DEADLINE = 1800.0
"""Seconds; 100,000 points of dimension 384 took 96 on two busy cores."""

COPY_DEADLINE = 20.0
"""Seconds for copying a collection, in which nobody uses it: fewer than a call waits for it."""

FIRST_PAUSE, LONGEST_PAUSE = 30.0, 1800.0
"""Seconds without a write before the next attempt, once one failed or was given up; doubling from first to longest."""

ABANDON_GRACE = 10.0
"""Seconds for deleting a copy that is not needed."""


def worth_optimizing(points: int, indexed: int, removed: int, dimension: int) -> bool:
    """Say whether a collection is large and mostly not in a graph, or holds too many dead points.

    ``indexed`` counts the points of graphs with those that were removed from them since.
    """
    if removed >= DEAD_POINTS and removed > STALE_SHARE * (points + removed):
        return True
    large = points > LARGE_POINTS or points * dimension * 4 > LARGE_VECTORS
    return large and points - max(indexed - removed, 0) > STALE_SHARE * points


class Optimizer:
    """Optimises copies of collections, one at a time: searches go on meanwhile, and whoever writes has it given up."""

    def __init__(self, settings: Settings, gates: Gates, call: Callable[[str, str], Awaitable[Any]]) -> None:
        """``call`` makes a call of the worker, given an operation and a collection."""
        self._settings = settings
        self._gates = gates
        self._call = call
        self._turn = trio.Lock()
        self._attempts: dict[str, _Attempt] = {}
        self._pauses: dict[str, float] = {}

    async def optimize(self, collection: str) -> None:
        """Optimise a collection if it is worth it and nobody writes to it meanwhile. Raises StoreUnavailable."""
        if collection in self._attempts:
            return
        attempt = self._attempts[collection] = _Attempt()
        try:
            with attempt.scope:
                await trio.sleep(self._pauses.get(collection, 0.0))
                await self._attempt(collection)
        finally:
            del self._attempts[collection]
            attempt.over.set()

    async def forget(self, collection: str) -> None:
        """Have an attempt given up, and know nothing of the collection any more: it is about to be deleted."""
        await self.give_way(collection)
        self._pauses.pop(collection, None)

    async def give_way(self, collection: str) -> None:
        """Have an attempt to optimise this collection given up, and wait until nothing is left of it."""
        if (attempt := self._attempts.get(collection)) is not None:
            attempt.scope.cancel(reason="the collection is written to")
            await attempt.over.wait()

    async def _attempt(self, collection: str) -> None:
        async with self._turn:
            async with self._gates.shared(collection):
                is_worth_it = worth_optimizing(**await self._call("gauge", collection))
            if is_worth_it:
                self._pauses[collection] = min(2 * self._pauses.get(collection, FIRST_PAUSE / 2), LONGEST_PAUSE)
                async with AsyncExitStack() as afterwards:
                    afterwards.push_async_callback(self._abandon, collection)
                    await self._on_a_copy(collection)
            self._pauses.pop(collection, None)

    async def _on_a_copy(self, collection: str) -> None:
        async with self._gates.alone(collection):
            points = (await self._call("gauge", collection))["points"]
            await self._call("close", collection)
            await _run(self._settings, "copy", collection, COPY_DEADLINE)
        counted = await _run(self._settings, "optimize", collection, OPTIMIZE_DEADLINE)
        if counted != str(points):
            raise StoreUnavailable(f"The optimised copy of {collection} holds {counted} points instead of {points}.")
        async with self._gates.alone(collection):
            await self._call("replace", collection)

    async def _abandon(self, collection: str) -> None:
        with shielded(ABANDON_GRACE, f"deleting the copy of {collection}"):
            await self._call("abandon", collection)


@frozen
class _Attempt:
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    over: trio.Event = field(factory=trio.Event)


async def _run(settings: Settings, mode: str, collection: str, deadline: float) -> str:
    """Run a process and return what it prints. Cancelling ends it. Raises StoreUnavailable."""
    with open_lifeline() as lifeline:
        try:
            with trio.fail_after(deadline):
                done = await trio.run_process(
                    worker_command(mode, lifeline, settings, collection),
                    capture_stdout=True,
                    capture_stderr=True,
                    check=False,
                    pass_fds=[lifeline],
                    start_new_session=True,
                )
        except trio.TooSlowError:
            message = f"The collection {collection} could not be optimised: the {mode} took longer than {deadline:g} s."
            raise StoreUnavailable(message) from None
        except OSError as error:
            raise StoreUnavailable(f"The collection {collection} could not be optimised: {error}.") from None
    if done.returncode < 0:
        message = f"The collection {collection} could not be optimised: signal {-done.returncode} ended the {mode}."
        raise StoreUnavailable(message)
    if done.returncode:
        last_words = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise StoreUnavailable(f"The collection {collection} could not be optimised: {last_words}.")
    return done.stdout.decode()
