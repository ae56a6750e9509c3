"""The janitor on twins and virtual time: what it collects, when, and what it never touches."""

import pytest
import trio
from attrs import evolve
from trio.testing import MockClock

from semindex.janitor import ABSENCE_GRACE, ORPHAN_GRACE, OrphanKind
from semindex.model.errors import InvalidInput, StoreUnavailable
from semindex.model.places import Presence, Sighting
from semindex.model.points import CollectionMetadata
from semindex.model.registrations import Lifecycle
from semindex.model.status import State
from semindex.testing.bench import words
from semindex.testing.intercept import Failing
from tests.registries import PRIMARY, WORKTREE, Estate, Office, registration

GONE = Sighting(Presence.ABSENT, 1)


def estate() -> Estate:
    made = Estate()
    made.bench.tree(PRIMARY, alpha=words("alpha"))
    made.bench.tree(WORKTREE, alpha=words("alpha"), beta=words("beta"))
    return made


async def leave_collection(office: Office, name: str, cell_id: str | None) -> None:
    await office.bench.store.create(name, 4)
    await office.bench.store.write_metadata(name, CollectionMetadata("p", "m", 4, True, cell_id=cell_id).to_payload())


async def test_only_collections_of_this_cell_that_nobody_owns_are_orphans(autojump_clock: MockClock) -> None:
    made = estate()
    async with made.office() as office:
        await (await office.register("primary", PRIMARY)).settled()
        await leave_collection(office, "ws-ours", made.state.cell_id)
        await leave_collection(office, "ws-theirs", "another cell")
        await leave_collection(office, "ws-unknown", None)
        (orphan,) = await office.janitor.orphans()
        assert (orphan.name, orphan.kind) == ("ws-ours", OrphanKind.COLLECTION)


async def test_a_retained_index_is_no_orphan_and_goes_when_its_time_is_up(autojump_clock: MockClock) -> None:
    made = estate()
    made.policy = type(made.policy)(purge_worktrees=True, ttl=0, max_registrations=10)
    async with made.office() as office:
        await (await office.register("primary", PRIMARY)).settled()
        await office.registry.release("primary", purge=False)
        assert await office.janitor.orphans() == []
        await office.janitor.collect()
        assert await office.bench.store.collections() == []
        assert await made.state.registrations.load_retained() == []


async def test_an_orphan_is_collected_only_after_its_grace(autojump_clock: MockClock) -> None:
    made = estate()
    async with made.office() as office:
        await leave_collection(office, "ws-ours", made.state.cell_id)
        await office.janitor.collect()
        await trio.sleep(ORPHAN_GRACE - 1)
        await office.janitor.collect()
        assert await office.bench.store.collections() == ["ws-ours"]
        await trio.sleep(2)
        await office.janitor.collect()
        assert await office.bench.store.collections() == []


async def test_a_dry_run_deletes_nothing_and_a_name_that_is_no_orphan_is_refused(autojump_clock: MockClock) -> None:
    made = estate()
    async with made.office() as office:
        await (await office.register("primary", PRIMARY)).settled()
        await leave_collection(office, "ws-ours", made.state.cell_id)
        assert [o.name for o in await office.janitor.purge(["ws-ours"], dry_run=True)] == ["ws-ours"]
        with pytest.raises(InvalidInput):
            await office.janitor.purge(["ws-ours", office.collection(PRIMARY)], dry_run=False)
        assert len(await office.bench.store.collections()) == 2
        await office.janitor.purge(["ws-ours"], dry_run=False)
        assert await office.bench.store.collections() == [office.collection(PRIMARY)]


async def test_a_foreign_collection_is_deleted_only_by_name_and_then_its_workspace_is_built(
    autojump_clock: MockClock,
) -> None:
    made = estate()
    async with made.office() as office:
        name = office.collection(PRIMARY)
        await leave_collection(office, name, "another cell")
        workspace = await office.register("primary", PRIMARY)
        status = await workspace.settled()
        assert (status.state, name in str(status.last_error)) == (State.ERROR, True)
        assert await office.janitor.orphans() == []

        assert [o.kind for o in await office.janitor.purge([name], dry_run=True)] == [OrphanKind.FOREIGN]
        assert (await office.bench.store.describe(name) or pytest.fail("it is gone")).metadata is not None
        await office.janitor.purge([name], dry_run=False)
        while (await workspace.settled()).state is not State.INDEXED:
            await workspace.changes.beyond(workspace.changes.value)
        with pytest.raises(InvalidInput):
            await office.janitor.purge([name], dry_run=False)


async def test_a_deleted_worktree_is_retired_after_the_grace_and_comes_back_with_its_directory(
    autojump_clock: MockClock,
) -> None:
    made = estate()
    async with made.office() as office:
        await (await office.register("primary", PRIMARY)).settled()
        workspace = await office.register("worktree", WORKTREE, PRIMARY)
        await workspace.settled()
        await office.janitor.look_at_directories()
        office.places.sightings[WORKTREE] = GONE
        await office.janitor.look_at_directories()
        await trio.sleep(ABSENCE_GRACE - 1)
        await office.janitor.look_at_directories()
        assert office.registry.lease("worktree").registration.lifecycle is Lifecycle.ACTIVE
        await trio.sleep(2)
        await office.janitor.look_at_directories()
        assert office.registry.lease("worktree").registration.lifecycle is Lifecycle.STALE
        assert workspace.closed.is_set()
        assert office.collection(WORKTREE) not in await office.bench.store.collections()
        assert office.collection(PRIMARY) in await office.bench.store.collections()
        del office.places.sightings[WORKTREE]
        await office.janitor.look_at_directories()
        revived = office.registry.lease("worktree").workspace
        assert revived is not None
        assert (await revived.settled()).chunks == 1


@pytest.mark.parametrize(("device", "after"), [(1, Lifecycle.STALE), (2, Lifecycle.ACTIVE), (None, Lifecycle.ACTIVE)])
async def test_a_worktree_that_was_deleted_while_the_service_was_down_is_retired_where_it_lay(
    device: int | None, after: Lifecycle, autojump_clock: MockClock
) -> None:
    made = estate()
    async with made.office() as office:
        await office.registry.register(registration("primary", PRIMARY))
        await office.registry.register(evolve(registration("worktree", WORKTREE, PRIMARY), device=device))
    made.places.sightings[WORKTREE] = GONE
    async with made.office() as office:
        await office.janitor.look_at_directories()
        await trio.sleep(ABSENCE_GRACE)
        await office.janitor.look_at_directories()
        assert office.registry.lease("worktree").registration.lifecycle is after


@pytest.mark.parametrize(
    "sighting",
    [Sighting(Presence.UNKNOWN, 1), Sighting(Presence.UNKNOWN, None), Sighting(Presence.ABSENT, 2)],
    ids=["permission denied", "parent gone", "unmounted"],
)
async def test_what_cannot_be_seen_is_not_deleted(sighting: Sighting, autojump_clock: MockClock) -> None:
    async with estate().office() as office:
        await (await office.register("primary", PRIMARY)).settled()
        await office.janitor.look_at_directories()
        office.places.sightings[PRIMARY] = sighting
        for _ in range(5):
            await office.janitor.look_at_directories()
            await trio.sleep(ABSENCE_GRACE)
        assert office.registry.lease("primary").registration.lifecycle is Lifecycle.ACTIVE


async def test_a_directory_that_blinks_is_not_deleted(autojump_clock: MockClock) -> None:
    async with estate().office() as office:
        await (await office.register("primary", PRIMARY)).settled()
        for _ in range(5):
            await office.janitor.look_at_directories()
            office.places.sightings[PRIMARY] = GONE
            await office.janitor.look_at_directories()
            await trio.sleep(ABSENCE_GRACE - 1)
            del office.places.sightings[PRIMARY]
        assert office.registry.lease("primary").registration.lifecycle is Lifecycle.ACTIVE


UNREACHABLE = StoreUnavailable("The store does not answer.")


async def delete_worktree(office: Office) -> None:
    """Have the worktree's directory absent for the whole grace, as far as the janitor knows."""
    await office.janitor.look_at_directories()
    office.places.sightings[WORKTREE] = GONE
    await office.janitor.look_at_directories()
    await trio.sleep(ABSENCE_GRACE)


async def test_a_purge_that_failed_is_tried_again_before_the_worktree_counts_as_retired(
    autojump_clock: MockClock,
) -> None:
    made, dropping = estate(), Failing("store.drop", UNREACHABLE)
    async with made.office(dropping) as office:
        await (await office.register("primary", PRIMARY)).settled()
        await (await office.register("worktree", WORKTREE, PRIMARY)).settled()
        await delete_worktree(office)
        dropping.times = 1
        await office.janitor.look_at_directories()
        assert office.registry.lease("worktree").registration.lifecycle is Lifecycle.ACTIVE
        assert office.collection(WORKTREE) in await office.bench.store.collections()
        await office.janitor.look_at_directories()
        assert office.registry.lease("worktree").registration.lifecycle is Lifecycle.STALE
        assert await office.bench.store.collections() == [office.collection(PRIMARY)]


async def test_a_directory_that_is_back_before_its_purge_succeeded_is_indexed_again(autojump_clock: MockClock) -> None:
    made, dropping = estate(), Failing("store.drop", UNREACHABLE)
    async with made.office(dropping) as office:
        await (await office.register("primary", PRIMARY)).settled()
        await (await office.register("worktree", WORKTREE, PRIMARY)).settled()
        await delete_worktree(office)
        dropping.times = 1
        await office.janitor.look_at_directories()
        assert office.registry.lease("worktree").workspace is None
        del office.places.sightings[WORKTREE]
        await office.janitor.look_at_directories()
        revived = office.registry.lease("worktree").workspace
        assert revived is not None
        assert (await revived.settled()).chunks == 1


async def test_a_path_that_cannot_be_retired_holds_up_none_behind_it(autojump_clock: MockClock) -> None:
    made, dropping = estate(), Failing("store.drop", UNREACHABLE)
    made.bench.tree("/another", gamma=words("gamma"))
    async with made.office(dropping) as office:
        await (await office.register("primary", PRIMARY)).settled()
        await (await office.register("first", WORKTREE, PRIMARY)).settled()
        await (await office.register("second", "/another", PRIMARY)).settled()
        await office.janitor.look_at_directories()
        office.places.sightings["/another"] = GONE
        await delete_worktree(office)
        dropping.about, dropping.times = office.collection(WORKTREE), 2
        await office.janitor.look_at_directories()
        assert office.registry.lease("first").registration.lifecycle is Lifecycle.ACTIVE
        assert office.registry.lease("second").registration.lifecycle is Lifecycle.STALE


async def test_a_retained_index_that_cannot_be_purged_now_holds_up_none_behind_it(autojump_clock: MockClock) -> None:
    made, dropping = estate(), Failing("store.drop", UNREACHABLE)
    made.policy = type(made.policy)(purge_worktrees=True, ttl=0, max_registrations=10)
    made.bench.tree("/another", gamma=words("gamma"))
    async with made.office(dropping) as office:
        for name, path in {"one": PRIMARY, "other": "/another"}.items():
            await (await office.register(name, path)).settled()
            await office.registry.release(name, purge=False)
        dropping.times = 1
        await office.janitor.collect()
        assert [kept.path for kept in await made.state.registrations.load_retained()] == [PRIMARY]
        await office.janitor.collect()
        assert await office.bench.store.collections() == []
