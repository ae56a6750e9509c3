"""Reaching a Qdrant server: what its URL means, what its errors mean, and how often a call is tried again.

Every call that the store makes may be repeated; of creating a collection the store makes sure itself. No message made
here holds the API key, a text, or the user-info of a URL.
"""

import json
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import urlsplit

import trio
from attrs import frozen

from semindex.model.errors import CollectionMissing, ConfigurationError, SemindexError, StoreRejected, StoreUnavailable
from semindex.ports import TryFailed

T = TypeVar("T")

TRIES = 5
FIRST_PAUSE = 0.2
"""Seconds before the second try, doubling."""
DEFAULT_URL = "http://localhost:6333"
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_SHOWN = 300
"""Characters of a server's own message that are passed on."""


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
    """Read a URL as the reference engine does: no scheme means http, no port the scheme's own, nothing at all Qdrant's.

    Raises ConfigurationError.
    """
    text = url.strip() or DEFAULT_URL
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError("indexing.qdrant.url is no URL of a server; write it like http://127.0.0.1:6333.")
    if "@" in parts.netloc:
        raise ConfigurationError("indexing.qdrant.url holds a user or a password; use indexing.qdrant.apiKey instead.")
    https = parts.scheme == "https"
    shown = f"[{host}]" if ":" in host else host
    return ServerUrl(https, shown, port or (443 if https else 80), parts.path.rstrip("/"))


class Answered(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, body: bytes, retry_after: float | None = None) -> None:
        """``retry_after``: seconds that it asks for."""
        super().__init__(f"HTTP {status}")
        self.status = status
        self.retry_after = retry_after
        self.is_qdrant, self.message = _message(body)


class Unanswered(Exception):
    """There was no answer; the text says why, in words of our own."""


class CollectionExists(StoreRejected):
    """There is a collection of this name already."""


class RequestTooLarge(StoreRejected):
    """The server, or a proxy in front of it, lets no request of this size through."""


class Attempts:
    """Carries out the calls of one store: so many at once, each within a limit, and again where that may help."""

    def __init__(self, server: ServerUrl, *, call_timeout: float, concurrency: int, failed: TryFailed) -> None:
        """``call_timeout`` in seconds, for a call with all of its tries and the waiting for its turn."""
        self._server = server
        self._call_timeout = call_timeout
        self._slots = trio.CapacityLimiter(concurrency)
        self._failed = failed

    async def __call__(self, request: Callable[[], Awaitable[T]], collection: str = "") -> T:
        """Carry out a request, which raises Answered or Unanswered; ``collection`` is the one that it is about.

        Raises StoreUnavailable, CollectionMissing, CollectionExists, RequestTooLarge and, of
        other refusals, StoreRejected.
        """
        limit = f"The Qdrant server {self._server} did not answer within {self._call_timeout:g} s."
        trouble: SemindexError = StoreUnavailable(limit)
        began = trio.current_time()
        with trio.move_on_after(self._call_timeout):
            for number in range(TRIES):
                pause = FIRST_PAUSE * 2**number * (1 + random.random() / 4)
                began = trio.current_time()
                try:
                    async with self._slots:
                        began = trio.current_time()
                        return await request()
                except Answered as error:
                    trouble = self._refusal(error, collection)
                    if error.status not in _AGAIN:
                        break
                    pause = pause if error.retry_after is None else error.retry_after
                except Unanswered as error:
                    trouble = StoreUnavailable(f"The Qdrant server {self._server} cannot be reached: {error}.")
                if number == TRIES - 1 or trio.current_effective_deadline() - trio.current_time() < pause:
                    break
                self._failed(trouble, trio.current_time() - began)
                trouble = StoreUnavailable(limit)
                await trio.sleep(pause)
        raise trouble

    def _refusal(self, error: Answered, collection: str) -> SemindexError:
        """Return what an answer means that is no success."""
        server, status = self._server, f"HTTP {error.status}"
        match error.status:
            case 401 | 403:
                return StoreUnavailable(f"The Qdrant server {server} refuses the API key ({status}).")
            case code if 300 <= code < 400:
                return StoreUnavailable(f"{server} redirects ({status}); configure the URL that it leads to.")
            case code if code in _AGAIN:
                return StoreUnavailable(f"The Qdrant server {server} fails ({status}): {error.message}")
            case 413:
                return RequestTooLarge(f"The Qdrant server {server}, or a proxy, finds a request too large ({status}).")
            # Whoever answers for it, a proxy say, knows nothing of what is stored.
            case _ if not error.is_qdrant:
                return StoreUnavailable(f"What answers at {server} is no Qdrant server ({status}); correct the URL.")
            case 404:
                return CollectionMissing(collection)
            case 409:
                return CollectionExists(f"The collection {collection} exists already; open it, or drop it first.")
            case _:
                return StoreRejected(f"The Qdrant server refused a call ({status}): {error.message}")


def _message(body: bytes) -> tuple[bool, str]:
    """Say whether this is how a Qdrant server tells of an error, and return what it says, on one line."""
    try:
        status = json.loads(body)["status"]
        text, is_qdrant = status["error"], True
    except (ValueError, KeyError, TypeError):
        text, is_qdrant = "no reason given", False
    return is_qdrant, " ".join(str(text).split())[:_SHOWN]
