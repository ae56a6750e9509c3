"""A process that holds a cell directory until it is killed: ``python -m tests.state.holding <path> <url>``.

It leaves a child of its own behind, whose process id it says.
"""

import os
import subprocess
import sys
from pathlib import Path

import trio

from semindex.state.cell_directory import Phase, open_cell_directory


async def hold(path: Path, url: str) -> None:
    async with open_cell_directory(path) as directory:
        await directory.announce(Phase.READY, url)
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        child = await trio.lowlevel.open_process(command, stdout=subprocess.DEVNULL)
        os.write(1, f"{child.pid}\n".encode())
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(hold, Path(sys.argv[1]), sys.argv[2])
