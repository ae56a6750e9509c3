"""Measures chunking on a real tree: ``python -m qualification.bench_chunk [DIRECTORY …]``.

Without a directory it takes the Python files of the running interpreter and its packages; give a folder of unpacked
TypeScript packages as well. Prints CPU time and rates of one process, where the time goes, the rates of the pool with
one worker and with all cores, the largest worker, and for how long the event loop was held. Trust the ratios more than
the times. Exits with status 1 where the pool does not scale, a worker is too large, or the loop is held too long.
"""

import argparse
import os
import resource
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter, process_time

import psutil
import trio
from attrs import frozen

from qualification.bench_index import peak_bytes
from semindex.core.filetypes import handling
from semindex.core.utf16 import encode, to_units
from semindex.files.reading import MAX_FILE_BYTES, decode
from semindex.model.chunks import ChunkedFile
from semindex.model.ids import file_hash, segment_hash
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.chunker import chunk_text
from semindex.parsing.grammars import load
from semindex.parsing.pool import open_chunker_pool

GRAMMARS = frozenset({"typescript", "tsx", "python"})
FILES_PER_CALL = 8
CALLERS_PER_WORKER = 3
"""Enough that a worker never waits for its next files."""

LEAST_SCALING = 0.8
"""Of the rate that all cores would have if each were as fast as one alone."""
LARGEST_WORKER = 150 << 20
LONGEST_DELAY_MS = 20.0
"""Bound of the 99th percentile of the loop's delays; the longest one is often the machine's doing."""


@frozen
class Source:
    """A file of the tree, read."""

    root: str
    path: str
    data: bytes

    @property
    def text(self) -> str:
        """Return the decoded text; files that are binary were left out."""
        return decode(self.data, ChunkingProfile.EXTENDED) or ""

    @property
    def absolute(self) -> str:
        """Return the path that enters the hashes."""
        return f"{self.root}/{self.path}"


def sources(roots: Sequence[str]) -> Iterator[Source]:
    """Yield the eligible TypeScript and Python files below some folders, except declaration files."""
    for root in map(os.path.realpath, roots):
        for file in sorted(Path(root).rglob("*")):
            wanted = handling(file.name, ChunkingProfile.KILO) in GRAMMARS and not file.name.endswith(".d.ts")
            if wanted and file.is_file() and not file.is_symlink() and file.stat().st_size <= MAX_FILE_BYTES:
                data = file.read_bytes()
                if decode(data, ChunkingProfile.EXTENDED) is not None:
                    yield Source(root, str(file.relative_to(root)), data)


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds that some work takes, the least of three times."""
    taken = []
    for _ in range(3):
        began = process_time()
        work()
        taken.append(process_time() - began)
    return min(taken)


def measure_stages(tree: Sequence[Source]) -> None:
    """Print what one process needs, and for what."""
    texts = [(source.absolute, source.text) for source in tree]
    encoded = [(load(handling(path, ChunkingProfile.KILO) or ""), encode(to_units(text))) for path, text in texts]

    def chunk(profile: ChunkingProfile) -> int:
        return sum(len(chunk_text(text, path, profile).chunks) for path, text in texts)

    kilo, extended = (cpu(partial(chunk, profile)) for profile in ChunkingProfile)
    selecting = cpu(lambda: [grammar.select(data) for grammar, data in encoded])
    parsing = cpu(lambda: [grammar.parse(data) for grammar, data in encoded])
    previews = [
        (path, chunk.start_line, chunk.end_line, chunk.length, chunk.text[:100])
        for path, text in texts
        for chunk in chunk_text(text, path, ChunkingProfile.KILO).chunks
    ]
    hashing = cpu(lambda: [segment_hash(*preview) for preview in previews])
    reading = cpu(lambda: [file_hash(source.text) for source in tree])

    megabytes = sum(len(source.data) for source in tree) / 1e6
    print(
        f"{len(tree):,} files, {megabytes:.1f} MB, {len(previews):,} chunks, {chunk(ChunkingProfile.EXTENDED):,} extended"
    )
    print(f"kilo:     {kilo:.2f} s of CPU, {len(tree) / kilo:,.0f} files/s, {megabytes / kilo:.1f} MB/s")
    print(f"          that is {kilo * 11 / megabytes:.2f} s for 11 MB, of which the aim is at most 2.0")
    print(f"extended: {extended:.2f} s of CPU, {len(tree) / extended:,.0f} files/s, {megabytes / extended:.1f} MB/s")
    stages = {
        "parse": parsing,
        "query": selecting - parsing,
        "walk": kilo - selecting - hashing,
        "chunk hashes": hashing,
        "gaps": extended - kilo,
    }
    print("of which  " + ", ".join(f"{name} {100 * seconds / extended:.0f} %" for name, seconds in stages.items()))
    print(f"besides   decoding and file hashes {reading:.2f} s")


@frozen
class PoolRun:
    """What chunking a tree through the pool took."""

    seconds: float
    workers_cpu: float
    """CPU seconds of the workers, their start included."""
    own_cpu: float
    """CPU seconds of the process that asks them."""
    largest_worker: int
    """Bytes."""
    delays_ms: Sequence[float]
    """How late the event loop came to a task that slept for a millisecond, sorted."""

    @property
    def delay_ms(self) -> float:
        """Return the 99th percentile."""
        return self.delays_ms[int(0.99 * (len(self.delays_ms) - 1))]


async def run_pool(tree: Sequence[Source], workers: int) -> PoolRun:
    """Chunk a tree in workers that have their grammars loaded."""
    delays: list[float] = []
    workers_before, own_before = children_cpu(), process_time()
    async with open_chunker_pool(workers) as pool:

        async def chunk(batches: Iterator[Sequence[Source]]) -> None:
            for batch in batches:
                paths = [source.path for source in batch]
                results = await pool.chunk(batch[0].root, paths, ChunkingProfile.EXTENDED, {})
                assert all(isinstance(result, ChunkedFile) and result.warning is None for result in results)

        async def chunk_all(part: Sequence[Source]) -> None:
            batches = batched(part)
            async with trio.open_nursery() as nursery:
                for _ in range(workers * CALLERS_PER_WORKER):
                    nursery.start_soon(chunk, batches)

        await chunk_all(tree[: 40 * workers])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch_delays, delays)
            began = perf_counter()
            await chunk_all(tree)
            seconds = perf_counter() - began
            nursery.cancel_scope.cancel(reason="measured")
        largest = max(peak_bytes(child.pid) for child in psutil.Process().children())
    return PoolRun(seconds, children_cpu() - workers_before, process_time() - own_before, largest, sorted(delays))


def batched(tree: Sequence[Source]) -> Iterator[Sequence[Source]]:
    """Yield a few files of one root at a time."""
    for root in dict.fromkeys(source.root for source in tree):
        below = [source for source in tree if source.root == root]
        for first in range(0, len(below), FILES_PER_CALL):
            yield below[first : first + FILES_PER_CALL]


async def watch_delays(delays: list[float]) -> None:
    """Note how late each wake-up is, for ever."""
    while True:
        began = perf_counter()
        await trio.sleep(0.001)
        delays.append(1000 * (perf_counter() - began) - 1)


def children_cpu() -> float:
    """Return the CPU seconds of all processes that this one has started and seen end."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directories", nargs="*", metavar="DIRECTORY")
    parser.add_argument("--files", type=int, default=1500, help="files to take at most (default: %(default)s)")
    arguments = parser.parse_args()
    roots = arguments.directories or [sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")]
    tree = list(sources(roots))
    tree = tree[:: max(1, len(tree) // arguments.files)][: arguments.files]
    measure_stages(tree)

    cores = len(os.sched_getaffinity(0))
    one, every = (trio.run(run_pool, tree, workers) for workers in (1, cores))
    for workers, run in ((1, one), (cores, every)):
        print(
            f"pool of {workers}: {run.seconds:.2f} s, {len(tree) / run.seconds:,.0f} files/s; CPU of the workers "
            f"{run.workers_cpu:.2f} s, of this process {run.own_cpu:.2f} s; largest worker {run.largest_worker >> 20} MiB; "
            f"loop late by {run.delay_ms:.1f} ms (99 %), {run.delays_ms[-1]:.1f} ms at most"
        )
    scaling = one.seconds / every.seconds / cores
    print(f"{cores} cores are {one.seconds / every.seconds:.2f} times as fast as one")
    good = scaling >= LEAST_SCALING and every.largest_worker <= LARGEST_WORKER and every.delay_ms <= LONGEST_DELAY_MS
    print("PASS" if good else "FAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
