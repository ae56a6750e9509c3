"""A whole cell in this process: real state, real store, real model, real files; no listener."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from unittest.mock import patch

import trio

from semindex import service
from semindex.cell.cell import Cell
from semindex.config import CellConfig
from semindex.engine.workspace import Workspace
from semindex.model.status import WorkspaceStatus
from semindex.ports import Embedder
from semindex.service import open_cell, restore
from semindex.state.cell_directory import open_cell_directory

PATIENCE = 600.0
"""Seconds after which an index that is not complete counts as stuck, on a busy machine."""


def config_below(home: Path, *roots: Path) -> CellConfig:
    """Return the configuration of a cell that keeps everything below a directory."""
    return CellConfig(state_directory=home / "state", cache_directory=home / "cache", allowed_roots=roots)


@asynccontextmanager
async def running_cell(config: CellConfig) -> AsyncIterator[Cell]:
    """Open a cell and restore its registrations."""
    async with open_cell_directory(config.state_directory) as directory, open_cell(config, directory) as cell:
        await restore(cell)
        yield cell


@contextmanager
def embedding_with(embedder: Embedder) -> Iterator[None]:
    """Have each cell that is opened meanwhile embed with this; it may outlive them."""

    @asynccontextmanager
    async def open_embedder(*_: object) -> AsyncIterator[Embedder]:
        yield embedder

    with patch.object(service, "open_embedder", open_embedder):
        yield


def workspace_of(cell: Cell, registration_id: str) -> Workspace:
    """Return the running workspace of a registration."""
    workspace = cell.leases.registry.lease(registration_id).workspace
    assert workspace is not None, f"{registration_id} has no workspace running"
    return workspace


async def indexed(cell: Cell, registration_id: str, path: Path) -> WorkspaceStatus:
    """Register a directory and wait until its index is complete, or cannot be completed."""
    await cell.leases.register(registration_id, str(path))
    with trio.fail_after(PATIENCE):
        return await workspace_of(cell, registration_id).settled()
