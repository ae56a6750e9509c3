"""A cell that kills itself with SIGKILL at a named point of its work; run as a program by the tests beside it.

doomed.py HOME TREE [POINT NUMBER]: index TREE in the cell below HOME, but die after the NUMBERth call that POINT names has
been carried out. Without a point, run to the end and print what is stored, as JSON.
"""

import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

import semindex.stores.edge
from semindex.ports import VectorStore
from semindex.state.ledger import SqliteLedger
from semindex.stores.edge import open_edge_store
from semindex.testing.cells import config_below, indexed, running_cell

POINTS = {
    "upsert → ledger": "upsert",
    "delete → upsert": "delete_files",
    "ledger → next": "apply",
}


def dying_after(call: Callable[..., Awaitable[Any]], number: int) -> Callable[..., Awaitable[Any]]:
    """Return the call, which the NUMBERth time does its work and never returns."""
    left = number

    async def doomed(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        result = await call(*arguments, **options)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return doomed


@asynccontextmanager
async def doomed_store(directory: Path) -> AsyncIterator[VectorStore]:
    """Open the real store, with one of its calls doomed."""
    async with open_edge_store(directory) as store:
        method, number = POINTS[sys.argv[3]], int(sys.argv[4])
        if method != "apply":
            setattr(store, method, dying_after(getattr(store, method), number))
        yield store


async def main() -> None:
    """Index the tree, and print what the store holds if that comes to an end."""
    home, tree = Path(sys.argv[1]), Path(sys.argv[2])
    if len(sys.argv) > 3:
        vars(semindex.stores.edge)["open_edge_store"] = doomed_store
        if POINTS[sys.argv[3]] == "apply":
            doomed = dying_after(SqliteLedger.apply, int(sys.argv[4]))
            setattr(SqliteLedger, POINTS[sys.argv[3]], doomed)
    async with running_cell(config_below(home, tree)) as cell:
        status = await indexed(cell, "tree", tree)
        workspace = cell.leases.registry.lease("tree").workspace
        assert workspace is not None
        stored = await cell.janitor.store.file_points(cell.leases.status("tree").collection)
        ledger = {record.path: [record.file_hash, record.chunks] for record in workspace.index.table}
    sys.stdout.write(json.dumps({"state": status.state, "stored": stored, "ledger": ledger}))


if __name__ == "__main__":
    trio.run(main)
