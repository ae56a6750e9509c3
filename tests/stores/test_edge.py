"""The embedded store on the real engine: the conformance suite, and what only a child process can do wrong."""

import importlib.metadata
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trio
import trio.testing
from attrs import frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from semindex.model.errors import ConfigurationError, StoreRejected, StoreUnavailable
from semindex.model.ids import point_id
from semindex.model.points import Hit
from semindex.ports import VectorStore
from semindex.stores import edge_files, edge_optimizer
from semindex.stores.edge import EdgeVectorStore, open_edge_store
from semindex.stores.edge_connection import worker_command
from semindex.stores.memory import MemoryVectorStore
from tests.stores.conformance import WS, VectorStoreConformance, paths, payload, points, put, vectors

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs file descriptors of processes")
QUERY = vectors([1, 0])[0]


class TestEdgeVectorStore(VectorStoreConformance):
    @pytest.fixture
    async def store(self, directory: Path) -> AsyncIterator[VectorStore]:
        async with open_edge_store(directory) as store:
            yield store


@asynccontextmanager
async def opened(directory: Path, *, call_deadline: float = 30) -> AsyncIterator[EdgeVectorStore]:
    with trio.fail_after(60):
        async with open_edge_store(directory, call_deadline=call_deadline) as store:
            yield store


def files(directory: Path, pattern: str) -> set[Path]:
    return set(directory.glob(pattern))


def names_below(directory: Path) -> set[str]:
    """Return what lies beside each other, but for the copies of empty collections."""
    return {entry.name for entry in directory.iterdir() if not entry.name.startswith("blank.")}


async def worker_of(store: EdgeVectorStore) -> int:
    """Return the process id of a worker that has answered."""
    await store.collections()
    assert store.health.pid is not None
    return store.health.pid


async def put_many(store: VectorStore, count: int, path: str = "many.py", first: int = 0) -> list[str]:
    numbers = range(first, first + count)
    ids = [point_id(f"{path}:{number}") for number in numbers]
    rows = np.random.default_rng(first).normal(size=(count, 2)).astype(np.float32)
    await store.upsert(WS, ids, rows, [payload(path, number) for number in numbers])
    return ids


async def test_what_was_stored_is_there_after_closing(directory: Path) -> None:
    async with opened(directory) as store:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])
        await store.write_metadata(WS, {"a": 1})

    async with opened(directory) as store:
        info = await store.describe(WS)
        assert info is not None
        assert (info.dimension, info.points, info.metadata) == (2, 1, {"a": 1, "type": "metadata"})
        assert await paths(store) == ["a.py"]


async def test_killing_the_worker_at_any_time_loses_nothing_acknowledged(directory: Path) -> None:
    """A batch is sent again only if its own call was under way; engine 0.8 lost all others that were not flushed."""
    stored: list[str] = []
    deleted: list[str] = []
    progress = trio.Semaphore(0)

    async def write(store: EdgeVectorStore, writer: str) -> None:
        for batch in range(40):
            path = f"{writer}/{batch}.py"
            ids = await put_many(store, 20, path)
            if batch % 5 == 0:
                await store.delete_files(WS, [path])
            (stored if batch % 5 else deleted).extend(ids)
            progress.release()

    async def kill(store: EdgeVectorStore) -> None:
        for number in range(1, 80):
            await progress.acquire()
            if number % 16 == 0 and store.health.pid is not None:
                os.kill(store.health.pid, signal.SIGKILL)

    async with opened(directory) as store:
        await store.create(WS, 2)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(kill, store)
            nursery.start_soon(write, store, "a")
            nursery.start_soon(write, store, "b")

        assert store.health.restarts >= 2
        assert set(await store.fetch_vectors(WS, stored + deleted)) == set(stored)
        assert await points(store) == len(stored)
        files = {f"{writer}/{batch}.py": {"hash": 20} for writer in "ab" for batch in range(40) if batch % 5}
        assert await store.file_points(WS) == files


async def test_a_worker_that_was_killed_is_replaced_within_the_next_call(directory: Path) -> None:
    async with opened(directory) as store:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])
        first = await worker_of(store)
        os.kill(first, signal.SIGKILL)

        assert await paths(store) == ["a.py"]
        assert store.health.pid != first
        assert store.health.restarts == 1
        assert store.health.last_error is not None
        assert "signal 9 (Killed)" in store.health.last_error


async def test_calls_wait_while_the_worker_stands_still_and_each_gets_its_own_answer(directory: Path) -> None:
    async with opened(directory) as store:
        await store.create(WS, 2)
        for number in range(20):
            await put(store, f"{number}/a.py", [1, 0])
        worker = await worker_of(store)
        os.kill(worker, signal.SIGSTOP)
        answers: dict[int, list[str]] = {}

        async def find(number: int) -> None:
            answers[number] = await paths(store, segments=[str(number)])

        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as given_up:
                for number in range(20):
                    (nursery if number % 2 else given_up).start_soon(find, number)
                await trio.testing.wait_all_tasks_blocked()
                given_up.cancel_scope.cancel()
            os.kill(worker, signal.SIGCONT)

        assert answers == {number: [f"{number}/a.py"] for number in range(1, 20, 2)}
        assert store.health.restarts == 0


async def test_a_worker_that_hangs_is_replaced_and_nothing_is_lost(directory: Path) -> None:
    async with opened(directory) as store:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])

    async with opened(directory, call_deadline=2) as store:
        os.kill(await worker_of(store), signal.SIGSTOP)

        with pytest.raises(StoreUnavailable, match="did not answer within 2 s"):
            await points(store)

        assert await paths(store) == ["a.py"]


SERVICE = """
import sys, trio
from pathlib import Path
from semindex.stores.edge import open_edge_store
async def main():
    async with open_edge_store(Path(sys.argv[1])) as store:
        await store.create("ws", 2)
        sys.stdout.write(f"{store.health.pid}\\n")
        sys.stdout.flush()
        await trio.sleep_forever()
trio.run(main)
"""


@LINUX
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_no_worker_outlives_the_service(directory: Path, number: int) -> None:
    service = subprocess.Popen(
        [sys.executable, "-c", SERVICE, str(directory)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with service:
        assert service.stdout is not None
        worker = os.pidfd_open(int(service.stdout.readline()))
        ended = select.poll()
        ended.register(worker, select.POLLIN)
        assert not ended.poll(0)

        service.send_signal(number)

        assert ended.poll(20_000)
        os.close(worker)


async def test_no_worker_outlives_a_store_that_is_cancelled(directory: Path) -> None:
    with trio.CancelScope() as scope:
        async with opened(directory) as store:
            worker = await worker_of(store)
            scope.cancel()
            await trio.lowlevel.checkpoint()

    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


async def test_a_store_that_another_process_uses_is_named_and_left_alone(directory: Path) -> None:
    async with opened(directory) as first:
        await first.create(WS, 2)
        await put(first, "a.py", [1, 0])

        async with opened(directory) as second:
            with pytest.raises(StoreUnavailable, match="in use by another process"):
                await second.describe(WS)

        assert await paths(first) == ["a.py"]


async def test_a_damaged_collection_is_absent_after_a_warning_and_can_be_built_again(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(directory) as store:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])
        await store.close(WS)
        [damaged] = files(directory / WS, "segments/*/vector_storage/deleted/status.dat")
        os.truncate(damaged, 0)

        with caplog.at_level(logging.WARNING):
            assert await store.describe(WS) is None

        assert f"was set aside as {directory / WS}.bad-1" in caplog.text
        assert await store.collections() == []
        with pytest.raises(StoreRejected, match="does not exist"):
            await put(store, "a.py", [1, 0])
        await store.create(WS, 2)
        await put(store, "b.py", [1, 0])
        assert await store.drop(WS) is True

    assert names_below(directory) == set()


async def test_a_call_that_meets_the_damage_says_where_it_went(directory: Path) -> None:
    async with opened(directory) as store:
        await store.create(WS, 2)
        await store.close(WS)
        (directory / WS / "edge_config.json").write_text("")

        with pytest.raises(StoreRejected, match=rf"{WS} does not exist any more: .*{WS}\.bad-1.*index again"):
            await paths(store)


@pytest.fixture
def always_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every collection is worth optimising."""
    monkeypatch.setattr(edge_optimizer, "worth_optimizing", lambda **_: True)


@pytest.fixture
def endless(directory: Path, monkeypatch: pytest.MonkeyPatch, always_worth: None) -> Callable[[], Awaitable[None]]:
    """An optimisation begins and never ends; wait until it is under way, its copy made."""
    pipe = directory.with_name("under way")
    os.mkfifo(pipe)
    forever = f"import time; open({str(pipe)!r}, 'w').close(); time.sleep(1000)"

    def replaced(mode: str, *arguments: Any) -> list[str]:
        return [sys.executable, "-c", forever] if mode == "optimize" else worker_command(mode, *arguments)

    async def under_way() -> None:
        await trio.to_thread.run_sync(pipe.read_bytes, abandon_on_cancel=True)

    monkeypatch.setattr(edge_optimizer, "worker_command", replaced)
    return under_way


@asynccontextmanager
async def being_optimised(directory: Path, under_way: Callable[[], Awaitable[None]]) -> AsyncIterator[EdgeVectorStore]:
    """Open a store with one point, in which an optimisation is under way until it is given up or the end comes."""
    async with opened(directory) as store, trio.open_nursery() as nursery:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])
        nursery.start_soon(store.optimize, WS)
        await under_way()
        yield store
        nursery.cancel_scope.cancel()


async def test_dead_points_are_cleaned_up_while_searches_go_on(directory: Path) -> None:
    async with opened(directory) as store:
        await store.create(WS, 2)
        kept = await put_many(store, 1500, "kept.py")
        await put_many(store, 1500, "gone.py")
        await store.delete_files(WS, ["gone.py"])
        segments = files(directory / WS, "segments/*")
        running = True

        async def use() -> None:
            while running:
                assert await points(store) == 1500

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(use)
            await store.optimize(WS)
            running = False

        assert files(directory / WS, "segments/*") != segments
        assert len(await store.fetch_vectors(WS, kept)) == 1500
        await put(store, "new.py", [1, 0])
        assert await points(store) == 1501
    assert names_below(directory) == {WS}
    async with opened(directory) as store:
        assert await points(store) == 1501


async def test_a_small_collection_is_not_optimised(directory: Path) -> None:
    async with opened(directory) as store:
        await store.create(WS, 2)
        await put_many(store, 500)
        segments = files(directory / WS, "segments/*")
        await store.optimize(WS)

        assert files(directory / WS, "segments/*") == segments


async def test_searches_do_not_wait_for_an_optimisation(
    directory: Path, endless: Callable[[], Awaitable[None]]
) -> None:
    async with being_optimised(directory, endless) as store:
        assert await paths(store) == ["a.py"]
        assert await points(store) == 1
    assert names_below(directory) == {WS}


async def test_a_worker_that_dies_meanwhile_leaves_the_copy_alone(
    directory: Path, endless: Callable[[], Awaitable[None]]
) -> None:
    async with being_optimised(directory, endless) as store:
        os.kill(await worker_of(store), signal.SIGKILL)
        assert await points(store) == 1
        assert names_below(directory) == {WS, f"{WS}.optimised"}
    assert names_below(directory) == {WS}


@pytest.mark.parametrize("write", ["upsert", "delete", "metadata", "drop"])
async def test_a_write_ends_an_optimisation_and_is_in_the_collection(
    directory: Path, endless: Callable[[], Awaitable[None]], write: str
) -> None:
    async with being_optimised(directory, endless) as store:
        if write == "upsert":
            await put(store, "b.py", [1, 0])
            assert sorted(await paths(store)) == ["a.py", "b.py"]
        elif write == "delete":
            await store.delete_files(WS, ["a.py"])
            assert await paths(store) == []
        elif write == "metadata":
            await store.write_metadata(WS, {"a": 1})
            info = await store.describe(WS)
            assert info is not None
            assert info.metadata == {"a": 1, "type": "metadata"}
        else:
            await store.drop(WS)
        assert names_below(directory) == (set() if write == "drop" else {WS})


async def test_giving_up_an_optimisation_leaves_the_collection_as_it_was(directory: Path, always_worth: None) -> None:
    async with opened(directory) as store:
        await store.create(WS, 2)
        ids = await put_many(store, 3000)

        for cancel_after in (0, 0.02, 0.1):
            with trio.move_on_after(cancel_after):
                await store.optimize(WS)
            assert await points(store) == 3000

        assert len(await store.fetch_vectors(WS, ids)) == 3000


@pytest.mark.parametrize("mode", ["copy", "optimize"])
async def test_an_optimiser_that_fails_says_why_and_the_collection_goes_on(
    directory: Path, monkeypatch: pytest.MonkeyPatch, always_worth: None, mode: str
) -> None:
    failing = [sys.executable, "-c", "exit('boom')"]
    monkeypatch.setattr(
        edge_optimizer, "worker_command", lambda m, *rest: failing if m == mode else worker_command(m, *rest)
    )
    async with opened(directory) as store:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])

        with pytest.raises(StoreUnavailable, match="could not be optimised: boom"):
            await store.optimize(WS)

        assert await paths(store) == ["a.py"]
        assert names_below(directory) == {WS}


async def test_a_copy_that_lacks_points_takes_no_place(
    directory: Path, monkeypatch: pytest.MonkeyPatch, always_worth: None
) -> None:
    lossy = [sys.executable, "-c", "print(0, end='')"]
    monkeypatch.setattr(
        edge_optimizer,
        "worker_command",
        lambda mode, *rest: lossy if mode == "optimize" else worker_command(mode, *rest),
    )
    async with opened(directory) as store:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])

        with pytest.raises(StoreUnavailable, match="holds 0 points instead of 1"):
            await store.optimize(WS)

        assert await paths(store) == ["a.py"]


async def test_a_drop_also_deletes_what_was_set_aside_and_a_start_what_a_deletion_left(directory: Path) -> None:
    async with opened(directory) as store:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])
    (directory / WS / edge_files.RECORD_NAME).unlink()
    (directory / f"{WS}-other.dropped" / "segments").mkdir(parents=True)

    async with opened(directory) as store:
        assert await store.describe(WS) is None
        assert names_below(directory) == {f"{WS}.bad-1"}
        await store.drop(WS)
    assert names_below(directory) == set()


def cut_before_the_copy_was_whole(collection: Path, copied: Path) -> None:
    record = edge_files.read_record(copied)
    assert record is not None
    edge_files.write_record(copied, record._replace(ready=False))


def cut_between_the_renames(collection: Path, copied: Path) -> None:
    collection.rename(collection.with_name(WS + ".dropped"))


def cut_before_the_renames(collection: Path, copied: Path) -> None:
    pass


@pytest.mark.parametrize("cut", [cut_before_the_copy_was_whole, cut_before_the_renames, cut_between_the_renames])
async def test_whenever_an_optimisation_is_killed_the_next_start_has_the_collection(
    directory: Path, cut: Callable[[Path, Path], None]
) -> None:
    async with opened(directory) as store:
        await store.create(WS, 2)
        await put(store, "a.py", [1, 0])
    copied = directory / f"{WS}.optimised"
    shutil.copytree(directory / WS, copied)
    cut(directory / WS, copied)

    async with opened(directory) as store:
        assert await paths(store) == ["a.py"]
        assert not copied.exists()
        await store.drop(WS)
    assert names_below(directory) == set()


async def test_modules_of_the_directory_that_semindex_is_started_in_are_not_imported(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('not yours')")
    monkeypatch.chdir(tmp_path)

    async with opened(directory) as store:
        assert await store.collections() == []
        assert store.health.restarts == 0


async def test_a_platform_without_the_engine_is_told_before_anything_starts(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)

    with pytest.raises(ConfigurationError, match="QDRANT_URL"):
        async with open_edge_store(directory):
            raise AssertionError


@frozen
class Search:
    vector: list[int]
    limit: int
    min_score: float
    segments: list[str]
    exclude: list[str]

    async def run(self, store: VectorStore, limit: int) -> list[Hit]:
        return await store.search(
            WS,
            vectors(self.vector)[0],
            limit=limit,
            min_score=self.min_score,
            segments=self.segments,
            exclude=self.exclude,
        )


directories = st.lists(st.sampled_from(["a", "b"]), max_size=7)
rows = st.lists(st.integers(-3, 3), min_size=3, max_size=3)
chunks = st.lists(st.tuples(directories.map(lambda names: "/".join([*names, "f.py"])), rows), max_size=40)
some_files = st.lists(st.sampled_from(["f.py", "a/f.py", "b/f.py", "a/b/f.py"]), unique=True)
searches = st.builds(
    Search, rows, st.integers(1, 10), st.sampled_from([-1.5, 0.05, 0.33, 0.72]), directories, some_files
)


@given(chunks, some_files, st.lists(searches, min_size=1, max_size=10))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_embedded_store_finds_what_looking_at_every_point_finds(
    directory: Path, stored: Sequence[tuple[str, list[int]]], gone: Sequence[str], wanted: Sequence[Search]
) -> None:
    async def fill(store: VectorStore) -> None:
        await store.create(WS, 3)
        ids = [point_id(str(number)) for number in range(len(stored))]
        matrix = np.array([row for _, row in stored], np.float32).reshape(-1, 3)
        await store.upsert(WS, ids, matrix, [payload(path, number) for number, (path, _) in enumerate(stored)])
        await store.delete_files(WS, gone)

    async def main() -> None:
        memory = MemoryVectorStore()
        await fill(memory)
        async with opened(directory) as embedded:
            await embedded.drop(WS)
            await fill(embedded)
            for search in wanted:
                found = await search.run(embedded, search.limit)
                exact = {hit.start_line: hit.score for hit in await search.run(memory, len(stored))}

                scores = [hit.score for hit in found]
                assert scores == pytest.approx([exact[hit.start_line] for hit in found], abs=1e-5)
                assert scores == pytest.approx(sorted(exact.values(), reverse=True)[: search.limit], abs=1e-5)
            assert await embedded.file_points(WS) == await memory.file_points(WS)

    trio.run(main)
