"""What nobody owns any more, and directories that were deleted: found, shown, and collected only when that is certain.

Orphans are collections and ledgers of this cell that belong to no registration and to no retained index. One
is collected after a grace during which it has to stay an orphan. A deleted directory is one whose parent says,
for a whole grace and on the same file system as before, that it is not there: neither a denied permission nor
an unmounted disk counts.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from enum import StrEnum

import trio
from attrs import define, field, frozen

from semindex.clock import utc_now
from semindex.engine.collection import is_foreign
from semindex.engine.revision import Revision
from semindex.model.errors import InvalidInput, SemindexError, first_of
from semindex.model.ids import collection_name
from semindex.model.places import Presence
from semindex.model.points import CollectionMetadata
from semindex.model.registrations import Retained
from semindex.ports import CellState, Places, VectorStore
from semindex.registry import Registry

logger = logging.getLogger(__name__)

COLLECT_INTERVAL = 600.0
"""Seconds between two looks for orphans (the first is at the start)."""
ORPHAN_GRACE = 600.0
"""Seconds for which something has to be an orphan before it is collected."""
LOOK_INTERVAL = 10.0
"""Seconds between two looks at the registered directories."""
RELEASE_INTERVAL = 10.0
"""Seconds between two tries of a release that could not be finished."""
ABSENCE_GRACE = 60.0
"""Seconds for which a directory has to be absent before it counts as deleted."""


class OrphanKind(StrEnum):
    """What is left over."""

    COLLECTION = "collection"
    LEDGER = "ledger"
    FOREIGN = "foreign"
    """A collection that is not this cell's."""


@frozen
class Orphan:
    """Something that nobody owns."""

    name: str
    """Of the collection, or the workspace path of the ledger."""
    kind: OrphanKind
    points: int
    reason: str


@define
class Janitor:
    """Looks after what registrations leave behind."""

    state: CellState
    store: VectorStore
    registry: Registry
    places: Places
    _seen: dict[str, float] = field(factory=dict)
    """Name of an orphan → when it was first seen."""
    _devices: dict[str, int] = field(factory=dict)
    """Registered path → the file system of its parent when the path was last there; before this life saw it, see
    :attr:`semindex.model.registrations.Registration.device`."""
    _absent_since: dict[str, float] = field(factory=dict)
    count: int = 0
    """Orphans that the last look found."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Work until cancelled; what fails is logged and tried again at the next turn."""
        task_status.started()
        await self.registry.restored.wait()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_repeat, self.collect, COLLECT_INTERVAL)
            nursery.start_soon(_repeat, self.look_at_directories, LOOK_INTERVAL)
            nursery.start_soon(_repeat, self.registry.resume_releases, RELEASE_INTERVAL)

    async def wake_after_each(self, recoveries: Revision) -> None:
        """Have every workspace that has failed try again as soon as a dependency has recovered."""
        while True:
            await recoveries.beyond(recoveries.value)
            for lease in self.registry.leases():
                if lease.workspace is not None:
                    lease.workspace.retry()

    # Orphans

    async def orphans(self) -> list[Orphan]:
        """Return what nobody owns now. Raises StoreUnavailable, and Starting before it is known who owns what."""
        self.registry.require_restored()
        owned = {*self.registry.paths(), *(kept.path for kept in await self.state.registrations.load_retained())}
        ledgers = await self.state.ledgers()
        found = [
            Orphan(path, OrphanKind.LEDGER, 0, "No registration and no retained index has this path.")
            for path in ledgers
            if path not in owned
        ]
        names = {collection_name(path) for path in owned}
        for name in await self.store.collections():
            if name in names or (info := await self.store.describe(name)) is None:
                continue
            if CollectionMetadata.from_payload(info.metadata or {}).cell_id == self.state.cell_id:
                reason = "No registration and no retained index has this collection."
                found.append(Orphan(name, OrphanKind.COLLECTION, info.points, reason))
        self.count = len(found)
        return found

    async def purge(self, names: Iterable[str], *, dry_run: bool) -> list[Orphan]:
        """Delete these orphans and return them; with ``dry_run`` only return them.

        A collection that another cell or the reference engine has made is deleted as well: that is never done unless it
        is named here. Raises InvalidInput for a name of anything else.
        """
        known = {orphan.name: orphan for orphan in await self.orphans()}
        wanted = list(dict.fromkeys(names))
        for name in wanted:
            if name not in known:
                known[name] = await self._foreign(name)
        if not dry_run:
            for name in wanted:
                await self._delete(known[name])
        return [known[name] for name in wanted]

    async def _foreign(self, name: str) -> Orphan:
        if name in await self.store.collections():
            info = await self.store.describe(name)
            if info is not None and is_foreign(info, self.state.cell_id):
                return Orphan(name, OrphanKind.FOREIGN, info.points, "Another cell or another engine has made it.")
        raise InvalidInput(f"{name[:200]} is no orphan; list them again.")

    async def collect(self) -> None:
        """Purge retained indexes whose time is up, and orphans that have been such for the whole grace."""
        now = utc_now()
        for kept in await self.state.registrations.load_retained():
            if _is_expired(kept, now) and kept.path not in self.registry.paths():
                await self._expire(kept.path)
        orphans = {orphan.name: orphan for orphan in await self.orphans()}
        self._seen = {name: self._seen.get(name, trio.current_time()) for name in orphans}
        for name, since in self._seen.items():
            if trio.current_time() - since < ORPHAN_GRACE:
                continue
            try:
                await self._delete(orphans[name])
            except SemindexError as error:
                logger.warning("the orphaned %s %s stays for now: %s", orphans[name].kind, name, error)
            else:
                logger.info("the orphaned %s %s was collected", orphans[name].kind, name)

    async def _expire(self, path: str) -> None:
        try:
            await self.registry.purge_unregistered(path)
            await self.state.registrations.discard_retained(path)
        except SemindexError as error:
            logger.warning("the retained index of %s stays for now: %s", path, error)
        else:
            logger.info("the retained index of %s has reached its time and was purged", path)

    async def _delete(self, orphan: Orphan) -> None:
        # A registration may have claimed it since it was listed. A ledger's path is locked while it is deleted. A
        # collection's name does not tell its path, so no lock can be taken: the check and the start of the drop have
        # no checkpoint between them.
        if orphan.kind is OrphanKind.LEDGER:
            await self.registry.purge_unregistered(orphan.name)
        elif orphan.kind is OrphanKind.FOREIGN:
            await self.store.drop(orphan.name)
            for lease in self.registry.leases():
                if lease.workspace is not None and collection_name(lease.registration.path) == orphan.name:
                    lease.workspace.retry()
        elif orphan.name not in map(collection_name, self.registry.paths()):
            await self.store.drop(orphan.name)

    # Deleted directories

    async def look_at_directories(self) -> None:
        """Retire registrations whose directory was deleted, and take back those whose directory is there again."""
        registered = {lease.registration.path: lease.registration.device for lease in self.registry.leases()}
        for known in (self._devices, self._absent_since):
            for path in known.keys() - registered.keys():
                del known[path]
        for path, device in registered.items():
            try:
                await self._look_at(path, device)
            except SemindexError as error:
                logger.warning("whether %s was deleted is looked at again: %s", path, error)

    async def _look_at(self, path: str, device: int | None) -> None:
        """Retire or take back one path; ``device`` is the file system on which it was registered."""
        sighting = await self.places.look(path)
        if sighting.presence is Presence.PRESENT and sighting.parent_device is not None:
            self._devices[path] = sighting.parent_device
            if any(lease.is_deleted for lease in self.registry.leases_of(path)):
                await self.registry.revive(path)
        # Where the parent's file system is another one, or was never seen, a disk may just not be mounted.
        if sighting.presence is not Presence.ABSENT or sighting.parent_device != self._devices.get(path, device):
            self._absent_since.pop(path, None)
        elif trio.current_time() - self._absent_since.setdefault(path, trio.current_time()) >= ABSENCE_GRACE:
            await self.registry.retire(path)


def _is_expired(kept: Retained, now: datetime) -> bool:
    return kept.ttl is not None and (now - kept.since).total_seconds() >= kept.ttl


async def _repeat(work: Callable[[], Awaitable[None]], interval: float) -> None:
    while True:
        try:
            await work()
        except* SemindexError as group:
            logger.warning("housekeeping: %s", first_of(group))
        except* Exception:
            logger.exception("housekeeping failed; it is tried again")
        await trio.sleep(interval)
