"""What a request says: its body and its query parameters, checked, with one sentence for each rule that is broken."""

import json
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TypeVar
from urllib.parse import parse_qsl

import trio
from pydantic import ValidationError
from starlette.requests import ClientDisconnect, Request

from semindex.http import wire
from semindex.http.errors import RequestError

MAX_BODY = 64 * 1024
"""Bytes of a request body."""
BODY_TIMEOUT = 10.0
"""Seconds within which a request body must have arrived."""
_SHOWN = 64
"""Characters of a name that the client made up that are shown to it."""

Body = TypeVar("Body", bound=wire.Request)
Choice = TypeVar("Choice", bound=StrEnum)
Result = TypeVar("Result")


async def body_of(request: Request, model: type[Body]) -> Body:
    """Read and check a request body; an empty one counts as an empty object. Raises RequestError."""
    try:
        document = json.loads(await _received(request) or b"{}")
    except (ValueError, RecursionError):
        raise RequestError(400, "not_json", "The request body is not JSON.") from None
    return checked(document, model, "body")


def checked(document: object, model: type[Body], whole: str) -> Body:
    """Check a JSON value against a model; ``whole`` is what the value itself is called. Raises RequestError."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = ".".join(str(part) for part in fault["loc"])[:_SHOWN] or whole
        rule = "is not known" if fault["type"] == "extra_forbidden" else fault["msg"].lower()
        raise _broken(field, f"The field {field} breaks a rule: {rule}.", fault["type"]) from None


async def _received(request: Request) -> bytes:
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
    return data


async def while_connected(request: Request, work: Callable[[], Awaitable[Result]]) -> Result:
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


class Query:
    """The query parameters of a request. Every method raises RequestError for a value that breaks its rule."""

    def __init__(self, request: Request, *known: str) -> None:
        """Refuse parameters that are not known, or given twice."""
        self._values: dict[str, str] = {}
        for name, value in parse_qsl(request.scope["query_string"].decode("latin-1"), keep_blank_values=True):
            if name not in known or name in self._values:
                problem = "is given twice" if name in self._values else "is not known"
                shown = name[:_SHOWN]
                raise _broken(shown, f"The query parameter {shown} {problem}.")
            self._values[name] = value

    def text(self, name: str) -> str | None:
        """Return a parameter as it was given."""
        return self._values.get(name)

    def flag(self, name: str) -> bool | None:
        """Return a parameter that is true or false."""
        value = self._values.get(name)
        if value not in (None, "true", "false"):
            raise _broken(name, f"{name} is true or false.")
        return None if value is None else value == "true"

    def whole(self, name: str, default: int) -> int:
        """Return a whole number."""
        value = self._values.get(name, str(default))
        if not (value.isascii() and value.isdigit() and len(value) <= 9):
            raise _broken(name, f"{name} is a whole number.")
        return int(value)

    def seconds(self, name: str) -> float | None:
        """Return a time span."""
        value = self._values.get(name)
        try:
            number = 0.0 if value is None else float(value)
        except ValueError:
            number = float("nan")
        if not 0 <= number < float("inf"):
            raise _broken(name, f"{name} is a number of seconds, 0 or more.")
        return None if value is None else number

    def choice(self, name: str, kind: type[Choice]) -> Choice | None:
        """Return a member of an enumeration."""
        value = self._values.get(name)
        if value is None:
            return None
        try:
            return kind(value)
        except ValueError:
            raise _broken(name, f"{name} is one of {', '.join(kind)}.") from None


def _broken(field: str, message: str, rule: str | None = None) -> RequestError:
    return RequestError(422, "invalid", message, wire.present({"field": field, "rule": rule}))
