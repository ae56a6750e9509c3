import trio
import trio.testing

from semindex.engine.revision import Revision


async def test_whoever_waits_is_woken_once_by_many_bumps() -> None:
    revision, seen = Revision(), list[int]()

    async def watch() -> None:
        last = 0
        while True:
            last = await revision.beyond(last)
            seen.append(last)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(3):
            revision.bump()
        await trio.testing.wait_all_tasks_blocked()
        revision.bump()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

    assert seen == [3, 4]


async def test_what_has_happened_already_is_not_waited_for() -> None:
    revision = Revision()
    revision.bump()

    with trio.fail_after(1):
        assert await revision.beyond(0) == 1


async def test_a_whole_counts_the_changes_of_its_parts_but_not_the_other_way_round() -> None:
    whole = Revision()
    one, other = Revision(whole), Revision(whole)
    one.bump()
    other.bump()
    whole.bump()

    assert (whole.value, one.value, other.value) == (3, 1, 1)
    with trio.fail_after(1):
        assert await whole.beyond(2) == 3
