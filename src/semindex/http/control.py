"""The control API: routes of the wire page, section 3, and the service page, section 2, each a few lines over a call.

Authentication and the refusal of foreign Hosts and Origins happen before, in :mod:`semindex.http.dispatcher`.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar
from urllib.parse import parse_qsl

import trio
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from semindex.cell.cell import Cell
from semindex.http import wire
from semindex.http.errors import MethodNotAllowed, RequestError
from semindex.model.status import FileState

MAX_BODY = 64 * 1024
"""Bytes of a request body (wire page, section 3)."""
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BODY_TIMEOUT = 10.0
"""Seconds within which a request body must have arrived."""

Body = TypeVar("Body", bound=wire.Request)
Result = TypeVar("Result")
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
        _query(request)
        text = self._cell.metrics(await self._cell.status())
        return Response(text, headers={"cache-control": "no-store", "content-type": METRICS_TYPE})

    async def _status(self, request: Request) -> wire.Json:
        await self._wait(request, _query(request, "wait", "since"))
        return wire.service(await self._cell.status())

    async def _list(self, request: Request) -> wire.Json:
        _query(request)
        return {"registrations": [wire.registration(status) for status in self._cell.leases.statuses()]}

    async def _register(self, request: Request) -> wire.Json:
        _query(request)
        wanted = await _body(request, wire.RegistrationRequest)
        status = await self._cell.leases.register(
            request.path_params["id"],
            wanted.path,
            wanted.baseline_path or None,
            purge_on_release=wanted.purge_on_release,
            project_id=wanted.project_id or None,
            workspace_id=wanted.workspace_id or None,
            force=wanted.force,
        )
        return wire.registration(status)

    async def _registration(self, request: Request) -> wire.Json:
        options = _query(request, "wait", "since")
        self._cell.leases.status(request.path_params["id"])
        await self._wait(request, options)
        status = wire.registration(self._cell.leases.status(request.path_params["id"]))
        operation = self._cell.operations.running(request.path_params["id"])
        # An index that is about to be built anew or purged is not what somebody waits for, however complete it looks.
        return wire.present(
            status | {"operation": operation and wire.operation(operation), "revision": self._cell.revision}
        )

    async def _release(self, request: Request) -> wire.Json:
        options = _query(request, "purge", "force")
        return wire.receipt(
            await self._cell.leases.release(
                request.path_params["id"], purge=_flag(options, "purge"), force=_flag(options, "force") or False
            )
        )

    async def _reindex(self, request: Request) -> Response:
        options = _query(request, "force")
        operation = await self._cell.operations.reindex(
            request.path_params["id"], force=_flag(options, "force") or False
        )
        return answer(wire.operation(operation), 202)

    async def _purge(self, request: Request) -> Response:
        options = _query(request, "force")
        operation = await self._cell.operations.purge(request.path_params["id"], force=_flag(options, "force") or False)
        return answer(wire.operation(operation), 202)

    async def _operation(self, request: Request) -> wire.Json:
        options = _query(request, "wait", "since")
        self._cell.operations.get(request.path_params["id"])
        await self._wait(request, options)
        return wire.operation(self._cell.operations.get(request.path_params["id"])) | {"revision": self._cell.revision}

    async def _search(self, request: Request) -> wire.Json:
        _query(request)
        wanted = await _body(request, wire.SearchRequest)
        search = partial(
            self._cell.searches.search,
            wanted.registration_id,
            wanted.query,
            path=wanted.path or None,
            max_results=wanted.max_results,
            fresh=wanted.fresh,
            keep_overlaps=None if wanted.overlap is None else wanted.overlap == "keep",
        )
        return wire.search(await _while_connected(request, search))

    async def _files(self, request: Request) -> wire.Json:
        options = _query(request, "state", "after", "limit")
        try:
            state = FileState(options["state"]) if "state" in options else None
        except ValueError:
            known = ", ".join(FileState)
            raise RequestError(422, "invalid", f"state is one of {known}.", {"field": "state"}) from None
        page = await self._cell.inspection.files(
            request.path_params["id"],
            state=state,
            after=options.get("after", ""),
            limit=_whole(options, "limit", 100),
        )
        return wire.files(page)

    async def _explain(self, request: Request) -> wire.Json:
        options = _query(request, "path")
        if "path" not in options:
            raise RequestError(422, "invalid", "Name the path to explain: ?path=src/main.py.", {"field": "path"})
        return wire.explanation(await self._cell.inspection.explain(request.path_params["id"], options["path"]))

    async def _tokens(self, request: Request) -> wire.Json:
        _query(request)
        return wire.tokens(self._cell.search_tokens.list(request.path_params["id"]))

    async def _create_token(self, request: Request) -> Response:
        _query(request)
        wanted = await _body(request, wire.TokenRequest)
        token, record = await self._cell.search_tokens.create(request.path_params["id"], wanted.label)
        return answer(wire.token(record) | {"token": token}, 201)

    async def _revoke_token(self, request: Request) -> wire.Json:
        _query(request)
        await self._cell.search_tokens.revoke(request.path_params["id"], request.path_params["token"])
        return {"revoked": request.path_params["token"]}

    async def _wait(self, request: Request, options: dict[str, str]) -> None:
        if "wait" in options:
            seconds = _number(options, "wait", 0)
            await _while_connected(request, partial(self._cell.wait, options.get("since"), seconds))


def _route(path: str, calls: Mapping[str, Call]) -> Route:
    async def endpoint(request: Request) -> Response:
        result = await calls["GET" if request.method == "HEAD" else request.method](request)
        return result if isinstance(result, Response) else answer(result)

    return Route(path, endpoint, methods=list(calls))


async def _while_connected(request: Request, work: Callable[[], Awaitable[Result]]) -> Result:
    """Do something for as long as the client is there, once its body was read."""
    results: list[Result] = []
    async with trio.open_nursery() as nursery:

        async def leave_with_the_client() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel(reason="the client is gone")

        nursery.start_soon(leave_with_the_client)
        results.append(await work())
        nursery.cancel_scope.cancel(reason="done")
    if not results:
        raise RequestError(400, "incomplete", "The client closed the connection before there was an answer.")
    return results[0]


async def _body(request: Request, model: type[Body]) -> Body:
    """Read and check a request body; an empty one counts as an empty object."""
    data = b""
    try:
        with trio.fail_after(BODY_TIMEOUT):
            async for piece in request.stream():
                data += piece
                if len(data) > MAX_BODY:
                    raise RequestError(413, "too_large", f"A request body has at most {MAX_BODY // 1024} KiB.")
    except trio.TooSlowError:
        raise RequestError(408, "too_slow", "The request body did not arrive in time.") from None
    except ClientDisconnect:
        raise RequestError(400, "incomplete", "The request body is not complete.") from None
    try:
        document = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        raise RequestError(400, "not_json", "The request body is not JSON.") from None
    try:
        return model.model_validate(document)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in fault["loc"])
        rule = "is not known" if fault["type"] == "extra_forbidden" else fault["msg"].lower()
        raise RequestError(
            422,
            "invalid",
            f"The field {field or 'body'} breaks a rule: {rule}.",
            {"field": field, "rule": fault["type"]},
        ) from None


def _query(request: Request, *known: str) -> dict[str, str]:
    """Return the query parameters; an unknown or repeated one is refused by name."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True):
        if name not in known or name in found:
            problem = "is given twice" if name in found else "is not known"
            raise RequestError(422, "invalid", f"The query parameter {name[:64]} {problem}.", {"field": name[:64]})
        found[name] = value
    return found


def _flag(options: dict[str, str], name: str) -> bool | None:
    value = options.get(name)
    if value not in (None, "true", "false"):
        raise RequestError(422, "invalid", f"{name} is true or false.", {"field": name})
    return None if value is None else value == "true"


def _whole(options: dict[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise RequestError(422, "invalid", f"{name} is a whole number.", {"field": name})
    return int(text)


def _number(options: dict[str, str], name: str, default: float) -> float:
    try:
        number = float(options.get(name, default))
    except ValueError:
        number = float("nan")
    if not 0 <= number < float("inf"):
        raise RequestError(422, "invalid", f"{name} is a number, 0 or more.", {"field": name})
    return number
