"""Programs that work until they are killed, and tell on standard output what was acknowledged to them.

Run as ``python -m tests.state.crashing <program> <path> <first number>``.
"""

import itertools
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import trio

from semindex.model.registrations import Operation, OperationKind, Registration
from semindex.model.status import FileRecord, FileState
from semindex.state.cell_state import open_cell_state

WRITERS = 4


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


async def write_ledger(path: Path, first: int) -> None:
    """Write three records and forget one of them, again and again, in several tasks."""
    async with open_cell_state(path) as state, trio.open_nursery() as nursery:
        ledger = state.ledger("/repo")

        async def write(writer: int) -> None:
            for number in itertools.count(first):
                names = [f"{writer}/{number}/{part}" for part in range(3)]
                await ledger.apply([FileRecord(name, FileState.INDEXED, "a" * 64) for name in names])
                await ledger.apply([], forget=names[:1])
                say(f"{writer}/{number}")

        for writer in range(WRITERS):
            nursery.start_soon(write, writer)


async def make_cells(path: Path, first: int) -> None:
    """Make one cell after the other, each with a registration and an operation that runs."""
    for number in itertools.count(first):
        async with open_cell_state(path / f"{number}.sqlite") as state:
            now = datetime.now(UTC)
            await state.registrations.save(Registration("a", "/repo", None, now))
            await state.operations.save(Operation("o", "a", OperationKind.REINDEX, now))
            say(f"{number}")


PROGRAMS = {"write_ledger": write_ledger, "make_cells": make_cells}

if __name__ == "__main__":
    program, path, first = sys.argv[1:]
    trio.run(PROGRAMS[program], Path(path), int(first))
