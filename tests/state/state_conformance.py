"""What every implementation of the cell's state must do: subclass the suite and provide the fixture that opens one."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
import trio
from attrs import evolve, fields
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semindex.model.errors import UnknownRegistration
from semindex.model.registrations import (
    Lifecycle,
    Operation,
    OperationKind,
    OperationState,
    Registration,
    Retained,
    TokenRecord,
    token_digest,
)
from semindex.ports import CellState
from tests.state.conformance import PATIENCE, record

OpenState = Callable[[], AbstractAsyncContextManager[CellState]]
"""Opens the state of one cell; a second call gives what a restarted process would find."""

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)

text = st.text(st.characters(codec="utf-8"), max_size=20)
times = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))]))
flags = st.none() | st.booleans()
registration_fields: dict[str, st.SearchStrategy[object]] = {
    "id": st.text("abz019._:-", min_size=1, max_size=4),
    "path": text,
    "baseline_path": st.none() | text,
    "created_at": times,
    "lifecycle": st.sampled_from(Lifecycle),
    "purge_on_release": flags,
    "project_id": st.none() | text,
    "workspace_id": st.none() | text,
    "device": st.none() | st.integers(0, 2**64 - 1),
    "purge": flags,
}
registrations = st.builds(Registration, **registration_fields)


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


def registration(name: str, path: str = "/repo", **fields: object) -> Registration:
    values: dict[str, object] = {"baseline_path": None, "created_at": NOON, **fields}
    return Registration(name, path, **values)  # type: ignore[arg-type]  # a test's shorthand


def token(name: str, registration_id: str) -> TokenRecord:
    return TokenRecord(name, registration_id, token_digest(name), f"for {name}", NOON)


def operation(number: int, **fields: object) -> Operation:
    values: dict[str, object] = {"kind": OperationKind.REINDEX, "started_at": minute(number), **fields}
    return Operation(f"{number:08}", "a", **values)  # type: ignore[arg-type]  # a test's shorthand


class CellStateConformance:
    def test_every_field_of_a_registration_is_tried(self) -> None:
        assert set(registration_fields) == {field.name for field in fields(Registration)}

    @pytest.fixture
    async def state(self, open_state: OpenState) -> AsyncIterator[CellState]:
        with trio.fail_after(PATIENCE):
            async with open_state() as state:
                yield state

    async def test_a_new_cell_knows_nothing(self, state: CellState) -> None:
        assert await state.registrations.load_all() == []
        assert await state.registrations.load_retained() == []
        assert await state.operations.load_all() == []
        assert await state.tokens.load_all() == []
        assert await state.ledgers() == []

    async def test_the_cell_has_a_random_id_that_a_restart_does_not_change(self, open_state: OpenState) -> None:
        async with open_state() as state:
            first = state.cell_id
        async with open_state() as state:
            second = state.cell_id

        assert UUID(first).version == 4
        assert second == first

    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(saved=st.lists(registrations, max_size=6))
    async def test_registrations_come_back_after_a_restart_as_they_were_saved(
        self, open_state: OpenState, saved: list[Registration]
    ) -> None:
        async with open_state() as state:
            for known in await state.registrations.load_all():
                await state.registrations.delete(known.id)
            for each in saved:
                await state.registrations.save(each)

        async with open_state() as state:
            loaded = await state.registrations.load_all()

        expected = {each.id: each for each in saved}
        assert loaded == sorted(expected.values(), key=lambda each: (each.created_at, each.id))

    async def test_registrations_come_in_the_order_in_which_they_were_made(self, state: CellState) -> None:
        for name, number in (("b", 2), ("c", 1), ("a", 3)):
            await state.registrations.save(registration(name, created_at=minute(number)))

        assert [each.id for each in await state.registrations.load_all()] == ["c", "b", "a"]

    async def test_an_interrupted_release_is_known_after_a_restart(self, open_state: OpenState) -> None:
        async with open_state() as state:
            await state.registrations.save(registration("a", purge_on_release=False))
            await state.registrations.set_lifecycle("a", Lifecycle.RELEASING, purge=True)

        async with open_state() as state:
            [kept] = await state.registrations.load_all()

        assert kept == registration("a", purge_on_release=False, lifecycle=Lifecycle.RELEASING, purge=True)

    async def test_the_lifecycle_of_an_unknown_registration_cannot_be_set(self, state: CellState) -> None:
        with pytest.raises(UnknownRegistration, match="'nobody'"):
            await state.registrations.set_lifecycle("nobody", Lifecycle.STALE)

    async def test_only_the_registration_named_is_deleted(self, state: CellState) -> None:
        for name in ("a", "b"):
            await state.registrations.save(registration(name))

        assert await state.registrations.delete("a")
        assert not await state.registrations.delete("a")

        assert [each.id for each in await state.registrations.load_all()] == ["b"]
        assert await state.registrations.load_retained() == []

    async def test_data_are_retained_in_the_instant_in_which_the_registration_goes(self, open_state: OpenState) -> None:
        later = Retained("/other", "/repo", minute(1), ttl=60)
        retained = Retained("/repo", None, NOON)
        async with open_state() as state:
            await state.registrations.save(registration("a"))
            await state.registrations.delete("never there", later)
            await state.registrations.delete("a", retained)

        async with open_state() as state:
            assert await state.registrations.load_all() == []
            assert await state.registrations.load_retained() == [retained, later]

    async def test_retaining_again_counts_from_the_later_time(self, state: CellState) -> None:
        await state.registrations.delete("a", Retained("/repo", "/old", NOON, ttl=60))
        await state.registrations.delete("a", Retained("/repo", None, minute(1)))

        assert await state.registrations.load_retained() == [Retained("/repo", None, minute(1))]

    async def test_a_registration_adopts_what_was_retained_of_its_path_and_of_no_other(self, state: CellState) -> None:
        for path in ("/repo", "/repo/nested"):
            await state.registrations.delete("a", Retained(path, None, NOON))

        await state.registrations.save(registration("b", "/repo"))

        assert await state.registrations.load_retained() == [Retained("/repo/nested", None, NOON)]

    async def test_what_is_retained_can_be_discarded(self, state: CellState) -> None:
        await state.registrations.delete("a", Retained("/repo", None, NOON))

        assert await state.registrations.discard_retained("/repo")
        assert not await state.registrations.discard_retained("/repo")

        assert await state.registrations.load_retained() == []

    async def test_tokens_come_back_after_a_restart(self, open_state: OpenState) -> None:
        async with open_state() as state:
            await state.registrations.save(registration("a"))
            await state.tokens.add(token("one", "a"))
            await state.tokens.add(token("two", "a"))

        async with open_state() as state:
            assert await state.tokens.load_all() == [token("one", "a"), token("two", "a")]

    async def test_tokens_stay_when_their_registration_is_saved_again(self, state: CellState) -> None:
        await state.registrations.save(registration("a"))
        await state.tokens.add(token("one", "a"))

        await state.registrations.save(registration("a", lifecycle=Lifecycle.STALE))

        assert await state.tokens.load_all() == [token("one", "a")]

    async def test_tokens_go_with_their_registration(self, state: CellState) -> None:
        for name in ("a", "b"):
            await state.registrations.save(registration(name))
            await state.tokens.add(token(f"of {name}", name))

        await state.registrations.delete("a")

        assert await state.tokens.load_all() == [token("of b", "b")]

    async def test_a_token_needs_a_registration(self, state: CellState) -> None:
        with pytest.raises(UnknownRegistration, match="'a'"):
            await state.tokens.add(token("one", "a"))

        assert await state.tokens.load_all() == []

    async def test_a_token_is_deleted_only_in_the_name_of_its_own_registration(self, state: CellState) -> None:
        for name in ("a", "b"):
            await state.registrations.save(registration(name))
        await state.tokens.add(token("one", "a"))

        assert not await state.tokens.delete("b", "one")
        assert await state.tokens.load_all() == [token("one", "a")]
        assert await state.tokens.delete("a", "one")
        assert not await state.tokens.delete("a", "one")
        assert await state.tokens.load_all() == []

    async def test_operations_survive_their_registration_and_a_restart(self, open_state: OpenState) -> None:
        done = operation(1, state=OperationState.COMPLETED, completed_at=minute(2))
        failed = operation(2, state=OperationState.FAILED, completed_at=minute(3), error="The store does not answer.")
        async with open_state() as state:
            await state.registrations.save(registration("a"))
            await state.operations.save(failed)
            await state.operations.save(evolve(done, state=OperationState.RUNNING, completed_at=None))
            await state.operations.save(done)
            await state.registrations.delete("a")

        async with open_state() as state:
            assert await state.operations.load_all() == [done, failed]

    async def test_an_operation_that_a_restart_interrupted_has_failed(self, open_state: OpenState) -> None:
        async with open_state() as state:
            await state.operations.save(operation(1))

        async with open_state() as state:
            [interrupted] = await state.operations.load_all()

        assert (interrupted.state, interrupted.error) == (OperationState.FAILED, "interrupted")
        assert interrupted.completed_at is not None

    async def test_the_latest_thousand_ended_operations_are_kept_and_all_that_run(self, state: CellState) -> None:
        await state.operations.save(operation(0))
        async with trio.open_nursery() as nursery:
            for number in range(1, 1003):
                done = operation(number, state=OperationState.COMPLETED, completed_at=minute(number))
                nursery.start_soon(state.operations.save, done)

        kept = [each.id for each in await state.operations.load_all()]

        assert kept == [f"{number:08}" for number in (0, *range(3, 1003))]

    async def test_a_workspace_has_one_ledger_however_often_it_is_asked_for(self, state: CellState) -> None:
        await state.ledger("/b").apply([record("x")])
        await state.ledger("/a").apply([record("y")])
        await state.ledger("/empty").apply([], forget=["z"])

        assert await state.ledger("/b").load() == {"x": record("x")}
        assert await state.ledgers() == ["/a", "/b"]

    async def test_a_cleared_ledger_is_not_listed(self, state: CellState) -> None:
        await state.ledger("/a").apply([record("x")])
        await state.ledger("/a").clear()

        assert await state.ledgers() == []
