"""What one workspace does with hints of change, so that edits are searchable soon although nobody asked for a sweep.

Owns the patience: hints are collected until it has been quiet for a moment, but not for long, so that a stream that
never ends is served too. A hint is looked at on disk and decides nothing by itself, and none is needed for a right
answer: a search verifies every hit, and compares the tree with the index first if it is to be fresh. That is why a path
is not blocked when its event arrives: its hits are withheld from the moment the file changes.

The watcher never ends its workspace and never falls silent: what it cannot do becomes its
trouble, and sweeps take over.
"""

import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

import trio

from semindex.engine.backoff import Backoff
from semindex.model.errors import SemindexError, first_of
from semindex.ports import Changes, EventSource, Watch

logger = logging.getLogger(__name__)

QUIET = 0.15
"""Default for the seconds of quiet after which hints are looked at."""
LONGEST = 1.0
"""Seconds after which they are looked at even without quiet; twice the quiet, if that is longer."""
MAX_PATHS = 1000
"""Paths collected in one go; more are worth a sweep, and memory stays bounded."""
SWEEPS_IN_A_ROW = 5
"""Sweeps that new directories may cause one after another before they have to take their time."""
SWEEP_PAUSE = 5.0
"""Seconds between two sweeps from then on: a program that keeps making directories must not cause endless sweeps."""
FIRST_RETRY, LONGEST_RETRY = 2.0, 60.0
"""Seconds before a failed watch is opened again, each time with a sweep: doubling from the first to the longest."""


class Watcher:
    """Watches the tree of one workspace while it runs."""

    def __init__(
        self,
        source: EventSource | None,
        root: str,
        look: Callable[[Collection[str]], Awaitable[None]],
        sweep: Callable[[], Awaitable[None]],
        report: Callable[[str | None], None],
        quiet: float = QUIET,
    ) -> None:
        """Make a watcher; without a source it does nothing.

        ``look`` compares these files alone with the index, ``sweep`` the whole tree; both raise SemindexError if that
        is not possible now. ``quiet`` is in seconds. ``report`` is called with one sentence when changes are not heard
        of at once, and with None when they are again.
        """
        self._source = source
        self._root = root
        self._look = look
        self._sweep = sweep
        self._report = report
        self._trouble: str | None = None
        self._quiet = quiet
        self._directories: Collection[str] = ()
        self._swept = trio.Event()

    def saw(self, directories: Collection[str]) -> None:
        """Take over which directories the latest sweep entered; they are followed as soon as possible."""
        self._directories = directories
        self._swept.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        if self._source is not None:
            await self._watch(self._source)

    async def _watch(self, source: EventSource) -> None:
        backoff = Backoff(FIRST_RETRY, LONGEST_RETRY)
        while True:
            began = trio.current_time()
            try:
                async with source.watch(self._root) as watch, trio.open_nursery() as nursery:
                    nursery.start_soon(self._follow, watch)
                    nursery.start_soon(self._listen, watch)
            except* Exception as group:
                logger.exception("a watch failed")
                self._tell(f"Watching failed with an unexpected {type(first_of(group)).__name__}; see the log.")
            if trio.current_time() - began > LONGEST_RETRY:
                backoff.reset()
            await trio.sleep(backoff.next())
            await self._sweep_if_possible()

    async def _follow(self, watch: Watch) -> None:
        """Follow what each sweep entered, and look again into what was not watched while it went on."""
        sweeps = 0
        while True:
            await self._swept.wait()
            self._swept = trio.Event()
            is_new = await watch.follow(self._directories)
            self._tell(watch.trouble)
            sweeps = sweeps + 1 if is_new else 0
            if is_new:
                if sweeps > SWEEPS_IN_A_ROW:
                    await trio.sleep(SWEEP_PAUSE)
                await self._sweep_if_possible()

    async def _listen(self, watch: Watch) -> None:
        while True:
            changes = await self._collect(watch)
            if changes.rescan:
                await self._sweep_if_possible()
                continue
            try:
                await self._look(changes.paths)
            except SemindexError:
                await self._sweep_if_possible()

    async def _collect(self, watch: Watch) -> Changes:
        """Wait for a change, and for what comes with it."""
        changes = await watch.changes()
        latest = trio.current_time() + max(LONGEST, 2 * self._quiet)
        while True:
            with trio.move_on_at(min(latest, trio.current_time() + self._quiet)) as waiting:
                changes = _joined(changes, await watch.changes())
            if waiting.cancelled_caught:
                return changes

    async def _sweep_if_possible(self) -> None:
        # What hinders it is told where the sweep is made, and it is tried again there.
        with suppress(SemindexError):
            await self._sweep()

    def _tell(self, trouble: str | None) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            self._report(trouble)


def _joined(one: Changes, other: Changes) -> Changes:
    paths = one.paths | other.paths
    if one.rescan or other.rescan or len(paths) > MAX_PATHS:
        return Changes(frozenset(), rescan=True)
    return Changes(paths, rescan=False)
