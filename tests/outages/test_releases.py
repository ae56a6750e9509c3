"""Releases while the vector store is down, under a virtual clock: refused in time, finished later by the janitor."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from semindex.engine.workspace import CLOSE_GRACE, Limits
from semindex.janitor import RELEASE_INTERVAL
from semindex.model.errors import StoreUnavailable
from semindex.model.ids import collection_name
from semindex.model.registrations import Lifecycle
from semindex.testing.bench import words
from semindex.testing.intercept import Call, Proceed
from tests.registries import PRIMARY, WORKTREE, Estate

PATIENCE = 10_000.0
ONE_CALL = 30.0
"""Seconds for which a call of a store that hangs is waited for."""


class Outage:
    """An Around that keeps the store from answering: at once, or by letting everybody wait."""

    def __init__(self, *, hangs: bool) -> None:
        self.is_on = False
        self._hangs = hangs

    async def __call__(self, call: Call, proceed: Proceed) -> Any:
        if not (self.is_on and call.port == "store"):
            return await proceed()
        if self._hangs:
            await trio.sleep(ONE_CALL)
        await trio.lowlevel.checkpoint()
        raise StoreUnavailable("The Qdrant server cannot be reached.")


@pytest.mark.parametrize("hangs", [False, True], ids=["refused", "hanging"])
async def test_a_release_with_purge_is_refused_in_time_and_finished_when_the_store_is_back(
    autojump_clock: MockClock, hangs: bool
) -> None:
    estate, outage = Estate(), Outage(hangs=hangs)
    estate.bench.tree(PRIMARY, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with estate.office(outage) as office, trio.open_nursery() as nursery:
            nursery.start_soon(office.janitor.run)
            await (await office.register("one", PRIMARY)).settled()
            outage.is_on = True
            began = trio.current_time()

            with pytest.raises(StoreUnavailable):
                await office.registry.release("one", purge=True)

            assert trio.current_time() - began <= CLOSE_GRACE + Limits().purge_grace + ONE_CALL
            lease = office.registry.lease("one")
            assert lease.registration.lifecycle is Lifecycle.RELEASING
            [kept] = await estate.state.registrations.load_all()
            assert (kept.lifecycle, kept.purge) == (Lifecycle.RELEASING, True)
            await trio.sleep(600)
            assert office.registry.leases() == [lease]

            outage.is_on = False
            began = trio.current_time()
            while office.registry.leases():
                await office.registry.changes.beyond(office.registry.changes.value)
            assert trio.current_time() - began <= RELEASE_INTERVAL + ONE_CALL
            assert await estate.bench.store.collections() == []
            assert await estate.state.registrations.load_all() == []
            nursery.cancel_scope.cancel(reason="the release is over")


async def test_a_release_that_keeps_the_index_needs_no_store(autojump_clock: MockClock) -> None:
    estate, outage = Estate(), Outage(hangs=False)
    estate.bench.tree(PRIMARY, a=words("apple"))
    with trio.fail_after(PATIENCE):
        async with estate.office(outage) as office:
            await (await office.register("one", PRIMARY)).settled()
            outage.is_on = True

            receipt = await office.registry.release("one", purge=False)

            assert not receipt.purged
            assert office.registry.leases() == []
        assert await estate.bench.store.collections() == [collection_name(PRIMARY)]


async def test_a_worktree_and_its_baseline_are_both_finished(autojump_clock: MockClock) -> None:
    estate, outage = Estate(), Outage(hangs=False)
    estate.bench.tree(PRIMARY, a=words("apple"))
    estate.bench.tree(WORKTREE, a=words("banana"))
    with trio.fail_after(PATIENCE):
        async with estate.office(outage) as office, trio.open_nursery() as nursery:
            nursery.start_soon(office.janitor.run)
            await (await office.register("primary", PRIMARY)).settled()
            await (await office.register("worktree", WORKTREE, PRIMARY)).settled()
            outage.is_on = True
            with pytest.raises(StoreUnavailable):
                await office.registry.release("worktree", purge=True)
            outage.is_on = False

            await office.registry.release("primary", purge=True, force=True)

            assert office.registry.leases() == []
            assert await estate.bench.store.collections() == []
            nursery.cancel_scope.cancel(reason="the release is over")
