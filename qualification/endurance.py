"""What a thousand cycles of register, edit, search and release leave behind: nothing.

python -m qualification.endurance [CYCLES]

One cell in this process, the real store and model. After some cycles to warm up, and again at the end: threads,
descriptors, Trio tasks, child processes, collections, ledgers, orphans and resident memory. All but memory must be what
they were; memory may differ by what the allocator keeps.
"""

import sys
import tempfile
import threading
from pathlib import Path

import psutil
import trio
from attrs import asdict, frozen

from semindex.cell.cell import Cell
from semindex.commands.startup import quieten_collector
from semindex.testing.cells import config_below, indexed, running_cell

WARM_UP = 20
GROWTH = 24 * 1024 * 1024
"""Bytes by which resident memory may have grown."""


@frozen
class Holdings:
    """What the process holds."""

    threads: int
    descriptors: int
    tasks: int
    children: int
    collections: int
    ledgers: int
    orphans: int
    resident: int
    """Bytes."""


async def holdings(cell: Cell) -> Holdings:
    """Count what is held now; idle threads of Trio's pool end after ten seconds."""
    await trio.sleep(11)
    this = psutil.Process()
    return Holdings(
        threading.active_count(),
        this.num_fds(),
        trio.lowlevel.current_statistics().tasks_living,
        len(this.children(recursive=True)),
        len(await cell.janitor.store.collections()),
        len(await cell.janitor.state.ledgers()),
        len(await cell.janitor.orphans()),
        this.memory_info().rss,
    )


async def cycle(cell: Cell, tree: Path, number: int) -> None:
    """Register a tree, edit a file, find the edit, and release."""
    registration = f"cycle-{number}"
    await indexed(cell, registration, tree)
    (tree / "module_3.py").write_text(f"def edited_{number}(value):\n    return transform_juniper(value, {number})\n")
    found = await cell.searches.search(registration, f"edited {number} transform juniper")
    assert found.fresh, found
    assert any(f"edited_{number}(" in hit.code_chunk for hit in found.results), found.results
    receipt = await cell.leases.release(registration, purge=True)
    assert receipt.purged


async def main(cycles: int) -> int:
    """Run the cycles and compare."""
    quieten_collector()
    with tempfile.TemporaryDirectory() as scratch:
        home, tree = Path(scratch), Path(scratch) / "tree"
        tree.mkdir()
        for number in range(12):
            (tree / f"module_{number}.py").write_text(
                f"def handler_{number}(value):\n    return value * {number} + 1\n" * 3
            )
        async with running_cell(config_below(home, tree)) as cell:
            for number in range(WARM_UP):
                await cycle(cell, tree, number)
            before = await holdings(cell)
            for number in range(WARM_UP, WARM_UP + cycles):
                await cycle(cell, tree, number)
            after = await holdings(cell)
    failed = False
    for name, old in asdict(before).items():
        new = getattr(after, name)
        grown = new - old > GROWTH if name == "resident" else new != old
        failed |= grown
        print(f"{'FAIL' if grown else 'PASS'}  {name}: {old} before, {new} after {cycles} cycles")
    return int(failed)


if __name__ == "__main__":
    sys.exit(trio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
