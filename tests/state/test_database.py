"""One SQLite file: how it is opened, checked and migrated."""

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from semindex.model.errors import StateDamaged, StateUnwritable, StateVersion
from semindex.state.database import open_database
from semindex.state.schema import CELL, EMBEDDINGS
from tests.state.notes import NOTES, read_notes, write_notes, writing

TITLED = evolve(
    NOTES, migrations=(*NOTES.migrations, ("ALTER TABLE notes ADD title TEXT", "UPDATE notes SET title = 'old'"))
)
BROKEN = evolve(NOTES, migrations=(*NOTES.migrations, ("DELETE FROM notes", "INSERT INTO nowhere VALUES (1)")))


def contents(directory: Path) -> dict[str, str]:
    files = [file for file in directory.iterdir() if file.is_file()]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def modes(directory: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o777 for file in directory.iterdir()}


def half_made(path: Path) -> None:
    """Leave a file as SQLite does when it ends in the middle of the file's first transaction."""
    scratch = path.with_name("scratch.db")
    connection = sqlite3.connect(scratch, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")  # pages are written before the transaction is over
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE unfinished (business)")
    connection.executemany("INSERT INTO unfinished VALUES (?)", [("x" * 1000,)] * 100)
    for suffix in ("", "-journal"):
        shutil.copy(f"{scratch}{suffix}", f"{path}{suffix}")
    connection.close()
    scratch.unlink()
    assert path.stat().st_size > 0


@pytest.fixture
async def crashed(tmp_path: Path) -> Path:
    """A database as a crash leaves it: the newest notes are in the log alone."""
    async with open_database(tmp_path / "live.db", NOTES) as database:
        for number in range(400):
            await database.write(writing(f"{number} " + "x" * 500))
        await database.read(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
        await database.write(writing("in the log"))
        (directory := tmp_path / "crashed").mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"live.db{suffix}", directory / f"cell.db{suffix}")
    assert (directory / "cell.db-wal").stat().st_size > 0
    return directory / "cell.db"


class TestOpening:
    async def test_what_was_written_is_there_when_the_file_is_opened_again(self, tmp_path: Path) -> None:
        await write_notes(tmp_path / "cell.db", "one", "two")

        assert await read_notes(tmp_path / "cell.db") == ["one", "two"]

    async def test_what_a_crash_left_in_the_log_is_there(self, crashed: Path) -> None:
        texts = await read_notes(crashed)

        assert len(texts) == 401
        assert texts[-1] == "in the log"

    async def test_the_file_and_all_beside_it_are_private(self, tmp_path: Path) -> None:
        async with open_database(tmp_path / "cell.db", NOTES) as database:
            await database.write(writing("one"))
            found = modes(tmp_path)

        assert found == {"cell.db": 0o600, "cell.db-wal": 0o600, "cell.db-shm": 0o600}

    async def test_an_orderly_end_leaves_one_file(self, tmp_path: Path) -> None:
        await write_notes(tmp_path / "cell.db", "one")

        assert list(contents(tmp_path)) == ["cell.db"]

    @pytest.mark.parametrize("name", ["a b.db", "per%20cent.db", "question?.db", "#.db", "näme.db"])
    async def test_any_file_name_will_do(self, tmp_path: Path, name: str) -> None:
        await write_notes(tmp_path / name, "one")

        assert list(contents(tmp_path)) == [name]
        assert await read_notes(tmp_path / name) == ["one"]

    async def test_an_empty_file_is_a_new_database(self, tmp_path: Path) -> None:
        (tmp_path / "cell.db").touch()

        assert await read_notes(tmp_path / "cell.db") == []

    async def test_a_log_that_was_never_written_to_is_no_obstacle(self, tmp_path: Path) -> None:
        (tmp_path / "cell.db-wal").touch()

        assert await read_notes(tmp_path / "cell.db") == []

    async def test_a_start_that_ended_while_it_made_the_file_is_repeated(self, tmp_path: Path) -> None:
        half_made(tmp_path / "cell.db")

        assert await read_notes(tmp_path / "cell.db") == []
        assert list(contents(tmp_path)) == ["cell.db"]

    async def test_a_new_file_has_the_page_size_that_suits_its_rows(self, tmp_path: Path) -> None:
        async with open_database(tmp_path / "cell.db", EMBEDDINGS) as database:
            size = await database.read(lambda connection: connection.execute("PRAGMA page_size").fetchone())

        assert size == (EMBEDDINGS.page_size,)

    async def test_a_missing_directory_is_unwritable(self, tmp_path: Path) -> None:
        with pytest.raises(StateUnwritable, match=f"{tmp_path}/nowhere/cell.db"):
            await read_notes(tmp_path / "nowhere" / "cell.db")

    @pytest.mark.parametrize("loss", ["removed", "replaced"])
    async def test_nothing_is_acknowledged_in_a_file_that_has_lost_its_name(self, tmp_path: Path, loss: str) -> None:
        path = tmp_path / "cell.db"
        async with open_database(path, NOTES) as database:
            await database.write(writing("one"))
            path.rename(tmp_path / "moved")
            if loss == "replaced":
                path.touch()
            with pytest.raises(StateUnwritable, match="was removed or replaced"):
                await database.write(writing("two"))
            (tmp_path / "moved").rename(path)
            await database.write(writing("three"))

        assert await read_notes(path) == ["one", "three"]


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "is text": lambda path: path.write_text("[registrations]\n" * 1000),
    "is cut to half a page": lambda path: cut(path, 2048),
    "is cut to half a header": lambda path: cut(path, 50),
    "is cut to one page": lambda path: cut(path, 4096),
    "has lost its last pages": lambda path: cut(path, path.stat().st_size - 3 * 4096),
    "has a zeroed header": lambda path: overwrite(path, 0, bytes(100)),
    "has a page of noise": lambda path: overwrite(path, 4096 * 5, b"\xa5" * 4096),
    "has zeroed pages": lambda path: overwrite(path, 4096 * 7, bytes(2 * 4096)),
}
LOST: dict[str, Callable[[Path], object]] = {
    "is gone": lambda path: path.unlink(),
    "is empty": lambda path: cut(path, 0),
}


class TestDamage:
    @pytest.mark.parametrize("damage", DAMAGE)
    async def test_a_damaged_file_is_refused_and_stays_as_it_is(self, crashed: Path, damage: str) -> None:
        await read_notes(crashed)  # the log goes into the file
        await self.refuse(crashed, DAMAGE[damage])

    @pytest.mark.parametrize("damage", DAMAGE | LOST)
    async def test_the_log_of_a_damaged_file_stays_as_it_is(self, crashed: Path, damage: str) -> None:
        await self.refuse(crashed, (DAMAGE | LOST)[damage])

    async def refuse(self, path: Path, damage: Callable[[Path], object]) -> None:
        damage(path)
        before = contents(path.parent)

        with pytest.raises(StateDamaged, match=f"{path}"):
            await read_notes(path)

        after = contents(path.parent)
        after.pop("cell.db-shm", None)  # SQLite's index of the log, made anew at every start
        assert after == before

    async def test_a_database_of_another_kind_is_refused(self, tmp_path: Path) -> None:
        await write_notes(tmp_path / "cell.db", "one")
        before = contents(tmp_path)

        with pytest.raises(StateDamaged, match="another kind"):
            await read_notes(tmp_path / "cell.db", evolve(NOTES, application_id=4321))

        assert contents(tmp_path) == before

    async def test_a_database_of_some_other_program_is_refused(self, tmp_path: Path) -> None:
        connection = sqlite3.connect(tmp_path / "cell.db")
        connection.execute("CREATE TABLE contacts (name)")
        connection.close()
        before = contents(tmp_path)

        with pytest.raises(StateDamaged, match="another kind"):
            await read_notes(tmp_path / "cell.db")

        assert contents(tmp_path) == before

    async def test_a_directory_in_its_place_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(StateDamaged, match="not a file"):
            await read_notes(tmp_path)

    async def test_cell_and_cache_are_not_taken_for_each_other(self, tmp_path: Path) -> None:
        async with open_database(tmp_path / "cell.db", CELL):
            pass

        with pytest.raises(StateDamaged, match="another kind"):
            async with open_database(tmp_path / "cell.db", EMBEDDINGS):
                pass


class TestVersions:
    async def test_a_newer_file_is_refused_and_stays_as_it_is(self, crashed: Path) -> None:
        before = contents(crashed.parent)

        with pytest.raises(StateVersion, match=r"newer semindex \(version 1, this one knows 0\)"):
            await read_notes(crashed, evolve(NOTES, migrations=()))

        after = contents(crashed.parent)
        after.pop("cell.db-shm", None)
        assert after == before

    async def test_an_older_file_is_migrated_and_a_copy_kept(self, crashed: Path) -> None:
        async with open_database(crashed, TITLED) as database:
            titles = await database.read(lambda connection: connection.execute("SELECT title FROM notes").fetchall())

        assert titles == [("old",)] * 401
        assert len(await read_notes(crashed.with_name("cell.db.before-v2"))) == 401
        assert crashed.with_name("cell.db.before-v2").stat().st_mode & 0o777 == 0o600

    async def test_a_migrated_file_is_not_migrated_again(self, tmp_path: Path) -> None:
        await write_notes(tmp_path / "cell.db", "one")
        await read_notes(tmp_path / "cell.db", TITLED)
        (tmp_path / "cell.db.before-v2").unlink()

        assert await read_notes(tmp_path / "cell.db", TITLED) == ["one"]
        assert list(contents(tmp_path)) == ["cell.db"]

    async def test_a_new_file_takes_all_steps_and_leaves_no_copy(self, tmp_path: Path) -> None:
        assert await read_notes(tmp_path / "cell.db", TITLED) == []
        assert list(contents(tmp_path)) == ["cell.db"]

    async def test_a_migration_that_fails_changes_nothing(self, tmp_path: Path) -> None:
        await write_notes(tmp_path / "cell.db", "one")

        with pytest.raises(sqlite3.OperationalError, match="nowhere"):
            await read_notes(tmp_path / "cell.db", BROKEN)

        assert await read_notes(tmp_path / "cell.db") == ["one"]
        assert await read_notes(tmp_path / "cell.db", TITLED) == ["one"]
