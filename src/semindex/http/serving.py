"""A cell with its doors open: what listens, which application is behind which path, the order in which they close."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from semindex.cell.cell import Cell
from semindex.config import CellConfig
from semindex.http.control import ControlApi
from semindex.http.dispatcher import Dispatcher
from semindex.http.listener import Endpoint, Listener
from semindex.http.mcp import McpDoor
from semindex.http.rpc import RpcDoor
from semindex.http.security import Gatekeeper
from semindex.secrets import Tokens


@asynccontextmanager
async def open_doors(cell: Cell, tokens: Tokens, endpoint: Endpoint, config: CellConfig) -> AsyncIterator[None]:
    """Serve a cell on an endpoint.

    On leaving, no more requests are taken, RPC connections and MCP sessions end, and calls under way have the request
    grace. As with any nursery, errors of the body come out in an ExceptionGroup.
    """
    mcp = McpDoor(
        cell,
        max_sessions=config.limits.max_sessions,
        session_idle_seconds=config.limits.session_idle_seconds,
    )
    cell.mcp_sessions = lambda: mcp.sessions
    rpc = RpcDoor(cell)
    dispatcher = Dispatcher(cell, Gatekeeper(tokens, cell.search_tokens), control=ControlApi(cell), mcp=mcp, rpc=rpc)
    listener = Listener(dispatcher, endpoint, config.shutdown.request_grace_ms / 1000, trio.Event())
    async with trio.open_nursery() as nursery:
        async with mcp.open():
            await nursery.start(listener.run)
            yield
            # Connections and streams that are held open would hold up the listener for its whole grace: they end first.
            rpc.close()
            listener.stopping.set()
