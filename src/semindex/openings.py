"""Which paths have a workspace running: started, put to rest and closed, one at a time for each path.

Owns the invariant that a worktree's workspace never outlives that of its baseline: whoever ends a baseline ends
the overlays above it first, and a baseline that comes back wakes them. Locks are taken from the baseline to the
worktree, never the other way.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

from semindex.engine.revision import Revision
from semindex.engine.workspace import Workspace
from semindex.leasing import Lease, LeaseBook
from semindex.model.errors import Stopping
from semindex.model.registrations import Lifecycle

StartWorkspace = Callable[[str, Workspace | None], Awaitable[Workspace]]
"""Starts the workspace of a canonical path, above a baseline or none."""
Purge = Callable[[str], Awaitable[None]]
"""Deletes all data of a canonical path without a running workspace; raises StoreUnavailable if it cannot now."""

WITHOUT_BASELINE = "The primary checkout that this worktree builds on is not indexed."

Hindrance = Callable[[str], str | None]
"""Returns why the workspace of a canonical path may not run, None if it may."""


def unhindered(_: str) -> None:
    """Let every workspace run."""


class Openings:
    """The running workspaces of a cell."""

    def __init__(
        self,
        book: LeaseBook,
        start: StartWorkspace,
        purge: Purge,
        changes: Revision,
        hindrance: Hindrance = unhindered,
    ) -> None:
        self._book = book
        self._start = start
        self._purge = purge
        self._changes = changes
        self._hindrance = hindrance
        self._locks: dict[str, trio.Lock] = {}
        self._is_stopping = False

    @asynccontextmanager
    async def exclusive(self, path: str) -> AsyncIterator[None]:
        """Let one task at a time open or close the workspace of a path."""
        lock = self._locks.setdefault(path, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._locks.pop(path, None)

    async def open(self, lease: Lease) -> None:
        """Give a lease its workspace, the running one or a new one, or the reason why it has none.

        The path's lock must be held. Overlays that wait for this workspace are woken.
        """
        path, baseline_path = lease.registration.path, lease.registration.baseline_path
        baseline = None if baseline_path is None else self._book.workspace_of(baseline_path)
        if self._is_stopping:
            raise Stopping
        if (running := self._book.workspace_of(path)) is not None:
            lease.workspace, lease.idle_because = running, ""
        elif hindrance := self._hindrance(path):
            lease.idle_because = hindrance
        elif baseline_path is not None and baseline is None:
            lease.idle_because = WITHOUT_BASELINE
        else:
            workspace = await self._start(path, baseline)
            for other in self._book.of(path):
                other.workspace, other.idle_because = workspace, ""
            if self._is_stopping:
                workspace.stop(purge=False)
            await self._wake_overlays(path)
        self._changes.bump()

    async def _wake_overlays(self, path: str) -> None:
        for overlay in self._book.overlays_of(path):
            async with self.exclusive(overlay.registration.path):
                if self._book.holds(overlay) and overlay.workspace is None and _is_active(overlay):
                    await self.open(overlay)

    async def close(self, path: str, reason: str, *, purge: bool) -> Workspace | None:
        """End the workspace of a path, its overlays first, and return it; with ``purge``, its data are gone afterwards.

        The path's lock must be held. Leases keep their place and say why nothing runs. Raises StoreUnavailable if the
        data could not be deleted now.
        """
        workspace = self._book.workspace_of(path)
        for lease in self._book.of(path):
            # From here on no overlay can start above it.
            lease.workspace, lease.idle_because = None, reason
        self._changes.bump()
        for overlay_path in {overlay.registration.path for overlay in self._book.overlays_of(path)}:
            async with self.exclusive(overlay_path):
                await self.close(overlay_path, WITHOUT_BASELINE, purge=False)
        if workspace is not None:
            workspace.stop(purge=purge)
            await workspace.closed.wait()
        if workspace is not None and workspace.purge_failure is not None:
            raise workspace.purge_failure
        if purge and not (workspace is not None and workspace.purged):
            await self._purge(path)
        return workspace

    async def purge_unregistered(self, path: str) -> None:
        """Delete what is stored for a path, unless it is registered by now. Raises StoreUnavailable."""
        async with self.exclusive(path):
            if not self._book.of(path):
                await self._purge(path)

    def stop_all(self) -> None:
        """Ask every workspace for its end, its data kept, and start no other from now on."""
        self._is_stopping = True
        for lease in self._book.all():
            if lease.workspace is not None:
                lease.workspace.stop(purge=False)


def _is_active(lease: Lease) -> bool:
    return lease.registration.lifecycle is Lifecycle.ACTIVE
