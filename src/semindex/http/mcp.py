"""MCP on ``/mcp``: the two tools, bound to a workspace by the connection and never by what the model says.

One server speaks both protocol eras: sessions up to 2025-11-25, where roots are asked on the call's own stream and kept
until the client says that they changed; and 2026-07-28, which has no sessions, and where a call is answered with the
question for the roots and sent again with them. Errors are results with one sentence, never exceptions.
"""

import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import mcp_types as types
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from semindex import __version__
from semindex.cell.cell import Cell
from semindex.http import tools, wire
from semindex.http.errors import expected
from semindex.http.security import Credential, Holder
from semindex.model.errors import InvalidInput, UnregisteredRoot

ROOTS_TIMEOUT = 5.0
"""Seconds that a client may take to tell its roots."""
MAX_BODY = 1 << 20
"""Bytes of a request."""
SESSION_HEADER = "mcp-session-id"
_ROOTS = "roots"
"""Key of the question for the roots in the newer era."""
_HOW_TO_BIND = (
    "open a registered directory as the client's root, or give the client a search token of the registration "
    "(indexctl token create)"
)

Context = ServerRequestContext[dict[str, Any], Any]


class RootsWanted(Exception):
    """The call has to be answered with the question for the client's roots (newer era)."""


class McpDoor:
    """The MCP server of a cell; an ASGI application while :meth:`open` lasts."""

    def __init__(self, cell: Cell, *, max_sessions: int, session_idle_seconds: float) -> None:
        self._cell = cell
        self._roots: dict[str, list[str] | None] = {}
        """Session id → the roots that its client last told, None while that is being asked."""
        with warnings.catch_warnings():
            # Roots are deprecated in the newest revision and served in all: there is no other way to bind a client.
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            server: Server[dict[str, Any]] = Server(
                "semindex",
                version=__version__,
                instructions=tools.INSTRUCTIONS,
                on_list_tools=self._list_tools,
                on_call_tool=self._call_tool,
                on_roots_list_changed=self._forget_roots,
            )
        self._manager = StreamableHTTPSessionManager(
            server,
            max_sessions=max_sessions,
            session_idle_timeout=session_idle_seconds,
            max_request_body_size=MAX_BODY,
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Serve sessions for as long as the context lasts; leaving it ends every one of them."""
        async with self._manager.run():
            yield

    @property
    def sessions(self) -> int:
        """Return the number of open sessions."""
        return len(self._manager._server_instances)  # the library offers no count of its own

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request whose credential the dispatcher has put into its state.

        The library ties a session to the user that opened it; for any other the session does not exist.
        """
        credential: Credential = scope["state"]["credential"]
        owner = f"{credential.holder.name}:{credential.token_id or ''}"
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=owner, scopes=[]))
        await self._manager.handle_request(scope, receive, send)

    async def _list_tools(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(tools.TOOLS))

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        result: types.CallToolResult | types.InputRequiredResult | None = None
        # The starred form: errors come alone, or in the groups that nurseries raise.
        try:
            answer = await self._run_tool(context, params)
            result = types.CallToolResult(
                content=[types.TextContent(text=tools.text_of(answer))], structured_content=answer
            )
        except* RootsWanted:
            result = types.InputRequiredResult(input_requests={_ROOTS: types.ListRootsRequest()})
        except* Exception as group:  # noqa: BLE001 - told or logged by _refusal, and the cell goes on
            result = _refusal(group)
        assert result is not None, "every way out sets it"
        return result

    async def _run_tool(self, context: Context, params: types.CallToolRequestParams) -> wire.Json:
        try:
            if params.name == tools.SEARCH:
                return await self._search(context, params, wire.SearchFields.model_validate(params.arguments or {}))
            if params.name == tools.STATUS:
                tools.StatusArguments.model_validate(params.arguments or {})
                registration_id, _ = await self._bind(context, params)
                return wire.workspace_progress(self._cell.leases.status(registration_id))
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part) for part in fault["loc"]) or "arguments"
            raise InvalidInput(f"Invalid arguments for tool {params.name}: {place}: {fault['msg']}.") from None
        raise InvalidInput(f"Tool {params.name[:64]} not found; there are {tools.SEARCH} and {tools.STATUS}.")

    async def _search(
        self, context: Context, params: types.CallToolRequestParams, wanted: wire.SearchFields
    ) -> wire.Json:
        registration_id, below = await self._bind(context, params)
        response = await self._cell.searches.search(
            registration_id,
            wanted.query,
            path=wanted.path or below or None,
            max_results=wanted.max_results,
            fresh=wanted.fresh,
            keep_overlaps=wanted.keep_overlaps,
        )
        return tools.fitted(wire.search(response))

    async def _bind(self, context: Context, params: types.CallToolRequestParams) -> tuple[str, str]:
        """Return the id of the registration that the connection stands for, and the path below its workspace."""
        credential: Credential = _request(context).scope["state"]["credential"]
        if credential.holder is Holder.REGISTRATION and credential.registration_id is not None:
            return credential.registration_id, ""
        roots = await self._client_roots(context, params)
        if not roots:
            raise UnregisteredRoot(f"This client told no roots, so its workspace is not known: {_HOW_TO_BIND}.")
        return await self._cell.searches.bind(roots)

    async def _client_roots(self, context: Context, params: types.CallToolRequestParams) -> list[str]:
        capabilities = context.session.client_capabilities
        if capabilities is None or capabilities.roots is None:
            return []
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            response = (params.input_responses or {}).get(_ROOTS)
            if response is None:
                raise RootsWanted
            return _directories(types.ListRootsResult.model_validate(response.model_dump()))
        session = _request(context).headers.get(SESSION_HEADER, "")
        if (roots := self._roots.get(session)) is None:
            self._roots[session] = None
            roots = _directories(await self._ask_for_roots(context))
            # Not there any more: they changed while they were asked, so that the next call asks again.
            if session in self._roots:
                self._roots[session] = roots
            self._forget_ended_sessions()
        return roots

    async def _ask_for_roots(self, context: Context) -> types.ListRootsResult:
        if not context.session.can_send_request:
            return types.ListRootsResult(roots=[])
        try:
            # On the call's own stream: a client need not have opened another.
            return await context.session.send_request(
                types.ListRootsRequest(),
                types.ListRootsResult,
                request_read_timeout_seconds=ROOTS_TIMEOUT,
                metadata=ServerMessageMetadata(related_request_id=context.request_id),
            )
        except MCPError as error:
            raise UnregisteredRoot(f"The client did not tell its roots ({error}): {_HOW_TO_BIND}.") from error

    async def _forget_roots(self, context: Context, _params: types.NotificationParams | None) -> None:
        self._roots.pop(_request(context).headers.get(SESSION_HEADER, ""), None)

    def _forget_ended_sessions(self) -> None:
        for session in self._roots.keys() - self._manager._server_instances.keys():  # as in sessions
            del self._roots[session]


def _request(context: Context) -> Request:
    """Return the HTTP request that carried a message."""
    assert isinstance(context.request, Request), "messages come by HTTP only"
    return context.request


def _directories(result: types.ListRootsResult) -> list[str]:
    """Return the paths of a client's file roots; others mean nothing here."""
    found = []
    for root in result.roots:
        parts = urlsplit(str(root.uri))
        if parts.scheme == "file" and parts.netloc in ("", "localhost"):
            found.append(unquote(parts.path))
    return found


def _refusal(group: BaseExceptionGroup[Exception]) -> types.CallToolResult:
    """Return a failed call; what nobody expected is logged and not told, since the library would tell all of it."""
    error = expected(group, "the call of a tool")
    message = "An unexpected error; the log of the service says more." if error is None else str(error)
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)
