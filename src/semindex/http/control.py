"""The control API: the routes of docs/api.md, each a few lines over a call.

Authentication and the refusal of foreign Hosts and Origins happen before, in :mod:`semindex.http.dispatcher`.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from semindex.cell.cell import Cell
from semindex.http import wire
from semindex.http.calls import Calls
from semindex.http.errors import MethodNotAllowed, RequestError
from semindex.http.requests import Query, body_of, while_connected
from semindex.model.status import FileState

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Call = Callable[[Request], Awaitable[wire.Json | Response]]
"""Answers a request; plain JSON means 200."""


def answer(content: wire.Json, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON answer; no cache may keep it."""
    return Response(
        json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"),
        status,
        {"cache-control": "no-store", "content-type": "application/json; charset=utf-8", **(headers or {})},
    )


class ControlApi:
    """The routes over one cell; an ASGI application."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._calls = Calls(cell)
        one = "/v1/registrations/{id}"
        routes: dict[str, dict[str, Call]] = {
            "/metrics": {"GET": self._metrics},
            "/v1/status": {"GET": self._status},
            "/v1/registrations": {"GET": self._list},
            one: {"PUT": self._register, "GET": self._registration, "DELETE": self._release},
            f"{one}/reindex": {"POST": self._reindex},
            f"{one}/purge": {"POST": self._purge},
            f"{one}/files": {"GET": self._files},
            f"{one}/explain": {"GET": self._explain},
            f"{one}/tokens": {"GET": self._tokens, "POST": self._create_token},
            f"{one}/tokens/{{token}}": {"DELETE": self._revoke_token},
            "/v1/operations/{id}": {"GET": self._operation},
            "/v1/search": {"POST": self._search},
            "/v1/orphans": {"GET": self._orphans},
            "/v1/orphans/purge": {"POST": self._purge_orphans},
        }
        self._router = Router([_route(path, calls) for path, calls in routes.items()], redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; errors are the dispatcher's to translate."""
        try:
            # Starlette raises for a missing route or method only inside of an application.
            await self._router(dict(scope, app=self), receive, send)
        except HTTPException as error:
            if error.status_code == 405:
                raise MethodNotAllowed((error.headers or {})["Allow"].split(", ")) from None
            raise RequestError(404, "not_found", "There is no such route.") from None

    async def _metrics(self, request: Request) -> Response:
        Query(request)
        text = self._cell.metrics(await self._cell.status())
        return Response(text, headers={"cache-control": "no-store", "content-type": METRICS_TYPE})

    async def _status(self, request: Request) -> wire.Json:
        await self._wait(request, Query(request, "wait", "since"))
        return await self._calls.status()

    async def _list(self, request: Request) -> wire.Json:
        Query(request)
        return {"registrations": [self._calls.shown(status) for status in self._cell.leases.listed()]}

    async def _register(self, request: Request) -> wire.Json:
        Query(request)
        wanted = await body_of(request, wire.RegistrationRequest)
        return await self._calls.register(request.path_params["id"], wanted)

    async def _registration(self, request: Request) -> wire.Json:
        options = Query(request, "wait", "since")
        self._cell.leases.status(request.path_params["id"])
        await self._wait(request, options)
        status = self._cell.leases.status(request.path_params["id"])
        return self._calls.shown(status) | {"revision": self._cell.revision}

    async def _release(self, request: Request) -> wire.Json:
        options = Query(request, "purge", "force")
        return await self._calls.release(
            request.path_params["id"], purge=options.flag("purge"), force=options.flag("force") or False
        )

    async def _reindex(self, request: Request) -> Response:
        options = Query(request, "force")
        operation = await self._calls.reindex(request.path_params["id"], force=options.flag("force") or False)
        return answer(operation, 202)

    async def _purge(self, request: Request) -> Response:
        options = Query(request, "force")
        operation = await self._cell.operations.purge(request.path_params["id"], force=options.flag("force") or False)
        return answer(wire.operation(operation), 202)

    async def _operation(self, request: Request) -> wire.Json:
        options = Query(request, "wait", "since")
        self._cell.operations.get(request.path_params["id"])
        await self._wait(request, options)
        return wire.operation(self._cell.operations.get(request.path_params["id"])) | {"revision": self._cell.revision}

    async def _search(self, request: Request) -> wire.Json:
        Query(request)
        wanted = await body_of(request, wire.SearchRequest)
        search = partial(
            self._cell.searches.search,
            wanted.registration_id,
            wanted.query,
            path=wanted.path or None,
            max_results=wanted.max_results,
            fresh=wanted.fresh,
            keep_overlaps=wanted.keep_overlaps,
        )
        return wire.search(await while_connected(request, search))

    async def _files(self, request: Request) -> wire.Json:
        options = Query(request, "state", "after", "limit")
        page = await self._cell.inspection.files(
            request.path_params["id"],
            state=options.choice("state", FileState),
            after=options.text("after") or "",
            limit=options.whole("limit", 100),
        )
        return wire.files(page)

    async def _explain(self, request: Request) -> wire.Json:
        options = Query(request, "path")
        explanation = await self._cell.inspection.explain(request.path_params["id"], options.text("path") or "")
        return wire.explanation(explanation)

    async def _tokens(self, request: Request) -> wire.Json:
        Query(request)
        return wire.tokens(self._cell.search_tokens.list(request.path_params["id"]))

    async def _create_token(self, request: Request) -> Response:
        Query(request)
        wanted = await body_of(request, wire.TokenRequest)
        token, record = await self._cell.search_tokens.create(request.path_params["id"], wanted.label)
        return answer(wire.token(record) | {"token": token}, 201)

    async def _revoke_token(self, request: Request) -> wire.Json:
        Query(request)
        await self._cell.search_tokens.revoke(request.path_params["id"], request.path_params["token"])
        return {"revoked": request.path_params["token"]}

    async def _orphans(self, request: Request) -> wire.Json:
        Query(request)
        return wire.orphans(await self._cell.janitor.orphans())

    async def _purge_orphans(self, request: Request) -> wire.Json:
        Query(request)
        wanted = await body_of(request, wire.OrphansRequest)
        found = await self._cell.janitor.purge(wanted.names, dry_run=wanted.dry_run)
        return wire.orphans(found) | {"dryRun": wanted.dry_run}

    async def _wait(self, request: Request, options: Query) -> None:
        seconds = options.seconds("wait")
        if seconds is not None:
            await while_connected(request, partial(self._cell.wait, options.text("since"), seconds))


def _route(path: str, calls: Mapping[str, Call]) -> Route:
    async def endpoint(request: Request) -> Response:
        result = await calls["GET" if request.method == "HEAD" else request.method](request)
        return result if isinstance(result, Response) else answer(result)

    return Route(path, endpoint, methods=list(calls))
