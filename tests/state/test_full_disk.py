"""Disks that are full or read-only: said with the path, nothing lost, and all well again once there is room."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trio

from semindex.model.errors import StateUnwritable
from semindex.state.cell_state import open_cell_state
from semindex.state.database import open_database
from semindex.state.embedding_cache import open_embedding_cache
from tests.state.conformance import PATIENCE, assert_same, digests, record, vectors
from tests.state.notes import NOTES, notes, read_notes, write_notes, writing

LARGE = "x" * 200_000


def mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    (disk := tmp_path / "disk").mkdir()
    if os.geteuid() or not mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)):
        pytest.skip("mounting a file system is not allowed here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(disk: Path) -> Path:
    """Leave no room at all."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    return ballast


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let no file of this process grow beyond so many bytes; any user can have this kind of full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_write_for_which_there_is_no_room_is_refused_and_later_ones_succeed(small_disk: Path) -> None:
    path = small_disk / "cell.db"
    async with open_database(path, NOTES) as database:
        await database.write(writing("before"))
        ballast = fill(small_disk)

        with pytest.raises(StateUnwritable, match=f"{path}.*full"):
            await database.write(writing(LARGE))
        assert await database.read(notes) == ["before"]

        ballast.unlink()
        await database.write(writing("after"))

    assert await read_notes(path) == ["before", "after"]


async def test_all_that_share_a_transaction_hear_that_there_was_no_room(small_disk: Path) -> None:
    refused: list[int] = []

    async def write_too_much(number: int) -> None:
        with pytest.raises(StateUnwritable):
            await database.write(writing(LARGE))
        refused.append(number)

    with trio.fail_after(PATIENCE):
        async with open_database(small_disk / "cell.db", NOTES) as database:
            fill(small_disk)
            async with trio.open_nursery() as nursery:
                for number in range(5):
                    nursery.start_soon(write_too_much, number)

            assert sorted(refused) == [0, 1, 2, 3, 4]
            assert await database.read(notes) == []


async def test_a_cell_cannot_start_on_a_full_disk_and_can_once_there_is_room(small_disk: Path) -> None:
    for existing in (False, True):
        ballast = fill(small_disk)
        with pytest.raises(StateUnwritable, match=f"{small_disk}"):
            async with open_cell_state(small_disk / "cell.sqlite"):
                pass
        ballast.unlink()

        async with open_cell_state(small_disk / "cell.sqlite") as state:
            assert list(await state.ledger("/repo").load()) == ["before"] * existing
            await state.ledger("/repo").apply([record("before")])


async def test_a_read_only_disk_is_named(small_disk: Path) -> None:
    await write_notes(small_disk / "cell.db", "before")
    assert mount("-o", "remount,ro", str(small_disk))

    with pytest.raises(StateUnwritable, match=f"{small_disk}/cell.db"):
        await write_notes(small_disk / "cell.db", "after")
    with pytest.raises(StateUnwritable, match=f"{small_disk}/new.db"):
        await write_notes(small_disk / "new.db", "after")


async def test_a_file_that_may_not_grow_is_unwritable_and_keeps_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "cell.sqlite"
    async with open_cell_state(path) as state:
        await state.ledger("/repo").apply([record("before")])
        with largest_file(300_000):
            with pytest.raises(StateUnwritable, match=f"{path}"):
                await state.ledger("/repo").apply([record(f"{number}", reason="x" * 200) for number in range(4000)])
            assert await state.ledger("/repo").load() == {"before": record("before")}
        await state.ledger("/repo").apply([record("after")])

    async with open_cell_state(path) as state:
        assert sorted(await state.ledger("/repo").load()) == ["after", "before"]


async def test_a_cache_on_a_full_disk_keeps_nothing_warns_once_and_recovers(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept, lost, later = (digests(*(f"{name} {n}" for n in range(200))) for name in ("kept", "lost", "later"))
    async with open_embedding_cache(small_disk / "embeddings.sqlite") as cache:
        await cache.put("space", kept[:20], vectors(20, 512))
        ballast = fill(small_disk)

        for _ in range(3):
            await cache.put("space", lost, vectors(200, 512))
        assert_same(await cache.get("space", kept[:20]), kept[:20], vectors(20, 512))
        assert await cache.get("space", lost) == {}
        assert [entry.levelname for entry in caplog.records] == ["WARNING"]
        assert str(small_disk) in caplog.text

        ballast.unlink()
        await cache.put("space", later, vectors(200, 512))
        assert_same(await cache.get("space", later), later, vectors(200, 512))

        fill(small_disk)
        await cache.put("space", lost, vectors(200, 512))
        assert len(caplog.records) == 2


async def test_a_cache_that_cannot_even_be_made_is_tried_again(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = digests("one")
    ballast = fill(small_disk)
    async with open_embedding_cache(small_disk / "embeddings.sqlite") as cache:
        await cache.put("space", keys, vectors(1))
        assert await cache.get("space", keys) == {}
        assert len(caplog.records) == 1

        ballast.unlink()
        await cache.put("space", keys, vectors(1))
        assert_same(await cache.get("space", keys), keys, vectors(1))


async def test_a_cache_file_that_may_not_grow_never_troubles_its_users(tmp_path: Path) -> None:
    keys = digests(*map(str, range(500)))
    async with open_embedding_cache(tmp_path / "embeddings.sqlite") as cache:
        with largest_file(200_000):
            await cache.put("space", keys, vectors(500, 512))
            assert await cache.get("space", keys) == {}
        await cache.put("space", keys, vectors(500, 512))
        assert_same(await cache.get("space", keys), keys, vectors(500, 512))
