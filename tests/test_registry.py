"""Registrations on twins and virtual time: who holds what open, and what a release leaves."""

from functools import partial

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from semindex.engine.priority import Priority
from semindex.model.errors import (
    BaselineInUse,
    BaselineMissing,
    Conflict,
    Releasing,
    Starting,
    StoreUnavailable,
    TooManyRegistrations,
    UnknownRegistration,
)
from semindex.model.registrations import Lifecycle
from semindex.testing.bench import words
from semindex.testing.faults import Fault, FaultPlan
from semindex.testing.intercept import Gate
from tests.registries import PRIMARY, WORKTREE, Estate, registration


def estate() -> Estate:
    made = Estate()
    made.bench.tree(PRIMARY, alpha=words("alpha"), beta=words("beta"))
    made.bench.tree(WORKTREE, alpha=words("alpha"), beta=words("gamma"))
    return made


async def test_two_registrations_of_a_path_share_its_workspace_until_the_last_goes(autojump_clock: MockClock) -> None:
    async with estate().office() as office:
        first = await office.register("one", PRIMARY)
        assert await office.register("two", PRIMARY) is first
        await first.settled()
        receipt = await office.registry.release("one", purge=True)
        assert not receipt.purged
        assert not first.closed.is_set()
        receipt = await office.registry.release("two", purge=True)
        assert (receipt.purged, receipt.points) == (True, 2)
        assert first.closed.is_set()
        assert await office.bench.store.collections() == []


async def test_registering_twice_at_once_starts_one_workspace(autojump_clock: MockClock) -> None:
    async with estate().office() as office:
        found = []

        async def register(number: int) -> None:
            found.append(await office.register("same" if number % 2 else f"id-{number}", PRIMARY))

        async with trio.open_nursery() as nursery:
            for number in range(6):
                nursery.start_soon(register, number)
        assert len(set(map(id, found))) == 1


async def test_of_two_that_claim_an_id_for_two_paths_at_once_one_is_refused(autojump_clock: MockClock) -> None:
    async with estate().office() as office:
        outcomes: list[str] = []

        async def register(path: str) -> None:
            try:
                await office.register("same", path)
            except Conflict:
                outcomes.append("refused")
            else:
                outcomes.append("accepted")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(register, PRIMARY)
            nursery.start_soon(register, WORKTREE)
        assert sorted(outcomes) == ["accepted", "refused"]
        assert len(office.registry.leases()) == 1


async def test_a_worktree_needs_its_primary_and_keeps_it(autojump_clock: MockClock) -> None:
    async with estate().office() as office:
        with pytest.raises(BaselineMissing):
            await office.register("worktree", WORKTREE, PRIMARY)
        await office.register("primary", PRIMARY)
        await office.register("worktree", WORKTREE, PRIMARY)
        with pytest.raises(BaselineInUse, match="worktree"):
            await office.registry.release("primary")
        with pytest.raises(Conflict):
            await office.register("other", WORKTREE)
        receipt = await office.registry.release("primary", force=True)
        assert receipt.worktrees == ("worktree",)
        assert office.registry.leases() == []


async def test_releasing_a_worktree_never_touches_its_baseline(autojump_clock: MockClock) -> None:
    async with estate().office() as office:
        primary = await office.register("primary", PRIMARY)
        worktree = await office.register("worktree", WORKTREE, PRIMARY)
        await worktree.settled()
        receipt = await office.registry.release("worktree")
        assert receipt.purged, "a worktree's index goes by default"
        assert await office.bench.store.collections() == [office.collection(PRIMARY)]
        assert (await office.process.found(PRIMARY, "beta")).paths == ("beta.py",)
        assert not primary.closed.is_set()


async def test_asking_twice_for_a_release_waits_for_the_same_end_and_a_third_time_finds_nothing(
    autojump_clock: MockClock,
) -> None:
    async with estate().office() as office:
        await (await office.register("one", PRIMARY)).settled()
        receipts = []

        async def release() -> None:
            receipts.append(await office.registry.release("one", purge=True))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(release)
            nursery.start_soon(release)
        assert receipts[0] == receipts[1]
        with pytest.raises(UnknownRegistration):
            await office.registry.release("one")


async def test_a_client_that_goes_away_does_not_stop_a_release(autojump_clock: MockClock) -> None:
    async with estate().office() as office:
        await (await office.register("one", PRIMARY)).settled()
        with trio.CancelScope() as client:
            client.cancel()
            await office.registry.release("one", purge=True)
        await wait_all_tasks_blocked()
        assert office.registry.leases() == []
        assert await office.bench.store.collections() == []


async def test_a_path_that_is_being_released_cannot_be_registered_until_that_is_over(autojump_clock: MockClock) -> None:
    gate = Gate("store.drop")
    async with estate().office(gate) as office:
        await (await office.register("one", PRIMARY)).settled()
        gate.shut()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(office.registry.release, "one", purge=True))
            await gate.reached()
            with pytest.raises(Releasing):
                await office.register("one", PRIMARY)
            gate.open()
        again = await office.register("one", PRIMARY)
        assert (await again.settled()).chunks == 2


async def test_a_release_whose_purge_fails_stays_begun_and_the_next_start_finishes_it(
    autojump_clock: MockClock,
) -> None:
    made = estate()
    async with made.office(FaultPlan({"store.drop": [Fault.TRANSIENT] * 9})) as office:
        await (await office.register("one", PRIMARY)).settled()
        with pytest.raises(StoreUnavailable):
            await office.registry.release("one", purge=True)
        assert office.registry.lease("one").registration.lifecycle is Lifecycle.RELEASING
    async with made.office() as office:
        await wait_all_tasks_blocked()
        assert office.registry.leases() == []
        assert await office.bench.store.collections() == []


async def test_what_was_released_without_purge_is_adopted_when_it_is_registered_again(
    autojump_clock: MockClock,
) -> None:
    made = estate()
    async with made.office() as office:
        await (await office.register("one", PRIMARY)).settled()
        sent = len(made.bench.sent())
        await office.registry.release("one")
        assert [kept.path for kept in await made.state.registrations.load_retained()] == [PRIMARY]
        again = await office.register("two", PRIMARY)
        assert (await again.settled()).chunks == 2
        assert len(made.bench.sent()) == sent
        assert await made.state.registrations.load_retained() == []


async def test_a_restart_opens_what_was_registered_primaries_first(autojump_clock: MockClock) -> None:
    made = estate()
    async with made.office() as office:
        await (await office.register("a-primary", PRIMARY)).settled()
        await (await office.register("0-worktree", WORKTREE, PRIMARY)).settled()
        sent = len(made.bench.sent())
    async with made.office() as office:
        for lease in office.registry.leases():
            assert lease.workspace is not None
            await lease.workspace.settled()
        assert (await office.process.found(WORKTREE, "alpha")).paths == ("alpha.py",)
        assert len(made.bench.sent()) == sent


async def test_before_the_registrations_were_read_nothing_is_unknown_and_nothing_accepted(
    autojump_clock: MockClock,
) -> None:
    async with estate().office(restore=False) as office:
        with pytest.raises(Starting):
            office.registry.lease("one")
        with pytest.raises(Starting):
            await office.register("one", PRIMARY)


async def test_a_worktree_without_its_primary_waits_registered_until_that_comes(autojump_clock: MockClock) -> None:
    made = estate()
    await made.state.registrations.save(registration("worktree", WORKTREE, PRIMARY))
    async with made.office() as office:
        lease = office.registry.lease("worktree")
        assert lease.workspace is None
        assert "not indexed" in lease.idle_because
        await office.register("primary", PRIMARY)
        assert lease.workspace is not None
        await lease.workspace.settled()


async def test_there_are_only_so_many_registrations(autojump_clock: MockClock) -> None:
    async with estate().office() as office:
        for number in range(10):
            await office.register(f"id-{number}", PRIMARY)
        with pytest.raises(TooManyRegistrations):
            await office.register("one-more", PRIMARY)
        await office.register("id-3", PRIMARY)


async def test_a_purged_baseline_puts_its_worktrees_to_rest_and_wakes_them_when_it_is_back(
    autojump_clock: MockClock,
) -> None:
    async with estate().office() as office:
        await (await office.register("primary", PRIMARY)).settled()
        await (await office.register("worktree", WORKTREE, PRIMARY)).settled()
        await office.registry.put_to_rest(office.registry.lease("primary"))
        assert office.registry.lease("worktree").workspace is None
        assert office.collection(PRIMARY) not in await office.bench.store.collections()
        await office.registry.wake(office.registry.lease("primary"))
        overlay = office.registry.lease("worktree").workspace
        assert overlay is not None
        await overlay.settled()
        assert (await office.process.found(WORKTREE, "gamma")).paths == ("beta.py",)


async def test_a_receipt_counts_what_reached_the_store_and_what_was_given_up(autojump_clock: MockClock) -> None:
    made, storing = estate(), Gate("store.upsert")
    storing.shut()
    async with made.office(storing) as office, trio.open_nursery() as nursery:
        await office.register("primary", PRIMARY)
        await storing.reached()

        async def release() -> None:
            receipt = await office.registry.release("primary", purge=False)
            assert (receipt.drained, receipt.cancelled) == (2, 0)

        nursery.start_soon(release)
        await wait_all_tasks_blocked()
        storing.open()


async def test_files_that_are_still_lined_up_while_a_workspace_ends_count_as_given_up_alone(
    autojump_clock: MockClock,
) -> None:
    made, embedding = estate(), Gate("embedder.embed")
    embedding.shut()
    async with made.office(embedding) as office, trio.open_nursery() as nursery:
        workspace = await office.register("primary", PRIMARY)
        await embedding.reached()

        async def mark() -> None:
            number = 0
            while True:
                workspace.index.note_pending(f"late{number}.py", Priority.EDIT)
                number += 1
                await trio.lowlevel.checkpoint()

        nursery.start_soon(mark)
        receipt = await office.registry.release("primary", purge=True)
        nursery.cancel_scope.cancel()
        assert receipt.drained == 0
        assert receipt.cancelled > 2
