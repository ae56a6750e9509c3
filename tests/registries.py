"""A registry over twins: what a process of the bench needs to be registered with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import trio
from attrs import define, field

from semindex.engine.collection import purge_collection
from semindex.engine.revision import Revision
from semindex.engine.workspace import Workspace
from semindex.janitor import Janitor
from semindex.leasing import Policy
from semindex.model.ids import collection_name
from semindex.model.places import Place, Presence, Sighting
from semindex.model.registrations import Registration
from semindex.registry import Registry
from semindex.state.memory import MemoryCellState
from semindex.testing.bench import Bench, Process
from semindex.testing.intercept import Around, intercept

PRIMARY, WORKTREE = "/primary", "/worktree"


@define
class MemoryPlaces:
    """Directories by path; what is not named here is there."""

    sightings: dict[str, Sighting] = field(factory=dict)

    async def directory(self, path: str) -> Place:
        """Resolve nothing."""
        await trio.lowlevel.checkpoint()
        return Place(path, None, None, ())

    async def registrable(self, path: str, *, force: bool) -> Place:
        """Refuse nothing."""
        return await self.directory(path)

    async def look(self, path: str) -> Sighting:
        """Return what was set."""
        await trio.lowlevel.checkpoint()
        return self.sightings.get(path, Sighting(Presence.PRESENT, 1))


@define
class Office:
    """One life of a registry, with all that it registers."""

    bench: Bench
    process: Process
    registry: Registry
    janitor: Janitor
    places: MemoryPlaces

    def collection(self, path: str) -> str:
        """Return the name of a path's collection."""
        return collection_name(path)

    async def register(self, registration_id: str, path: str, baseline: str | None = None) -> Workspace:
        """Register a path and return its workspace."""
        lease = await self.registry.register(registration(registration_id, path, baseline))
        assert lease.workspace is not None
        return lease.workspace


def registration(registration_id: str, path: str, baseline: str | None = None) -> Registration:
    """Return a registration made now."""
    return Registration(registration_id, path, baseline, datetime.now(UTC))


@define
class Estate:
    """What outlives an office: the bench, the state, the directories."""

    bench: Bench = field(factory=Bench)
    state: MemoryCellState = field(factory=MemoryCellState)
    places: MemoryPlaces = field(factory=MemoryPlaces)
    policy: Policy = field(factory=lambda: Policy(purge_worktrees=True, ttl=3600, max_registrations=10))

    @asynccontextmanager
    async def office(self, *arounds: Around, restore: bool = True) -> AsyncIterator[Office]:
        """Open a registry; at the end all workspaces are stopped, their data kept."""
        self.bench.cell_id = self.state.cell_id
        store = intercept(self.bench.store, "store", arounds)
        async with self.bench.process(*arounds) as process:

            async def start(root: str, baseline: Workspace | None) -> Workspace:
                return await process.start(root, baseline=None if baseline is None else baseline.root)

            async def purge(root: str) -> None:
                await purge_collection(store, self.state.ledger(root), collection_name(root), self.state.cell_id)

            registry = Registry(self.state, start, purge, self.policy, process.nursery, Revision())
            if restore:
                await registry.restore()
            janitor = Janitor(self.state, self.bench.store, registry, self.places)
            yield Office(self.bench, process, registry, janitor, self.places)
