"""A cell in this process with its doors open, from its start to its end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import trio
from attrs import define
from pydantic import SecretStr

from semindex.cell.cell import Cell
from semindex.config import CellConfig
from semindex.http.listener import bind_tcp
from semindex.http.serving import open_doors
from semindex.secrets import Tokens
from semindex.service import open_cell
from semindex.state.cell_directory import open_cell_directory
from tests.http.conftest import CONTROL_TOKEN, MCP_TOKEN

PATIENCE = 60.0


@define
class Open:
    """A cell that is open, and a client of it."""

    cell: Cell
    http: httpx2.AsyncClient
    port: int


@asynccontextmanager
async def opened(config: CellConfig) -> AsyncIterator[Open]:
    """Open a cell and its doors; nothing is restored. On leaving, end in order."""
    endpoint = bind_tcp(0)
    with trio.fail_after(PATIENCE):
        async with (
            open_cell_directory(config.state_directory) as directory,
            open_cell(config, directory) as cell,
            httpx2.AsyncClient(
                base_url=endpoint.url, headers={"Authorization": CONTROL_TOKEN}, timeout=PATIENCE, verify=False
            ) as http,
            open_doors(cell, Tokens(SecretStr(CONTROL_TOKEN), SecretStr(MCP_TOKEN)), endpoint, config),
        ):
            yield Open(cell, http, int(endpoint.url.rpartition(":")[2]))
            cell.begin_stopping()
