"""The application that Hypercorn serves: security first, then the door that a path belongs to, and errors as JSON.

Nothing of a request is looked at before Host and Origin are known to be local. Unknown paths are told apart from known
ones only to those who may know.
"""

import re

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semindex.cell.cell import Cell
from semindex.http.control import answer
from semindex.http.errors import MethodNotAllowed, RequestError, Unauthorized, refusal_of
from semindex.http.hypercorn_fixes import Exchange
from semindex.http.rpc import RpcDoor
from semindex.http.security import Credential, Gatekeeper, Holder, foreign
from semindex.model.answers import CellPhase
from semindex.model.errors import Starting, Stopping

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_SHOWN_PATH = 200
"""Characters of a path that are logged."""
RPC = "/v1/rpc"
_AGENTS = (Holder.AGENT, Holder.REGISTRATION)


class Dispatcher:
    """Routes between the control API, MCP and RPC."""

    def __init__(self, cell: Cell, gatekeeper: Gatekeeper, *, control: ASGIApp, mcp: ASGIApp, rpc: RpcDoor) -> None:
        self._cell = cell
        self._gatekeeper = gatekeeper
        self._control = control
        self._mcp = mcp
        self._rpc = rpc

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, one WebSocket, or Hypercorn's own start and end."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        else:
            exchange = Exchange(receive, send)
            await self._http(scope, exchange.receive, exchange.send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal: Response | None = None
        started = False

        async def noting_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        # The starred form: errors come alone, or in the groups that nurseries raise.
        try:
            await self._route(scope, receive, noting_send)
        except* Exception as group:  # noqa: BLE001 - logged or told by refusal_of, and the cell goes on
            route = f"{scope['method']} {scope['path'][:_SHOWN_PATH]}"
            error = refusal_of(group, route)
            refusal = answer(error.body, error.status, error.headers)
        if refusal is not None and not started:
            await refusal(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (header := foreign(scope)) is not None:
            raise _foreign(header)
        _check_escapes(scope)
        path, method = scope["path"], scope["method"]
        if path in ("/healthz", "/readyz"):
            await self._health(path, method, scope, receive, send)
            return
        credential = self._gatekeeper.credential(scope)
        if path == "/mcp":
            # Which tokens there are is known only then: an agent must not be told that its own is none.
            if not self._cell.is_restored:
                raise Starting
            _require(credential, *_AGENTS)
            if self._cell.is_stopping:
                raise Stopping
            scope.setdefault("state", {})["credential"] = credential
            await self._mcp(scope, receive, send)
        elif path == RPC:
            _require(credential, Holder.CONTROL)
            message = "This route is a WebSocket; ask for it with GET and an upgrade."
            raise RequestError(426, "upgrade_required", message, headers={"upgrade": "websocket"})
        elif path == "/metrics" or path.startswith("/v1/"):
            _require(credential, Holder.CONTROL)
            await self._control(scope, receive, send)
        else:
            raise _not_found()

    async def _health(self, path: str, method: str, scope: Scope, receive: Receive, send: Send) -> None:
        if method not in ("GET", "HEAD"):
            raise MethodNotAllowed(["GET", "HEAD"])
        phase, _ = self._cell.phase()  # the reason is for those who have a token
        healthy = phase in (CellPhase.READY, CellPhase.STARTING) if path == "/healthz" else phase is CellPhase.READY
        await answer({"status": phase}, 200 if healthy else 503)(scope, receive, send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal: RequestError | None = None
        try:
            self._require_rpc(scope)
        except* Exception as group:  # noqa: BLE001 - logged or told by refusal_of, and the cell goes on
            refusal = refusal_of(group, f"WebSocket {scope['path'][:_SHOWN_PATH]}")
        if refusal is None:
            await self._rpc(scope, receive, send)
        else:
            await _reject(receive, send, refusal)

    def _require_rpc(self, scope: Scope) -> None:
        if (header := foreign(scope)) is not None:
            raise _foreign(header)
        _check_escapes(scope)
        _require(self._gatekeeper.credential(scope), Holder.CONTROL)
        if scope["path"] != RPC:
            raise _not_found()
        if self._cell.is_stopping:
            raise Stopping
        self._rpc.require_room()


def _require(credential: Credential, *holders: Holder) -> None:
    if credential.holder not in holders:
        raise Unauthorized


def _check_escapes(scope: Scope) -> None:
    raw = scope.get("raw_path") or b""
    if _BAD_ESCAPE.search(raw) or _BAD_ESCAPE.search(scope["query_string"]) or "\ufffd" in scope["path"]:
        raise RequestError(400, "bad_escape", "The URL holds a broken percent-escape.")


def _foreign(header: str) -> RequestError:
    return RequestError(403, "foreign_request", f"This {header} is not of this machine; use 127.0.0.1.")


def _not_found() -> RequestError:
    return RequestError(404, "not_found", "There is no such route.")


async def _reject(receive: Receive, send: Send, error: RequestError) -> None:
    """Refuse a WebSocket before it is accepted."""
    await receive()
    response = answer(error.body, error.status, error.headers)
    await send({"type": "websocket.http.response.start", "status": error.status, "headers": response.raw_headers})
    await send({"type": "websocket.http.response.body", "body": response.body})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return
