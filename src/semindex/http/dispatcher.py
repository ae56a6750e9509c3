"""The application that Hypercorn serves: security first, then the door that a path belongs to, and errors as JSON.

Nothing of a request is looked at before Host and Origin are known to be local. Unknown paths are told apart from known ones
only to those who may know.
"""

import logging
import re
import uuid

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from semindex.cell.cell import Cell
from semindex.http import wire
from semindex.http.control import answer
from semindex.http.errors import RequestError, status_of
from semindex.http.hypercorn_fixes import Exchange
from semindex.http.security import Credential, Gatekeeper, Holder, foreign
from semindex.model.answers import CellPhase
from semindex.model.errors import SemindexError, leaves

logger = logging.getLogger(__name__)

_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
_AGENTS = (Holder.AGENT, Holder.REGISTRATION)


class Dispatcher:
    """Routes between the control API and MCP."""

    def __init__(self, cell: Cell, gatekeeper: Gatekeeper, *, control: ASGIApp, mcp: ASGIApp) -> None:
        self._cell = cell
        self._gatekeeper = gatekeeper
        self._control = control
        self._mcp = mcp

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
        scope.setdefault("state", {})["request_id"] = uuid.uuid4().hex[:12]
        refusal: Response | None = None
        started = False

        async def noting_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        # The starred form: errors come alone, or in the groups that nurseries raise.
        try:
            await self._route(scope, receive, noting_send)
        except* Exception as group:  # noqa: BLE001 - logged or told by _refusal, and the cell goes on
            refusal = _refusal(scope, group)
        if refusal is not None and not started:
            await refusal(scope, receive, send)

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (header := foreign(scope)) is not None:
            raise RequestError(403, "foreign_request", f"This {header} is not of this machine; use 127.0.0.1.")
        _check_escapes(scope)
        path, method = scope["path"], scope["method"]
        if path in ("/healthz", "/readyz"):
            await self._health(path, method, scope, receive, send)
            return
        credential = self._gatekeeper.credential(scope)
        if path == "/mcp":
            _require(credential, *_AGENTS)
            if self._cell.is_stopping:
                raise RequestError(503, "stopping", "The cell is ending; try again when it is back.")
            scope["state"]["credential"] = credential
            await self._mcp(scope, receive, send)
        elif path == "/metrics" or path.startswith("/v1/"):
            _require(credential, Holder.CONTROL)
            await self._control(scope, receive, send)
        else:
            raise RequestError(404, "not_found", "There is no such route.")

    async def _health(self, path: str, method: str, scope: Scope, receive: Receive, send: Send) -> None:
        if method not in ("GET", "HEAD"):
            raise RequestError(405, "method_not_allowed", "This route exists, but not with this method.")
        phase, message = self._cell.phase()
        healthy = phase in (CellPhase.READY, CellPhase.STARTING) if path == "/healthz" else phase is CellPhase.READY
        await answer({"status": phase, "message": message}, 200 if healthy else 503)(scope, receive, send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        if foreign(scope) is not None:
            await _reject(receive, send, 403, wire.error("This request is not of this machine.", "foreign_request"))
        elif self._gatekeeper.credential(scope).holder is not Holder.CONTROL:
            await _reject(receive, send, 401, wire.error("The control token is required.", "unauthorized"))
        else:
            await _reject(receive, send, 404, wire.error("There is no such route.", "not_found"))


def _refusal(scope: Scope, group: BaseExceptionGroup[Exception]) -> Response:
    """Return the answer to a request that raised; what nobody expected is logged, and not told."""
    request_id, errors = scope["state"]["request_id"], list(leaves(group))
    for error in errors:
        if isinstance(error, RequestError):
            return answer(error.body, error.status, {"www-authenticate": "Bearer"} if error.status == 401 else {})
        if isinstance(error, SemindexError):
            logger.info("request %s: %s %s: %s", request_id, scope["method"], error.code, error)
            return answer(wire.error(str(error), error.code), status_of(error))
    logger.error("request %s failed", request_id, exc_info=errors[0])
    return answer(wire.error(f"An unexpected error; the log has it under {request_id}.", "internal"), 500)


def _require(credential: Credential, *holders: Holder) -> None:
    if credential.holder not in holders:
        raise RequestError(401, "unauthorized", "A valid token is required: Authorization: Bearer <token>.")


def _check_escapes(scope: Scope) -> None:
    raw = scope.get("raw_path") or b""
    if _BAD_ESCAPE.search(raw) or _BAD_ESCAPE.search(scope["query_string"]) or "\ufffd" in scope["path"]:
        raise RequestError(400, "bad_escape", "The URL holds a broken percent-escape.")


async def _reject(receive: Receive, send: Send, status: int, body: wire.Json) -> None:
    """Refuse a WebSocket before it is accepted."""
    await receive()
    response = answer(body, status)
    headers = [*response.raw_headers, (b"www-authenticate", b"Bearer")] if status == 401 else response.raw_headers
    await send({"type": "websocket.http.response.start", "status": status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": response.body})


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return
