"""The state directory: private, and held by one process at a time."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

from semindex.model.errors import CellLocked, ConfigurationError, StateUnwritable
from semindex.state.cell_directory import LOCK_FILE, CellDirectory, Phase, open_cell_directory
from tests.state.conformance import PATIENCE

CHECKOUT = Path(__file__).parents[2]
URL = "http://127.0.0.1:7790"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def prepare(directory: Path, permissions: int, *files: str) -> None:
    for name in files:
        (directory / name).touch()
        (directory / name).chmod(0o644)
    directory.chmod(permissions)


def listing(directory: Path) -> dict[str, int]:
    return {file.name: mode(file) for file in directory.iterdir()}


async def open_and_leave(path: Path, wait_for_stopping: float = 0.0) -> None:
    with trio.fail_after(PATIENCE):
        async with open_cell_directory(path, wait_for_stopping):
            pass


class TestPrivacy:
    async def test_a_directory_is_made_for_its_owner_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "state" / "semindex"

        async with open_cell_directory(path) as directory:
            assert directory.database_path.parent == path

        assert mode(path) == 0o700
        assert mode(path / LOCK_FILE) == 0o600

    async def test_an_empty_directory_is_closed_to_others(self, tmp_path: Path) -> None:
        prepare(tmp_path, 0o755)

        await open_and_leave(tmp_path)

        assert mode(tmp_path) == 0o700

    async def test_a_cell_that_was_opened_to_others_is_closed_again_and_only_its_own_files(
        self, tmp_path: Path
    ) -> None:
        await open_and_leave(tmp_path)
        prepare(tmp_path, 0o755, "cell.sqlite", "cell.sqlite-wal", "notes.txt")

        await open_and_leave(tmp_path)

        assert mode(tmp_path) == 0o700
        assert listing(tmp_path) == {
            "cell.lock": 0o600,
            "cell.sqlite": 0o600,
            "cell.sqlite-wal": 0o600,
            "notes.txt": 0o644,
        }

    async def test_a_directory_with_another_purpose_is_not_closed_to_others(self, tmp_path: Path) -> None:
        prepare(tmp_path, 0o755, "thesis.tex")

        with pytest.raises(ConfigurationError, match=f"chmod 700 {tmp_path}"):
            await open_and_leave(tmp_path)

        assert mode(tmp_path) == 0o755
        assert listing(tmp_path) == {"thesis.tex": 0o644}

    async def test_a_private_directory_may_hold_other_things_too(self, tmp_path: Path) -> None:
        prepare(tmp_path, 0o700, "control-token")

        await open_and_leave(tmp_path)

        assert mode(tmp_path / "control-token") == 0o644

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
    async def test_a_directory_of_another_user_is_refused(self, tmp_path: Path) -> None:
        os.chown(tmp_path, 12345, -1)

        with pytest.raises(ConfigurationError, match=r"another user \(uid 12345\)"):
            await open_and_leave(tmp_path)

        assert listing(tmp_path) == {}

    async def test_a_file_in_its_place_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "state").touch()

        with pytest.raises(StateUnwritable, match=f"{tmp_path}/state"):
            await open_and_leave(tmp_path / "state")

    async def test_a_link_in_place_of_the_lock_is_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "target").touch()
        (tmp_path / LOCK_FILE).symlink_to(tmp_path / "target")

        with pytest.raises(StateUnwritable):
            await open_and_leave(tmp_path)

        assert (tmp_path / "target").read_bytes() == b""


class TestLock:
    async def test_a_directory_can_be_held_again_once_it_was_left(self, tmp_path: Path) -> None:
        await open_and_leave(tmp_path)
        await open_and_leave(tmp_path)

    @pytest.mark.parametrize("phase", [Phase.STARTING, Phase.READY])
    async def test_a_second_start_hears_at_once_who_holds_the_directory(self, tmp_path: Path, phase: Phase) -> None:
        async with open_cell_directory(tmp_path) as directory:
            await directory.announce(phase, URL)

            with pytest.raises(CellLocked, match=rf"{tmp_path} .*process {os.getpid()} \({phase}, {URL}\)"):
                await open_and_leave(tmp_path, wait_for_stopping=3600)

    async def test_a_holder_that_is_stopping_is_waited_for(self, tmp_path: Path) -> None:
        order: list[str] = []

        async def succeed() -> None:
            async with open_cell_directory(tmp_path, wait_for_stopping=3600):
                order.append("held by the second")

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                async with open_cell_directory(tmp_path) as directory:
                    await directory.announce(Phase.STOPPING, URL)
                    nursery.start_soon(succeed)
                    await trio.testing.wait_all_tasks_blocked(0.05)  # it has tried once, and waits for its next try
                    order.append("left by the first")

        assert order == ["left by the first", "held by the second"]

    async def test_a_holder_that_does_not_come_to_its_end_is_not_waited_for_any_longer(self, tmp_path: Path) -> None:
        async with open_cell_directory(tmp_path) as directory:
            await directory.announce(Phase.STOPPING)

            with pytest.raises(CellLocked, match="stopping"):
                await open_and_leave(tmp_path, wait_for_stopping=0.3)

    @pytest.mark.parametrize("said", [b"", b"[]", b'{"pid": 1, "phase": "asleep", "url": null}'])
    async def test_a_holder_that_does_not_say_who_it_is_holds_all_the_same(self, tmp_path: Path, said: bytes) -> None:
        with (tmp_path / LOCK_FILE).open("wb") as file:
            file.write(said)
            file.flush()
            fcntl.flock(file, fcntl.LOCK_EX)

            with pytest.raises(CellLocked, match="another process"):
                await open_and_leave(tmp_path, wait_for_stopping=3600)

    async def test_a_killed_holder_holds_nothing_though_its_children_live(self, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "tests.state.holding", str(tmp_path), URL]
        with trio.fail_after(PATIENCE):
            process = await trio.lowlevel.open_process(command, cwd=CHECKOUT, stdout=subprocess.PIPE)
            assert process.stdout is not None
            child = int(await process.stdout.receive_some())
            try:
                with pytest.raises(CellLocked, match=rf"process {process.pid} \(ready, {URL}\)"):
                    await open_and_leave(tmp_path)

                process.kill()
                await process.wait()
                await open_and_leave(tmp_path)
            finally:
                os.kill(child, signal.SIGKILL)

    async def test_whoever_reads_the_lock_file_reads_one_whole_announcement(self, tmp_path: Path) -> None:
        async def announce_for_ever(directory: CellDirectory) -> None:
            while True:
                for url in (None, URL, URL + "/x" * 500):
                    await directory.announce(Phase.READY, url)

        async with open_cell_directory(tmp_path) as directory, trio.open_nursery() as nursery:
            nursery.start_soon(announce_for_ever, directory)
            for _ in range(300):
                said = json.loads((tmp_path / LOCK_FILE).read_bytes())
                assert said["pid"] == os.getpid()
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
