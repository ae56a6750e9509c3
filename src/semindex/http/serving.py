"""A cell with its doors open: the applications behind the listener, from the first request to the end of the last."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import trio
from starlette.types import ASGIApp, Receive, Scope, Send

from semindex.cell.cell import Cell
from semindex.http import wire
from semindex.http.control import ControlApi, answer
from semindex.http.dispatcher import Dispatcher
from semindex.http.listener import Endpoint, listen
from semindex.http.security import Gatekeeper
from semindex.secrets import Tokens


@asynccontextmanager
async def open_doors(cell: Cell, tokens: Tokens, endpoint: Endpoint, *, grace: float) -> AsyncIterator[None]:
    """Serve a cell on an endpoint; on leaving, no more requests are taken, and calls under way end within ``grace`` seconds.

    As with any nursery, errors of the body come out in an ExceptionGroup.
    """
    dispatcher = Dispatcher(
        cell, Gatekeeper(tokens, cell.search_tokens), control=ControlApi(cell), mcp=_absent("MCP"), rpc=_absent("RPC")
    )
    closing = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(listen, dispatcher, endpoint, grace=grace, stop=closing.wait))
        yield
        closing.set()


def _absent(door: str) -> ASGIApp:
    """Return an application that says that a door is not there yet."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await answer(wire.error(f"{door} is not served by this version.", "not_served"), 503)(scope, receive, send)

    return application
