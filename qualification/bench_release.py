"""How long a release with purge takes in the middle of indexing 2,000 files.

python -m qualification.bench_release [ROUNDS]

Once with an embedder that answers at once (aim: 95 % below 1 s) and once with one that never answers (aim: 95 %
below the drain grace plus 0.5 s; a purge cancels at once, so that it should not take longer than the other).
Each round registers the tree under a new id, waits until some files are done or on their way, releases it,
and looks for what is left.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import trio

from qualification.bench_index import InstantEmbedder
from semindex.cell.cell import Cell
from semindex.commands.startup import quieten_collector
from semindex.model.profiles import Role
from semindex.ports import Vectors
from semindex.testing.cells import config_below, embedding_with, running_cell, workspace_of

FILES = 2000


class HangingEmbedder(InstantEmbedder):
    """Never answers for documents."""

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Wait for ever, unless a query is asked for."""
        if role is Role.DOCUMENT:
            await trio.sleep_forever()
        return np.zeros((len(texts), self.profile.dimension), np.float32)


def write_tree(tree: Path) -> None:
    """Write the files."""
    for number in range(FILES):
        directory = tree / f"package_{number % 50}"
        directory.mkdir(parents=True, exist_ok=True)
        functions = (f"def handler_{number}_{part}(value):\n    return transform(value, {part})\n" for part in range(6))
        (directory / f"module_{number}.py").write_text("\n\n".join(functions))


async def one_round(cell: Cell, tree: Path, number: int, *, settled: int) -> float:
    """Register, wait until so many files are settled and more under way, release, and return the seconds it took."""
    registration = f"round-{number}"
    await cell.leases.register(registration, str(tree))
    workspace = workspace_of(cell, registration)
    with trio.fail_after(120):
        while (status := workspace.status()).total < FILES or status.processed < settled:
            await workspace.changes.beyond(workspace.changes.value)
    began = time.perf_counter()
    receipt = await cell.leases.release(registration, purge=True)
    seconds = time.perf_counter() - began
    assert receipt.purged
    assert await cell.janitor.store.collections() == []
    assert await cell.janitor.orphans() == []
    return seconds


async def rounds(home: Path, tree: Path, embedder: InstantEmbedder, count: int, *, settled: int) -> list[float]:
    """Do some rounds in a cell of their own."""
    async with running_cell(config_below(home, tree), embedder=embedding_with(embedder)) as cell:
        return [await one_round(cell, tree, number, settled=settled) for number in range(count)]


async def main(count: int) -> None:
    """Run both and print the figures."""
    quieten_collector()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        write_tree(home / "tree")
        kinds = [("instant embedder", InstantEmbedder(), 200), ("hanging embedder", HangingEmbedder(), 0)]
        for label, embedder, settled in kinds:
            times = await rounds(home / label.split()[0], home / "tree", embedder, count, settled=settled)
            p95 = statistics.quantiles(times, n=20)[-1]
            print(
                f"{label}: release with purge p50 {statistics.median(times):.3f} s, p95 {p95:.3f} s, most {max(times):.3f} s"
            )


if __name__ == "__main__":
    trio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 20)
