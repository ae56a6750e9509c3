"""Cancelled at any step of registering and releasing, nothing acknowledged is lost; the next start ends what began."""

from collections.abc import Awaitable, Callable

import pytest
import trio
from attrs import define, field

from semindex.model.ids import collection_name
from semindex.model.registrations import Lifecycle
from semindex.model.status import State
from semindex.testing.bench import words
from semindex.testing.sweep import Begin, cancel_at_every_step
from tests.registries import PRIMARY, WORKTREE, Estate, Office

PATIENCE = 600.0
PATHS = {"primary": PRIMARY, "worktree": WORKTREE}


@define
class Scene:
    """An estate, and what was asked of its registry and acknowledged by it."""

    estate: Estate = field(factory=Estate)
    registered: set[str] = field(factory=set)
    """Acknowledged, and no release was asked for."""
    released: set[str] = field(factory=set)
    """Acknowledged."""
    accepted: trio.Event = field(factory=trio.Event)
    """Something is registered."""

    def __attrs_post_init__(self) -> None:
        self.estate.bench.tree(PRIMARY, alpha=words("alpha"), beta=words("beta"))
        self.estate.bench.tree(WORKTREE, alpha=words("alpha"), beta=words("gamma"))

    async def register(self, office: Office, name: str, baseline: str | None = None) -> None:
        workspace = await office.register(name, PATHS[name], baseline)
        self.registered.add(name)
        self.accepted.set()
        await workspace.settled()

    async def release(self, office: Office, name: str, *, force: bool = False) -> None:
        self.registered -= PATHS.keys() if force else {name}
        receipt = await office.registry.release(name, purge=True, force=force)
        assert receipt.purged
        self.released |= PATHS.keys() if force else {name}

    async def check(self, step: int) -> None:
        """Start again, carry on what was begun, and compare with what was asked for and acknowledged."""
        with trio.fail_after(PATIENCE):
            async with self.estate.office() as office:
                for lease in office.registry.leases():
                    if lease.registration.lifecycle is Lifecycle.RELEASING:
                        await office.registry.release(lease.registration.id)
                left = {lease.registration.id: lease.workspace for lease in office.registry.leases()}
                assert self.registered <= left.keys(), f"lost after step {step}"
                assert not self.released & left.keys(), f"not released after step {step}"
                for workspace in left.values():
                    assert workspace is not None
                    assert (await workspace.settled()).state is State.INDEXED
                stored = set(await office.bench.store.collections())
                assert stored == {collection_name(PATHS[name]) for name in left}, f"left over after step {step}"


async def register(scene: Scene, office: Office, begin: Begin) -> None:
    begin()
    await scene.register(office, "primary")
    await scene.register(office, "worktree", PRIMARY)


async def release_one(scene: Scene, office: Office, begin: Begin) -> None:
    await scene.register(office, "primary")
    await scene.register(office, "worktree", PRIMARY)
    begin()
    await scene.release(office, "worktree")


async def release_both(scene: Scene, office: Office, begin: Begin) -> None:
    await scene.register(office, "primary")
    await scene.register(office, "worktree", PRIMARY)
    begin()
    await scene.release(office, "primary", force=True)


async def release_in_the_middle_of_a_build(scene: Scene, office: Office, begin: Begin) -> None:
    begin()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scene.register, office, "primary")
        await scene.accepted.wait()
        await scene.release(office, "primary")


@pytest.mark.parametrize(
    "act", [register, release_one, release_both, release_in_the_middle_of_a_build], ids=lambda act: act.__name__
)
def test_wherever_it_is_cancelled_a_registry_keeps_its_word_and_the_next_start_ends_what_was_begun(
    act: Callable[[Scene, Office, Begin], Awaitable[None]],
) -> None:
    def make() -> tuple[Callable[[Begin], Awaitable[None]], Callable[[int], Awaitable[None]]]:
        scene = Scene()

        async def scenario(begin: Begin) -> None:
            with trio.fail_after(PATIENCE):
                async with scene.estate.office() as office:
                    await act(scene, office, begin)

        return scenario, scene.check

    assert cancel_at_every_step(make) > 30
