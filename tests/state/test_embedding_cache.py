"""The SQLite embedding cache: what the twin cannot show."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path

import numpy as np
import pytest
import trio
import trio.testing
from attrs import evolve

from semindex.ports import CacheCounters
from semindex.state.database import open_database
from semindex.state.embedding_cache import DEFAULT_MAX_BYTES, SqliteEmbeddingCache, open_embedding_cache
from semindex.state.schema import EMBEDDINGS
from semindex.state.vectors import find
from tests.state.conformance import PATIENCE, EmbeddingCacheConformance, OpenCache, assert_same, digests, vectors
from tests.state.notes import write_notes

KEYS = digests(*map(str, range(100)))
VECTORS = vectors(100, 64)


class TestSqliteEmbeddingCache(EmbeddingCacheConformance):
    @pytest.fixture
    def open_cache(self, tmp_path: Path) -> OpenCache:
        def open_cache(*, limited: bool = False) -> AbstractAsyncContextManager[SqliteEmbeddingCache]:
            return open_embedding_cache(tmp_path / "embeddings.sqlite", 320_000 if limited else DEFAULT_MAX_BYTES)

        return open_cache


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    """A cache that holds VECTORS by KEYS in the space "space"."""
    async with open_embedding_cache(tmp_path / "embeddings.sqlite") as cache:
        await cache.put("space", KEYS, VECTORS)
    return tmp_path / "embeddings.sqlite"


def alter(path: Path, statement: str, *arguments: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, arguments).rowcount > 0


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(number)


OF_KEY = "WHERE id = (SELECT id FROM entries WHERE digest = ?)"
ROW_DAMAGE: dict[str, Callable[[Path], None]] = {
    "one bit differs": lambda path: alter(
        path, f"UPDATE vectors SET vector = ? {OF_KEY}", flipped(VECTORS[7]), KEYS[7]
    ),
    "it is too short": lambda path: alter(
        path, f"UPDATE vectors SET vector = substr(vector, 1, 252) {OF_KEY}", KEYS[7]
    ),
    "it is empty": lambda path: alter(path, f"UPDATE vectors SET vector = x'' {OF_KEY}", KEYS[7]),
    "it is text": lambda path: alter(path, f"UPDATE vectors SET vector = CAST(x'ffff' AS TEXT) {OF_KEY}", KEYS[7]),
    "it is missing": lambda path: alter(path, f"DELETE FROM vectors {OF_KEY}", KEYS[7]),
    "it is another's": lambda path: alter(
        path,
        f"UPDATE vectors SET (checksum, vector) = (SELECT checksum, vector FROM vectors {OF_KEY}) {OF_KEY}",
        KEYS[8],
        KEYS[7],
    ),
}


def flipped(vector: np.ndarray[tuple[int], np.dtype[np.float32]]) -> bytes:
    data = bytearray(vector.tobytes())
    data[100] ^= 1
    return bytes(data)


@pytest.mark.parametrize("damage", ROW_DAMAGE)
async def test_a_damaged_vector_is_a_miss_and_can_be_put_again(
    path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    ROW_DAMAGE[damage](path)
    others = KEYS[:7] + KEYS[8:]

    async with open_embedding_cache(path) as cache:
        assert_same(await cache.get("space", KEYS), others, np.delete(VECTORS, 7, axis=0))
        assert (await cache.counters()).misses == 1
        assert "1 damaged" in caplog.text

        caplog.clear()
        assert await cache.get("space", KEYS[7:8]) == {}
        assert caplog.text == ""

        await cache.put("space", KEYS[7:8], VECTORS[7:8])
        assert_same(await cache.get("space", KEYS), KEYS, VECTORS)


def overwrite(path: Path, first: int, last: int | None = None) -> None:
    """Fill pages with noise."""
    size = EMBEDDINGS.page_size
    with path.open("r+b") as file:
        for page in range(first, last or path.stat().st_size // size):
            file.seek(page * size)
            file.write(b"\xa5" * size)


FILE_DAMAGE: dict[str, Callable[[Path], object]] = {
    "is text": lambda path: path.write_text("not a database\n" * 1000),
    "has a damaged header": lambda path: overwrite(path, 0, 1),
    "has damaged pages": lambda path: overwrite(path, 2),
    "is a directory": lambda path: path.rename(path.with_name("old")).with_name(path.name).mkdir(),
    "belongs to another program": lambda path: shutil.copy(path.with_name("notes.db"), path),
}


@pytest.mark.parametrize("damage", FILE_DAMAGE)
async def test_a_damaged_file_is_moved_aside_and_the_cache_begins_anew(
    path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    await write_notes(path.with_name("notes.db"), "of another program")
    FILE_DAMAGE[damage](path)

    with trio.fail_after(PATIENCE):
        async with open_embedding_cache(path) as cache:
            assert await cache.get("space", KEYS) == {}
            assert len(caplog.records) == 1
            assert f"{path}" in caplog.text

            await cache.put("space", KEYS, VECTORS)
            assert_same(await cache.get("space", KEYS), KEYS, VECTORS)

    assert path.with_name("embeddings.sqlite.damaged").exists()
    assert len(caplog.records) == 1


async def test_a_cache_of_a_newer_version_is_moved_aside(path: Path) -> None:
    newer = evolve(EMBEDDINGS, migrations=(*EMBEDDINGS.migrations, ("CREATE TABLE of_the_future (x)",)))
    async with open_database(path, newer):
        pass

    async with open_embedding_cache(path) as cache:
        assert await cache.get("space", KEYS) == {}
        await cache.put("space", KEYS, VECTORS)

    assert count(path.with_name("embeddings.sqlite.damaged"), "of_the_future") == 0
    assert count(path, "vectors") == 100


async def test_damage_found_by_many_at_once_is_mended_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with open_embedding_cache(path) as cache:
        overwrite(path, 1)

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                for number in range(20):
                    nursery.start_soon(cache.get, "space", KEYS[number:])
                    nursery.start_soon(cache.put, "space", KEYS[number : number + 1], VECTORS[number : number + 1])

        await cache.put("space", KEYS, VECTORS)
        assert_same(await cache.get("space", KEYS), KEYS, VECTORS)
    assert len(caplog.records) == 1


async def test_what_was_read_before_a_restart_outlives_what_was_not(tmp_path: Path) -> None:
    path, keys = tmp_path / "embeddings.sqlite", digests(*map(str, range(1000)))
    async with open_embedding_cache(path) as cache:
        await cache.put("space", keys, vectors(1000, 64))
    async with open_embedding_cache(path) as cache:
        await cache.get("space", keys[:300])
        size = (await cache.counters()).bytes

    async with open_embedding_cache(path, max_bytes=size) as cache:
        put = 0
        while count(path, "entries") == len(keys) + put:
            await cache.put("filler", digests(f"{put}"), vectors(1, 64))
            put += 1
        kept = set(await cache.get("space", keys))

    assert set(keys[:300]) < kept < set(keys)


async def test_reading_again_and_again_writes_nothing(tmp_path: Path) -> None:
    path, keys = tmp_path / "embeddings.sqlite", digests(*map(str, range(1500)))
    async with open_embedding_cache(path) as cache:
        await cache.put("space", keys, vectors(1500))

    async with open_embedding_cache(path) as cache:
        await cache.get("space", keys)
        with closing(sqlite3.connect(path)) as onlooker:
            before = onlooker.execute("PRAGMA data_version").fetchone()
            for _ in range(5):
                await cache.get("space", keys)

            assert onlooker.execute("PRAGMA data_version").fetchone() == before


async def test_a_put_that_has_to_wait_keeps_what_it_was_called_with(path: Path) -> None:
    keys, values = digests("new"), vectors(1, 64)
    async with open_embedding_cache(path) as cache:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            async with trio.open_nursery() as nursery:
                given, of_keys = values.copy(), keys.copy()
                nursery.start_soon(cache.put, "space", of_keys, given)
                await trio.testing.wait_all_tasks_blocked()
                given[:] = 0.0
                of_keys.clear()
                other.execute("ROLLBACK")

        assert_same(await cache.get("space", keys), keys, values)


async def test_a_cache_that_is_larger_than_it_may_be_shrinks_as_it_is_used(tmp_path: Path) -> None:
    path = tmp_path / "embeddings.sqlite"
    async with open_embedding_cache(path) as cache:
        for batch in range(10):
            await cache.put("space", digests(*(f"{batch} {n}" for n in range(1000))), vectors(1000, 64))
        large = await cache.counters()

    async with open_embedding_cache(path, max_bytes=500_000) as cache:
        assert await cache.counters() == CacheCounters(0, 0, large.bytes)
        sizes = []
        for name in "abcd":
            await cache.put("space", digests(name), vectors(1, 64))
            sizes.append((await cache.counters()).bytes)

        assert large.bytes > sizes[0] > sizes[-1]
        assert sizes[-1] <= 500_000
        assert set(await cache.get("space", digests(*"abcd"))) == set(digests(*"abcd"))


async def test_a_thousand_lookups_are_few_queries(path: Path) -> None:
    statements: list[str] = []
    asked = digests(*map(str, range(1000)))
    async with open_database(path, EMBEDDINGS) as database:
        await database.read(lambda connection: connection.set_trace_callback(statements.append))
        found = await database.read(lambda connection: find(connection, "space", asked, generation=0))

    assert len(found.vectors) == 100
    assert len(statements) <= 3


async def test_a_cache_without_a_directory_is_only_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with open_embedding_cache(tmp_path / "nowhere" / "embeddings.sqlite") as cache:
        await cache.put("space", KEYS, VECTORS)
        assert await cache.get("space", KEYS) == {}

        assert await cache.counters() == CacheCounters(0, 100, 0)
    assert len(caplog.records) == 1
