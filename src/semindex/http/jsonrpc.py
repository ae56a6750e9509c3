"""JSON-RPC 2.0 as text: what a client's message asks for, and what it is answered. Nothing here waits or calls.

A batch is refused with one error: several requests may be under way at once, so it would bring
nothing but answers of any size.
"""

import json
from typing import NoReturn

from attrs import frozen

from semindex.http import wire

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REFUSED = -32000
"""An error of the cell; the word in ``data.code`` says which."""

_NUMBERS = {422: INVALID_PARAMS, 500: INTERNAL_ERROR}

Id = str | int | None


class Malformed(Exception):
    """A message that is no request. ``id`` is the request's, where it could be read."""

    def __init__(self, number: int, code: str, message: str, id_: Id = None) -> None:
        super().__init__(message)
        self.number = number
        self.code = code
        self.id = id_

    @property
    def answer(self) -> str:
        """Return what the client is told."""
        return failure(self.id, self.number, wire.error(str(self), self.code))


@frozen
class Call:
    """One request."""

    method: str
    params: object
    id: Id
    is_notification: bool
    """The client wants no answer, not even an error."""


def parse(text: str) -> Call:
    """Return what a message asks for. Raises Malformed."""
    try:
        message = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise Malformed(PARSE_ERROR, "not_json", "The message is not JSON.") from None
    if isinstance(message, list):
        raise Malformed(INVALID_REQUEST, "invalid", "Batches are not taken; send each request as a message of its own.")
    if not isinstance(message, dict):
        raise Malformed(INVALID_REQUEST, "invalid", "A request is a JSON object.")
    id_ = message.get("id")
    if not isinstance(id_, str | int | None) or isinstance(id_, bool):
        raise Malformed(INVALID_REQUEST, "invalid", "The id of a request is a string, a whole number or null.")
    method = message.get("method")
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        problem = 'A request has "jsonrpc": "2.0" and a method, which is a string.'
        raise Malformed(INVALID_REQUEST, "invalid", problem, id_)
    return Call(method, message.get("params", {}), id_, is_notification="id" not in message)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def result(id_: Id, value: wire.Json | None) -> str:
    """Return the answer to a call that succeeded."""
    return _text({"id": id_, "result": value})


def failure(id_: Id, number: int, body: wire.Json) -> str:
    """Return the answer to a call that failed; ``body`` is the control API's, whose sentence becomes the message."""
    data = {name: value for name, value in body.items() if name != "error"}
    return _text({"id": id_, "error": {"code": number, "message": body["error"], "data": data}})


def number_of(status: int) -> int:
    """Return the number of an error that the control API answers with this status."""
    return _NUMBERS.get(status, REFUSED)


def notification(method: str, params: wire.Json) -> str:
    """Return a message that wants no answer."""
    return _text({"method": method, "params": params})


def _text(message: wire.Json) -> str:
    # ASCII alone: a name that is no valid Unicode must not make a frame that cannot be sent.
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":"))
