"""A cell that kills itself with SIGKILL at a named point of its work; run as a program by the tests beside it.

killed_cell.py HOME TREE [POINT NUMBER]: index TREE in the cell below HOME, but be killed the NUMBERth time that it
comes to POINT. Without a point, run to the end and print what is stored, as JSON.
"""

import json
import sys
from itertools import count
from pathlib import Path

import trio

from semindex.testing.cells import config_below, indexed, running_cell
from semindex.testing.killpoints import kill_at


async def main() -> None:
    """Index the tree, and print what the store holds if that comes to an end."""
    home, tree = Path(sys.argv[1]), Path(sys.argv[2])
    if len(sys.argv) > 3:
        times, fatal = count(1), int(sys.argv[4])
        kill_at(sys.argv[3], lambda: next(times) == fatal)
    async with running_cell(config_below(home, tree)) as cell:
        status = await indexed(cell, "tree", tree)
        workspace = cell.leases.registry.lease("tree").workspace
        assert workspace is not None
        stored = await cell.janitor.store.file_points(cell.leases.status("tree").collection)
        ledger = {record.path: [record.file_hash, record.chunks] for record in workspace.index.table}
    sys.stdout.write(json.dumps({"state": status.state, "stored": stored, "ledger": ledger}))


if __name__ == "__main__":
    trio.run(main)
