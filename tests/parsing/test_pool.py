"""The pool over real processes; the twin of the port is tested with the engine."""

import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from semindex.core.filetypes import GRAMMARS
from semindex.model.chunks import ChunkedFile, FileProblem, ProblemKind, UnchangedFile
from semindex.model.errors import ChunkingFailed
from semindex.model.ids import file_hash
from semindex.model.profiles import ChunkingProfile
from semindex.parsing import pool as pool_module
from semindex.parsing.chunker import chunk_file
from semindex.parsing.pool import ProcessChunkerPool, open_chunker_pool
from semindex.parsing.protocol import Result
from semindex.parsing.worker import RETIRE_BYTES
from tests.parsing import faulty_workers

EXTENDED = ChunkingProfile.EXTENDED
FUNCTION = "def function():\n    return 'long enough for a chunk of its own'\n"


@pytest.fixture
async def pool() -> AsyncIterator[ProcessChunkerPool]:
    async with open_chunker_pool(1, file_cpu_seconds=2) as opened:
        yield opened


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every worker started from now on be a faulty one."""
    folder = tmp_path / "faults"
    folder.mkdir()
    shutil.copy(faulty_workers.__file__, folder / "sitecustomize.py")
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    return root


def write(root: Path, *names: str, text: str = FUNCTION) -> list[str]:
    for name in names:
        (root / name).write_text(text)
    return list(names)


async def chunk(pool: ProcessChunkerPool, root: Path, *names: str) -> list[Result]:
    with trio.fail_after(60):
        return await pool.chunk(str(root), names, EXTENDED, {})


def children(parent: int) -> set[int]:
    """Return the processes of a parent, those that only wait to be collected left out."""
    listing = subprocess.run(
        ["ps", "-ww", "-A", "-o", "pid=,ppid=,stat=,args="], capture_output=True, text=True, check=True
    )
    rows = [line.split(None, 3) for line in listing.stdout.splitlines()]
    return {int(pid) for pid, ppid, state, args in rows if int(ppid) == parent and state[0] != "Z" and "worker" in args}


def types(result: Result) -> list[str]:
    assert isinstance(result, ChunkedFile), result
    return [chunk.type for chunk in result.chunks]


async def test_one_result_per_path_in_order_whatever_becomes_of_each(pool: ProcessChunkerPool, tree: Path) -> None:
    write(tree, "a.py", "b.py")
    write(tree, "binary.py", text="\0")
    known = {"b.py": file_hash(FUNCTION), "elsewhere.py": "0"}
    with trio.fail_after(60):
        results = await pool.chunk(str(tree), ["a.py", "none.py", "b.py", "binary.py"], EXTENDED, known)
    assert results[0] == chunk_file(str(tree), "a.py", EXTENDED)
    assert results[1] == FileProblem("none.py", ProblemKind.GONE, "There is no regular file at this path.")
    assert isinstance(results[2], UnchangedFile)
    assert isinstance(results[3], FileProblem)
    assert results[3].kind is ProblemKind.SKIPPED


async def test_no_paths_give_no_results_and_start_no_process(pool: ProcessChunkerPool, tree: Path) -> None:
    assert await chunk(pool, tree) == []
    assert children(os.getpid()) == set()


async def test_a_file_of_thousands_of_chunks_arrives_whole(pool: ProcessChunkerPool, tree: Path) -> None:
    write(tree, "long.py", text="\n".join(f"def f{number}():\n    return '{'x' * 50}'\n" for number in range(2500)))
    (result,) = await chunk(pool, tree, "long.py")
    assert isinstance(result, ChunkedFile)
    assert len(result.chunks) == 2500
    assert result == chunk_file(str(tree), "long.py", EXTENDED)


async def test_never_more_processes_than_allowed_and_none_left_afterwards(tree: Path) -> None:
    names = write(tree, *(f"{number}.py" for number in range(24)))
    with trio.fail_after(60):
        async with open_chunker_pool(2) as pool:
            seen = []
            async with trio.open_nursery() as nursery:
                for name in names:
                    nursery.start_soon(pool.chunk, str(tree), [name], EXTENDED, {})
            seen.append(len(children(os.getpid())))
    assert seen[0] in {1, 2}
    assert children(os.getpid()) == set()


@pytest.mark.usefixtures("faults")
@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("crash_in_parser.py", "was ended by SIGSEGV"),
        ("raise.py", "ended with status 1"),
        ("spin.py", "did not end in time"),
    ],
)
async def test_a_file_that_a_parser_does_not_survive_is_chunked_by_lines_and_flagged(
    tree: Path, name: str, ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    names = write(tree, "before.py", name, "after.py")
    async with open_chunker_pool(1, file_cpu_seconds=0.5) as pool:
        before, lost, after = await chunk(pool, tree, *names)
    assert types(before) == types(after) == ["function_definition"]
    assert types(lost) == ["fallback_chunk"]
    assert isinstance(lost, ChunkedFile)
    assert lost.warning == f"The file was chunked by its lines: the process that parsed it {ending}."
    assert f"{tree}/{name}: {lost.warning}" in caplog.messages


@pytest.mark.usefixtures("faults")
async def test_a_file_that_nothing_survives_has_failed_and_its_neighbours_have_not(
    pool: ProcessChunkerPool, tree: Path
) -> None:
    before, lost, after = await chunk(pool, tree, *write(tree, "before.py", "crash_always.py", "after.py"))
    assert types(before) == types(after) == ["function_definition"]
    reason = "Each process that read the file was lost; the last was ended by SIGSEGV."
    assert lost == FileProblem("crash_always.py", ProblemKind.FAILED, reason)


@pytest.mark.usefixtures("faults")
async def test_a_worker_that_was_killed_from_outside_costs_nothing(pool: ProcessChunkerPool, tree: Path) -> None:
    for result in await chunk(pool, tree, *write(tree, "crash_once.py", "after.py")):
        assert types(result) == ["function_definition"]
        assert isinstance(result, ChunkedFile)
        assert result.warning is None


@pytest.mark.usefixtures("faults")
async def test_a_worker_that_waits_for_ever_is_given_up(
    pool: ProcessChunkerPool, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "FILE_WALL_SECONDS", 1.0)
    (lost,) = await chunk(pool, tree, *write(tree, "sleep.py"))
    assert types(lost) == ["fallback_chunk"]
    assert isinstance(lost, ChunkedFile)
    assert lost.warning is not None
    assert "did not answer within 1 s" in lost.warning


@pytest.mark.usefixtures("faults")
async def test_what_native_code_prints_does_not_get_between_the_results(pool: ProcessChunkerPool, tree: Path) -> None:
    for result in await chunk(pool, tree, *write(tree, "print.py", "after.py")):
        assert types(result) == ["function_definition"]


async def test_idle_workers_that_died_are_replaced_and_no_file_is_blamed(pool: ProcessChunkerPool, tree: Path) -> None:
    write(tree, "a.py")
    await chunk(pool, tree, "a.py")
    for pid in children(os.getpid()):
        os.kill(pid, signal.SIGKILL)
    (result,) = await chunk(pool, tree, "a.py")
    assert types(result) == ["function_definition"]
    assert isinstance(result, ChunkedFile)
    assert result.warning is None


async def test_a_parser_that_wants_gigabytes_does_not_get_them(tree: Path) -> None:
    write(tree, "calls.c", text="f(" * 300_000)
    async with open_chunker_pool(1) as pool:
        (result,) = await chunk(pool, tree, "calls.c")
    assert isinstance(result, ChunkedFile)
    assert result.warning is not None
    assert "was ended by SIG" in result.warning  # which one depends on where it noticed
    assert set(types(result)) == {"fallback_chunk_segment"}


async def test_a_worker_that_has_grown_large_is_replaced_after_its_batch(pool: ProcessChunkerPool, tree: Path) -> None:
    write(tree, "a.py")
    write(tree, "large.c", text="a=" * 500_000)
    await chunk(pool, tree, "a.py")
    before = children(os.getpid())
    results = await chunk(pool, tree, "large.c", "a.py")
    assert [result.warning for result in results if isinstance(result, ChunkedFile)] == [None, None]
    await chunk(pool, tree, "a.py")
    assert len(before) == 1
    assert children(os.getpid()).isdisjoint(before)


@pytest.mark.usefixtures("faults")
async def test_a_cancelled_call_ends_its_worker_and_the_pool_goes_on(pool: ProcessChunkerPool, tree: Path) -> None:
    write(tree, "sleep.py", "a.py")
    os.mkfifo(tree / "sleeping")
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.chunk, str(tree), ["sleep.py"], EXTENDED, {})
            await trio.to_thread.run_sync((tree / "sleeping").read_bytes, abandon_on_cancel=True)
            nursery.cancel_scope.cancel(reason="the caller went away")
    assert children(os.getpid()) == set()
    assert types((await chunk(pool, tree, "a.py"))[0]) == ["function_definition"]


async def test_a_call_cancelled_while_its_worker_starts_leaves_no_process(tree: Path) -> None:
    write(tree, "a.py")
    with trio.fail_after(60):
        async with open_chunker_pool(1) as pool:
            for step in range(6):
                with trio.move_on_after(0.02 * step):
                    await pool.chunk(str(tree), ["a.py"], EXTENDED, {})
                    break
    assert children(os.getpid()) == set()


@pytest.mark.parametrize("executable", ["/does/not/exist", "/bin/false"])
async def test_only_workers_that_cannot_start_at_all_fail_the_call(
    pool: ProcessChunkerPool, tree: Path, executable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(ChunkingFailed, match="Each new chunker process"):
        await chunk(pool, tree, *write(tree, "a.py"))


async def test_no_module_of_the_current_directory_is_run(
    pool: ProcessChunkerPool, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("attrs.py", "tree_sitter.py", "semindex.py"):
        (tree / module).write_text("raise SystemExit('run by mistake')")
    monkeypatch.chdir(tree)
    assert types((await chunk(pool, tree, *write(tree, "a.py")))[0]) == ["function_definition"]


@pytest.mark.usefixtures("faults")
async def test_a_grammar_that_is_not_there_is_logged_once_and_told_with_every_file(
    pool: ProcessChunkerPool, tree: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SEMINDEX_TEST_NO_GRAMMARS", "1")
    with caplog.at_level(logging.WARNING):
        results = await chunk(pool, tree, *write(tree, "a.py", "b.py", "c.rs"))
    warnings = [result.warning for result in results if isinstance(result, ChunkedFile)]
    assert [warning is not None and "cannot be loaded" in warning for warning in warnings] == [True] * 3
    assert len([message for message in caplog.messages if "The grammar python cannot be loaded" in message]) == 1


async def test_all_grammars_are_tried_in_a_process_that_does_not_stay(pool: ProcessChunkerPool) -> None:
    with trio.fail_after(60):
        assert await pool.probe_grammars() == {}
    assert children(os.getpid()) == set()


@pytest.mark.usefixtures("faults")
async def test_grammars_that_do_not_load_are_named_with_the_reason(
    pool: ProcessChunkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMINDEX_TEST_NO_GRAMMARS", "1")
    with trio.fail_after(60):
        problems = await pool.probe_grammars()
    assert problems.keys() == set(GRAMMARS)
    assert problems["go"] == "The grammar go cannot be loaded: it is not there."


async def test_workers_are_out_of_reach_of_the_terminal(pool: ProcessChunkerPool, tree: Path) -> None:
    await chunk(pool, tree, *write(tree, "a.py"))
    (worker,) = children(os.getpid())
    assert os.getsid(worker) != os.getsid(0)


ORPHANS = """
import sys, trio
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.pool import open_chunker_pool

async def main():
    async with open_chunker_pool(1) as pool:
        await pool.chunk(sys.argv[1], ["a.py"], ChunkingProfile.EXTENDED, {})
        print("idle", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="to wait for another's child takes a descriptor of the process")
async def test_workers_end_when_the_service_is_killed(tree: Path) -> None:
    write(tree, "a.py")
    with trio.fail_after(60):
        command = [sys.executable, "-c", ORPHANS, str(tree)]
        service = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
        assert service.stdout is not None
        assert await service.stdout.receive_some()
        (worker,) = children(service.pid)
        ended = os.pidfd_open(worker)
        service.kill()
        await service.wait()
        await service.stdout.aclose()
        await trio.lowlevel.wait_readable(ended)
        os.close(ended)


async def test_workers_of_a_large_service_take_work(tmp_path: Path) -> None:
    """What a process forks from counts as its peak in ``getrusage``: a worker must not retire for its parent's size."""
    (tmp_path / "a.py").write_text("def first(value):\n    return [value, value + 1, value + 2, value + 3]\n")
    ballast = bytearray(RETIRE_BYTES + (64 << 20))
    ballast[::4096] = b"x" * len(ballast[::4096])
    async with open_chunker_pool(1) as pool:
        with trio.fail_after(60):
            (result,) = await pool.chunk(str(tmp_path), ["a.py"], ChunkingProfile.EXTENDED, {})
    assert isinstance(result, ChunkedFile)
    assert len(ballast) > RETIRE_BYTES


def test_the_pool_brings_no_grammar_into_the_service() -> None:
    code = "import sys, semindex.parsing.pool; print([name for name in sys.modules if name.startswith('tree_sitter')])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout == "[]\n"


def test_a_worker_whose_service_is_gone_ends_without_a_word() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-P", "-m", "semindex.parsing.worker"],
        stdin=subprocess.DEVNULL,
        stdout=writing,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
