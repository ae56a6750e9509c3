"""A whole cell in this process with its doors open, on a port of its own."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from attrs import frozen
from pydantic import SecretStr

from semindex.cell.cell import Cell
from semindex.config import CellConfig
from semindex.http.listener import bind_tcp
from semindex.http.serving import open_doors
from semindex.secrets import Tokens
from semindex.testing.cells import running_cell


@frozen
class Served:
    """A cell and how to reach it."""

    cell: Cell
    url: str
    """``http://127.0.0.1:…``, without a slash at the end."""
    control_token: str
    mcp_token: str


@asynccontextmanager
async def served_cell(config: CellConfig) -> AsyncIterator[Served]:
    """Open a cell and its doors, with tokens of its own."""
    control, mcp = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    endpoint = bind_tcp(0)
    async with (
        running_cell(config) as cell,
        open_doors(cell, Tokens(SecretStr(control), SecretStr(mcp)), endpoint, config),
    ):
        yield Served(cell, endpoint.url, control, mcp)
