"""How fast a tree is indexed, rescanned and searched, and how much memory each process takes.

python -m qualification.bench_index [TREE]

TREE is any directory of sources (default: the installed packages of this environment, at most 2,000 files of them).
It is indexed cold twice, with vectors that cost nothing and with the embedded model, so that the ratio shows what
embedding costs; then scanned again unchanged, and searched. A second tree of 10,000 small files is made for the rescan.
Absolute figures depend on the machine; the ratios are what to compare.
"""

import argparse
import shutil
import statistics
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import trio

from semindex.cell.cell import Cell
from semindex.commands.startup import quieten_collector
from semindex.core.filetypes import handling
from semindex.embedders.factory import open_embedder
from semindex.embedders.hashing import HashingEmbedder
from semindex.model.profiles import ChunkingProfile
from semindex.model.status import State
from semindex.service import OpenEmbedder
from semindex.testing.cells import config_below, embedding_with, indexed, running_cell, workspace_of

QUESTIONS = (
    "where is a connection retried after a timeout",
    "parse command line arguments",
    "convert a timestamp to local time",
    "read a file line by line and strip comments",
    "compute the hash of a string",
    "how are plugins discovered and loaded",
    "render a table to the terminal",
    "cancel everything when a deadline passes",
)
MAX_FILES = 2000
MANY_FILES = 10_000


class InstantEmbedder(HashingEmbedder):
    """Vectors of the model's size at next to no cost, so that all else shows."""

    def __init__(self) -> None:
        super().__init__(dimension=256)


def copy_sources(source: Path, target: Path) -> tuple[int, int]:
    """Copy at most MAX_FILES files of indexed types; return their number and bytes."""
    number = size = 0
    for file in sorted(source.rglob("*")):
        if number == MAX_FILES:
            break
        if file.is_file() and handling(file.name, ChunkingProfile.EXTENDED) and file.stat().st_size < 200_000:
            place = target / file.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, place)
            number, size = number + 1, size + file.stat().st_size
    return number, size


def many_small_files(target: Path) -> None:
    """Write 10,000 files of a few lines in 200 directories."""
    for number in range(MANY_FILES):
        directory = target / f"package_{number % 200}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"module_{number}.py").write_text(
            f"def handler_{number}(request):\n    value = request.get('{number}')\n    return transform(value, {number})\n"
        )


def peak_bytes(pid: int) -> int:
    """Return the most memory that a process has used (Linux)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:")), 0)


def peak_memory() -> Iterator[tuple[str, int]]:
    """Yield a label and the peak resident megabytes of this process and each of its descendants."""
    this = psutil.Process()
    for process in (this, *this.children(recursive=True)):
        label = next((part for part in process.cmdline() if part.startswith("semindex")), "root")
        yield label, peak_bytes(process.pid) >> 20


async def cold(home: Path, tree: Path, files: int, size: int, label: str, embedder: OpenEmbedder) -> float:
    """Index a tree into an empty cell, print the figures, and return the seconds it took."""
    async with running_cell(config_below(home, tree), embedder=embedder) as cell:
        began = time.perf_counter()
        status = await indexed(cell, "tree", tree)
        seconds = time.perf_counter() - began
        assert status.state is State.INDEXED, status.message
        print(
            f"cold, {label:18} {seconds:7.2f} s  {files / seconds:6.0f} files/s  {size / 1e6 / seconds:5.2f} MB/s  "
            f"{status.chunks / seconds:6.0f} chunks/s ({status.chunks} chunks)"
        )
        for name, megabytes in peak_memory():
            print(f"    peak {megabytes:5d} MB  {name}")
        if label == "embedded model":
            await search(cell)
    return seconds


async def search(cell: Cell) -> None:
    """Ask the questions and print where the time goes."""
    parts: dict[str, list[float]] = {}
    for _ in range(5):
        for question in QUESTIONS:
            response = await cell.searches.search("tree", question)
            for part, seconds in response.seconds.items():
                parts.setdefault(part, []).append(1000 * seconds)
    both = [store + check for store, check in zip(parts["store"], parts["verification"], strict=True)]
    for part, values in (parts | {"store + verification": both}).items():
        p95 = statistics.quantiles(values, n=20)[-1]
        print(f"    search, {part:21} p50 {statistics.median(values):6.2f} ms  p95 {p95:6.2f} ms")


async def rescans(home: Path, tree: Path) -> None:
    """Index a tree, then compare it with its index again, in the same process and after a restart."""
    async with running_cell(config_below(home, tree)) as cell:
        began = time.perf_counter()
        await indexed(cell, "tree", tree)
        first = time.perf_counter() - began
        # Signatures of files written just now cannot be trusted yet; a second look settles that.
        await trio.sleep(2.5)
        workspace = workspace_of(cell, "tree")
        times = []
        for _ in range(6):
            began = time.perf_counter()
            await workspace.sweep(full=False)
            await workspace.settled()
            times.append(time.perf_counter() - began)
        print(
            f"{MANY_FILES} files: first {first:.2f} s, unchanged rescan {statistics.median(times[1:]):.3f} s "
            f"(1/{first / statistics.median(times[1:]):.0f} of it)"
        )
    async with running_cell(config_below(home, tree)) as cell:
        began = time.perf_counter()
        await workspace_of(cell, "tree").settled()
        print(f"{MANY_FILES} files: caught up {time.perf_counter() - began:.3f} s after a restart")


async def main(tree: Path) -> None:
    """Run all of it."""
    quieten_collector()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        files, size = copy_sources(tree, home / "tree")
        print(f"{files} files, {size / 1e6:.1f} MB")
        instantly = embedding_with(InstantEmbedder())
        instant = await cold(home / "instant", home / "tree", files, size, "instant embedder", instantly)
        embedded = await cold(home / "embedded", home / "tree", files, size, "embedded model", open_embedder)
        print(f"the embedded model makes a cold run {embedded / instant:.2f} times as long")
        many_small_files(home / "many")
        await rescans(home / "rescan", home / "many")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="?", type=Path, default=Path(sysconfig.get_path("purelib")))
    trio.run(main, parser.parse_args().tree)
