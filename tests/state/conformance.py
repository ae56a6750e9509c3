"""What every ledger and every embedding cache must do: subclass a suite and provide the fixture that opens one."""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager

import numpy as np
import pytest
import trio
import trio.testing
from attrs import fields
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semindex.model.chunks import Signature
from semindex.model.status import FileRecord, FileState
from semindex.ports import EmbeddingCache, Ledger, Vectors

PATIENCE = 30.0
"""Seconds after which a wait is a hang."""

huge = st.integers(-(2**70), 2**70)
any_text = st.text(st.characters(codec=None, categories=None), max_size=20)
"""Lone surrogates too: they stand for names that are not UTF-8."""
record_fields: dict[str, st.SearchStrategy[object]] = {
    "path": any_text,
    "state": st.sampled_from(FileState),
    "file_hash": st.none() | st.text("0123456789abcdef", min_size=64, max_size=64),
    "signature": st.none() | st.builds(Signature, huge, huge, huge, huge),
    "chunks": st.integers(0, 2**40),
    "chunking": st.sampled_from(["", "kilo-1", "extended-7"]),
    "dirty": st.booleans(),
    "inherited": st.booleans(),
    "reason": st.none() | any_text,
}
records = st.builds(FileRecord, **record_fields)


def record(path: str, file_hash: str = "a" * 64, **fields: object) -> FileRecord:
    signature = Signature(120, 1_790_000_000_123_456_789, 1_790_000_000_987_654_321, 4711)
    values: dict[str, object] = {"signature": signature, "chunks": 3, "chunking": "extended-1", **fields}
    return FileRecord(path, FileState.INDEXED, file_hash, **values)  # type: ignore[arg-type]  # a test's shorthand


OpenLedger = Callable[[], AbstractAsyncContextManager[Ledger]]
"""Opens the ledger of one workspace; a second call gives what a restarted process would find."""


class LedgerConformance:
    def test_every_field_of_a_record_is_tried(self) -> None:
        assert set(record_fields) == {field.name for field in fields(FileRecord)}

    @pytest.fixture
    async def ledger(self, open_ledger: OpenLedger) -> AsyncIterator[Ledger]:
        with trio.fail_after(PATIENCE):
            async with open_ledger() as ledger:
                yield ledger

    async def test_a_new_ledger_is_empty(self, ledger: Ledger) -> None:
        assert await ledger.load() == {}

    async def test_records_come_back_as_they_were_written(self, ledger: Ledger) -> None:
        written = [
            record("src/a.py"),
            record("src/b.py", dirty=True, inherited=True, reason="The parser hung."),
            FileRecord("c", FileState.PENDING),
        ]

        await ledger.apply(written)

        assert await ledger.load() == {each.path: each for each in written}

    async def test_a_later_record_replaces_the_earlier_one_as_a_whole(self, ledger: Ledger) -> None:
        await ledger.apply([record("a", reason="lines only"), record("b")])

        await ledger.apply([FileRecord("a", FileState.FAILED, reason="gone wrong")])

        assert await ledger.load() == {"a": FileRecord("a", FileState.FAILED, reason="gone wrong"), "b": record("b")}

    async def test_of_two_records_for_a_path_in_one_call_the_last_one_counts(self, ledger: Ledger) -> None:
        await ledger.apply([record("a", "1" * 64), record("a", "2" * 64)])

        assert await ledger.load() == {"a": record("a", "2" * 64)}

    async def test_forgotten_paths_are_gone_and_nothing_below_them(self, ledger: Ledger) -> None:
        await ledger.apply([record("a"), record("a/b"), record("ab")])

        await ledger.apply([], forget=["a", "never seen"])

        assert sorted(await ledger.load()) == ["a/b", "ab"]

    async def test_a_path_that_is_forgotten_and_written_in_one_call_is_there(self, ledger: Ledger) -> None:
        await ledger.apply([record("a")])

        await ledger.apply([record("a", "b" * 64)], forget=["a"])

        assert await ledger.load() == {"a": record("a", "b" * 64)}

    async def test_changing_what_was_loaded_changes_nothing_that_is_kept(self, ledger: Ledger) -> None:
        await ledger.apply([record("a")])

        (await ledger.load()).clear()

        assert await ledger.load() == {"a": record("a")}

    async def test_a_cleared_ledger_is_empty_and_can_be_used_again(self, ledger: Ledger) -> None:
        await ledger.apply([record(f"file{number}") for number in range(5000)])

        await ledger.clear()
        assert await ledger.load() == {}

        await ledger.apply([record("again")])
        assert await ledger.load() == {"again": record("again")}

    async def test_thousands_of_records_are_loaded_completely(self, ledger: Ledger) -> None:
        written = {f"dir{number % 7}/file{number}": record(f"dir{number % 7}/file{number}") for number in range(4000)}
        await ledger.apply(list(written.values()))

        assert await ledger.load() == written

    async def test_calls_at_the_same_time_are_all_carried_out(self, ledger: Ledger) -> None:
        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                for number in range(50):
                    nursery.start_soon(ledger.apply, [record(f"file{number}")])

        assert len(await ledger.load()) == 50

    async def test_calls_by_one_task_take_effect_in_order(self, ledger: Ledger) -> None:
        for number in range(20):
            await ledger.apply([record("a", f"{number:064x}")])

        assert (await ledger.load())["a"].file_hash == f"{19:064x}"

    async def test_a_call_that_was_cancelled_before_it_began_has_changed_nothing(self, ledger: Ledger) -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await ledger.apply([record("a")])

        assert scope.cancelled_caught
        assert await ledger.load() == {}

    @pytest.mark.parametrize("call", ["load", "apply", "clear", "apply nothing"])
    async def test_every_call_is_a_checkpoint(self, ledger: Ledger, call: str) -> None:
        with trio.testing.assert_checkpoints():
            match call:
                case "load":
                    await ledger.load()
                case "apply":
                    await ledger.apply([record("a")])
                case "clear":
                    await ledger.clear()
                case _:
                    await ledger.apply([])

    @settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(steps=st.lists(st.tuples(st.lists(records, max_size=5), st.lists(any_text, max_size=3)), max_size=5))
    async def test_a_ledger_is_what_a_dictionary_would_be(
        self, open_ledger: OpenLedger, steps: Sequence[tuple[list[FileRecord], list[str]]]
    ) -> None:
        expected: dict[str, FileRecord] = {}
        async with open_ledger() as ledger:
            await ledger.clear()
            for written, forgotten in steps:
                await ledger.apply(written, forgotten)
                for path in forgotten:
                    expected.pop(path, None)
                expected.update((each.path, each) for each in written)
            assert await ledger.load() == expected

        async with open_ledger() as ledger:
            assert await ledger.load() == expected


def digests(*texts: str) -> list[bytes]:
    return [hashlib.sha256(text.encode()).digest() for text in texts]


def vectors(number: int, dimension: int = 8, seed: int = 0) -> Vectors:
    values = np.random.default_rng(seed).standard_normal((number, dimension)).astype(np.float32)
    normal: Vectors = values / np.linalg.norm(values, axis=1, keepdims=True)
    return normal


def assert_same(found: dict[bytes, Vectors], keys: Sequence[bytes], expected: Vectors) -> None:
    assert set(found) == set(keys)
    for key, vector in zip(keys, expected, strict=True):
        assert found[key].dtype == np.float32
        np.testing.assert_array_equal(found[key], vector)


ROOM = 400
"""Vectors of 64 components for which a small cache has room, give or take half of them."""

OpenCache = Callable[..., AbstractAsyncContextManager[EmbeddingCache]]
"""Opens the cache, with ``limited=True`` one of limited room; a second call gives what a restart would find."""


class EmbeddingCacheConformance:
    @pytest.fixture
    async def cache(self, open_cache: OpenCache) -> AsyncIterator[EmbeddingCache]:
        with trio.fail_after(PATIENCE):
            async with open_cache() as cache:
                yield cache

    @pytest.fixture
    async def small_cache(self, open_cache: OpenCache) -> AsyncIterator[EmbeddingCache]:
        with trio.fail_after(PATIENCE):
            async with open_cache(limited=True) as cache:
                yield cache

    async def test_what_was_put_is_there_after_a_restart(self, open_cache: OpenCache) -> None:
        keys, values = digests("one", "two"), vectors(2)
        async with open_cache() as cache:
            await cache.put("space", keys, values)

        async with open_cache() as cache:
            assert_same(await cache.get("space", keys), keys, values)
            assert (await cache.counters()).hits == 2

    async def test_what_was_put_comes_back_bit_by_bit(self, cache: EmbeddingCache) -> None:
        keys, values = digests("one", "two", "three"), vectors(3)

        await cache.put("space", keys, values)

        assert_same(await cache.get("space", keys), keys, values)

    async def test_what_was_not_put_is_not_there(self, cache: EmbeddingCache) -> None:
        await cache.put("space", digests("one"), vectors(1))

        assert await cache.get("space", digests("two", "three")) == {}
        assert set(await cache.get("space", digests("one", "two"))) == set(digests("one"))

    async def test_each_space_has_vectors_of_its_own(self, cache: EmbeddingCache) -> None:
        keys, small, large = digests("one"), vectors(1, 8), vectors(1, 768)
        await cache.put("openai\nsmall\n8\ndocument\n", keys, small)
        await cache.put("openai\nlarge\n768\ndocument\n", keys, large)

        assert_same(await cache.get("openai\nsmall\n8\ndocument\n", keys), keys, small)
        assert_same(await cache.get("openai\nlarge\n768\ndocument\n", keys), keys, large)
        assert await cache.get("openai\nsmall\n8\nquery\n", keys) == {}

    async def test_putting_again_replaces(self, cache: EmbeddingCache) -> None:
        keys = digests("one")
        await cache.put("space", keys, vectors(1, seed=1))

        await cache.put("space", keys, vectors(1, seed=2))

        assert_same(await cache.get("space", keys), keys, vectors(1, seed=2))

    async def test_a_digest_asked_for_twice_is_found_once(self, cache: EmbeddingCache) -> None:
        keys, values = digests("one"), vectors(1)
        await cache.put("space", keys, values)

        assert_same(await cache.get("space", keys * 3), keys, values)
        assert (await cache.counters()).hits == 1

    async def test_many_digests_are_found_in_one_call(self, cache: EmbeddingCache) -> None:
        keys, values = digests(*map(str, range(1300))), vectors(1300)
        await cache.put("space", keys, values)

        assert_same(await cache.get("space", keys), keys, values)

    async def test_nothing_asked_nothing_found_and_nothing_put(self, cache: EmbeddingCache) -> None:
        await cache.put("space", [], vectors(0))

        assert await cache.get("space", []) == {}
        assert (await cache.counters()).misses == 0

    async def test_a_vector_too_few_is_refused(self, cache: EmbeddingCache) -> None:
        with pytest.raises(ValueError, match="1 vectors for 2 digests"):
            await cache.put("space", digests("one", "two"), vectors(1))

        assert await cache.get("space", digests("one", "two")) == {}

    async def test_what_the_caller_does_to_its_arrays_later_changes_nothing(self, cache: EmbeddingCache) -> None:
        keys, values = digests("one"), vectors(1)
        given_away = values.copy()
        await cache.put("space", keys, given_away)
        given_away[:] = 7.0

        found = await cache.get("space", keys)

        assert_same(found, keys, values)
        with pytest.raises(ValueError, match="read-only"):
            found[keys[0]][0] = 7.0

    async def test_hits_and_misses_are_counted(self, cache: EmbeddingCache) -> None:
        await cache.put("space", digests("one", "two"), vectors(2))
        await cache.get("space", digests("one", "two", "three"))
        await cache.get("space", digests("one", "four", "five"))

        counters = await cache.counters()

        assert (counters.hits, counters.misses) == (3, 3)
        assert counters.bytes > 0

    async def test_the_size_stays_within_its_bound_and_the_newest_stay(self, small_cache: EmbeddingCache) -> None:
        for batch in range(3 * ROOM // 50):
            await small_cache.put("space", digests(*(f"{batch}-{n}" for n in range(50))), vectors(50, 64, batch))

        assert await small_cache.get("space", digests(*(f"0-{n}" for n in range(50)))) == {}
        assert len(await small_cache.get("space", digests(*(f"{3 * ROOM // 50 - 1}-{n}" for n in range(50))))) == 50

    async def test_what_is_used_outlives_what_is_not(self, small_cache: EmbeddingCache) -> None:
        keys = {name: digests(*(f"{name}-{n}" for n in range(50))) for name in ("used", "unused")}
        for name in keys:
            await small_cache.put("space", keys[name], vectors(50, 64))
        for batch in range(8 * ROOM // 50):
            await small_cache.get("space", keys["used"])
            await small_cache.put("space", digests(*(f"{batch}-{n}" for n in range(50))), vectors(50, 64, batch))

        assert await small_cache.get("space", keys["unused"]) == {}
        assert len(await small_cache.get("space", keys["used"])) == 50

    async def test_calls_at_the_same_time_do_not_disturb_each_other(self, cache: EmbeddingCache) -> None:
        async def use(name: str) -> None:
            keys, values = digests(*(f"{name}-{n}" for n in range(20))), vectors(20, seed=len(name))
            await cache.put("space", keys, values)
            assert_same(await cache.get("space", keys), keys, values)

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                for number in range(20):
                    nursery.start_soon(use, f"task{number}")

        assert (await cache.counters()).hits == 400

    @pytest.mark.parametrize("call", ["get", "get nothing", "put", "put nothing", "counters"])
    async def test_every_call_is_a_checkpoint(self, cache: EmbeddingCache, call: str) -> None:
        with trio.testing.assert_checkpoints():
            match call:
                case "get":
                    await cache.get("space", digests("one"))
                case "get nothing":
                    await cache.get("space", [])
                case "put":
                    await cache.put("space", digests("one"), vectors(1))
                case "put nothing":
                    await cache.put("space", [], vectors(0))
                case _:
                    await cache.counters()
