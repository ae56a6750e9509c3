"""Reaching a Qdrant server: what its URL means, what its errors mean, and how often a call is tried again.

Every call that the store makes is idempotent but for creating a collection, so that all of them may be repeated. No message
made here holds the API key or the user-info of the URL.
"""

import json
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import urlsplit

import trio
from attrs import frozen

from semindex.model.errors import ConfigurationError, StoreRejected, StoreUnavailable

T = TypeVar("T")

DEFAULT_PORT = 6333
TRIES = 5
FIRST_PAUSE = 0.2
"""Seconds before the second try, doubling."""
LONGEST_PAUSE = 30.0
"""Seconds that a Retry-After may ask for; a longer one is tried again sooner."""
_AGAIN = frozenset({429, 500, 502, 503, 504})
_SHOWN = 300


@frozen
class ServerUrl:
    """Where a server is."""

    https: bool
    host: str
    port: int
    prefix: str
    """Path in front of every route; empty, or beginning with a slash."""

    def __str__(self) -> str:
        return f"{'https' if self.https else 'http'}://{self.host}:{self.port}{self.prefix}"


def parse_url(url: str) -> ServerUrl:
    """Read a URL: a bare host or host:port means http and 6333; with a scheme, the port is the scheme's own.

    ``http://host`` without a port means 6333 all the same, as every Qdrant client has it. Raises ConfigurationError.
    """
    parts = urlsplit(url.strip() if "://" in url else f"//{url.strip()}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("", "http", "https") or not parts.hostname or port == -1:
        raise ConfigurationError("indexing.qdrant.url is no URL of a server; write it like http://127.0.0.1:6333.")
    https = parts.scheme == "https"
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return ServerUrl(https, host, port or (443 if https else DEFAULT_PORT), parts.path.rstrip("/"))


class Answered(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, body: bytes, retry_after: float | None) -> None:
        """``retry_after``: seconds that it asks for."""
        super().__init__(f"HTTP {status}")
        self.status = status
        self.retry_after = retry_after
        self.message = _message(body)


class Unanswered(Exception):
    """There was no answer; the text says why."""


async def attempt(call: Callable[[], Awaitable[T]]) -> T:
    """Carry out an idempotent call, again after a pause where that may help.

    ``call`` raises Answered or Unanswered. Raises StoreUnavailable, StoreRejected, and Answered for 404 and 409, whose
    meaning depends on the call.
    """
    for number in range(1, TRIES + 1):
        try:
            return await call()
        except Answered as error:
            if error.status in (404, 409):
                raise
            if error.status in (401, 403):
                raise StoreUnavailable(f"The Qdrant server refuses the API key (HTTP {error.status}).") from error
            if error.status not in _AGAIN:
                raise StoreRejected(
                    f"The Qdrant server refused a call (HTTP {error.status}): {error.message}"
                ) from error
            failure = f"The Qdrant server fails (HTTP {error.status}): {error.message}"
            pause = error.retry_after
        except Unanswered as error:
            failure, pause = f"The Qdrant server cannot be reached: {error}.", None
        if number < TRIES:
            backed_off = FIRST_PAUSE * 2 ** (number - 1) * (1 + random.random() / 4)
            await trio.sleep(backed_off if pause is None else min(pause, LONGEST_PAUSE))
    raise StoreUnavailable(failure)


def _message(body: bytes) -> str:
    """Return what the server says of an error, on one line."""
    try:
        status = json.loads(body)["status"]
        text = status["error"] if isinstance(status, dict) else str(status)
    except (ValueError, KeyError, TypeError):
        text = body.decode("utf-8", "replace")
    return " ".join(str(text).split())[:_SHOWN] or "no reason given"
