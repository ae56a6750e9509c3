"""A whole cell in this process: real state, real store, real model, real files; no listener."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from semindex.cell.cell import Cell
from semindex.config import CellConfig
from semindex.embedders.factory import open_embedder
from semindex.engine.workspace import Workspace
from semindex.files.watching.source import open_event_source
from semindex.model.status import WorkspaceStatus
from semindex.ports import Embedder
from semindex.service import OpenEmbedder, OpenEventSource, open_cell, restore
from semindex.state.cell_directory import open_cell_directory

PATIENCE = 600.0
"""Seconds after which an index that is not complete counts as stuck, on a busy machine."""


def config_below(home: Path, *roots: Path) -> CellConfig:
    """Return the configuration of a cell that keeps everything below a directory."""
    return CellConfig(state_directory=home / "state", cache_directory=home / "cache", allowed_roots=roots)


@asynccontextmanager
async def running_cell(
    config: CellConfig, *, embedder: OpenEmbedder = open_embedder, events: OpenEventSource = open_event_source
) -> AsyncIterator[Cell]:
    """Open a cell and restore its registrations; see :func:`semindex.service.open_cell`."""
    async with (
        open_cell_directory(config.state_directory) as directory,
        open_cell(config, directory, embedder=embedder, events=events) as cell,
    ):
        await restore(cell)
        yield cell


def embedding_with(embedder: Embedder) -> OpenEmbedder:
    """Return what has a cell embed with this, which may outlive it."""

    @asynccontextmanager
    async def open_it(*_: object) -> AsyncIterator[Embedder]:
        yield embedder

    return open_it


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
