"""The wire format of OpenAI-compatible embedding endpoints: where to post, what to send, what an answer means.

Pure: bytes and values in, bytes and values out. No message made here holds a key, a text, or
the user-info of a URL.
"""

import base64
import binascii
import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import numpy as np
from attrs import field, frozen
from pydantic import TypeAdapter

from semindex.model.errors import EmbedderRejected, EmbedderUnavailable
from semindex.model.ids import well_formed
from semindex.ports import Vectors

_COMPLETE = re.compile(r"(/embeddings|/embed|/serving-endpoints/[^/]+/invocations)$")
"""Paths that are posted to as they are; a path of deployments ends in /embeddings, too."""
_TOO_LARGE = re.compile(
    r"too (large|long|many)|maximum|max(imum)? (context|input|batch|tokens)|exceed|context length", re.IGNORECASE
)
_JSON = TypeAdapter[Any](Any)
"""Reads JSON in a quarter of the time that the standard library holds the interpreter's lock for."""
_SHOWN = 200
"""Characters of a server's own message that are passed on."""
_QUOTE = 12
"""Characters in a row that a message may share with a request: more of them may be a quotation."""


class TooLarge(EmbedderRejected):
    """The endpoint finds a request too large: fewer or shorter texts may pass."""


class RateLimited(EmbedderUnavailable):
    """The endpoint wants fewer requests for a while."""

    def __init__(self, message: str, retry_after: float | None) -> None:
        """``retry_after``: seconds that the server asks for."""
        super().__init__(message)
        self.retry_after = retry_after


class Passing(EmbedderUnavailable):
    """A failure that may be over in a moment: no connection, a server's error, no answer in time."""


@frozen
class Endpoint:
    """Where to post, and with which headers."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    def __str__(self) -> str:
        """Return the URL as it may be shown: without its query."""
        return urlunsplit(urlsplit(self.url)._replace(query="", fragment=""))


def endpoint_of(base_url: str, api_key: str | None) -> Endpoint:
    """Return the endpoint of a base URL; with neither a key nor a user-info there is no header of authentication.

    A key comes before a user-info, which is left out of the URL: clients log URLs.
    """
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/")
    is_complete = _COMPLETE.search(path) is not None
    user_info, _, host = parts.netloc.rpartition("@")
    headers = {"content-type": "application/json"}
    if api_key:
        headers["authorization"] = f"Bearer {api_key}"
        if is_complete:
            headers["api-key"] = api_key
    elif user_info:
        headers["authorization"] = f"Basic {base64.b64encode(unquote(user_info).encode()).decode()}"
    url = urlunsplit(parts._replace(netloc=host, path=path if is_complete else f"{path}/embeddings"))
    return Endpoint(url, headers)


def request_body(texts: Sequence[str], model: str, dimension: int | None) -> bytes:
    """Return the body of a request; ``dimension`` is sent if it is given."""
    body: dict[str, Any] = {
        "input": [well_formed(text) for text in texts],
        "model": model,
        "encoding_format": "base64",
    }
    if dimension is not None:
        body["dimensions"] = dimension
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def read_vectors(body: bytes, texts: Sequence[str], dimension: int) -> Vectors:
    """Return the vectors of an answer in the order of the texts, scaled to length 1; shape [len(texts), dimension].

    Raises EmbedderRejected for an answer to these texts that cannot be right, EmbedderUnavailable for one that no other
    texts would make right.
    """
    try:
        document = _JSON.validate_json(body)
    except ValueError:
        raise Passing("The embedding endpoint answered with something that is not JSON.") from None
    if not isinstance(document, dict) or not isinstance(document.get("data"), list):
        raise _rejection(200, server_message(document, texts))
    data = document["data"]
    if len(data) != len(texts):
        raise EmbedderRejected(f"The embedding endpoint answered with {len(data)} vectors for {len(texts)} texts.")
    vectors = np.empty((len(texts), dimension), np.float32)
    seen = set()
    for position, entry in enumerate(data):
        index = entry.get("index", position) if isinstance(entry, dict) else position
        if not isinstance(index, int) or not 0 <= index < len(texts) or index in seen:
            raise EmbedderRejected("The embedding endpoint answered with vectors in no order that can be told.")
        seen.add(index)
        vectors[index] = _vector(entry.get("embedding") if isinstance(entry, dict) else None, dimension)
    if not np.isfinite(vectors).all():
        raise EmbedderRejected("The embedding endpoint answered with a vector that is not finite.")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def _vector(value: object, dimension: int) -> Vectors:
    vector: Vectors | None = None
    try:
        if isinstance(value, str):
            vector = np.frombuffer(base64.b64decode(value, validate=True), "<f4")
        elif isinstance(value, list):
            vector = np.asarray(value, np.float32)
    except (binascii.Error, ValueError, TypeError):
        pass
    if vector is None or vector.ndim != 1:
        raise EmbedderRejected("The embedding endpoint answered with a vector that cannot be read.")
    if len(vector) != dimension:
        raise EmbedderUnavailable(
            f"The embedding endpoint answers with {len(vector)} dimensions where {dimension} are configured; "
            "set indexing.dimension to the model's own."
        )
    return vector


def refusal(
    status: int, body: bytes, endpoint: Endpoint, texts: Collection[str], retry_after: float | None = None
) -> EmbedderRejected | EmbedderUnavailable:
    """Return the error of an answer that is no success: rejected if other texts might pass, else unavailable."""
    message = server_message(_json(body), [*texts, *endpoint.headers.values()])
    if status in (400, 413, 422):
        return _rejection(status, message)
    match status:
        case 401 | 403:
            return EmbedderUnavailable(f"The embedding endpoint {endpoint} refuses the API key (HTTP {status}).")
        case 404:
            return EmbedderUnavailable(f"There is no embedding endpoint at {endpoint}, or no such model: {message}")
        case 429:
            return RateLimited(f"The embedding endpoint {endpoint} limits the rate of requests.", retry_after)
        case code if 300 <= code < 400:
            return EmbedderUnavailable(f"The embedding endpoint {endpoint} redirects; configure the URL it leads to.")
        case code if code >= 500 or code in (408, 425):
            return Passing(f"The embedding endpoint {endpoint} fails (HTTP {status}): {message}")
        case _:
            return EmbedderUnavailable(f"The embedding endpoint {endpoint} answers with HTTP {status}: {message}")


def _rejection(status: int, message: str) -> EmbedderRejected:
    if status == 413 or _TOO_LARGE.search(message):
        return TooLarge(f"The embedding endpoint finds a request too large: {message}")
    return EmbedderRejected(f"The embedding endpoint refuses a request (HTTP {status}): {message}")


def names_dimensions(body: bytes) -> bool:
    """Say whether a refusal may be about the parameter ``dimensions``, which not every server knows."""
    return b"dimensions" in body.lower() or b"matryoshka" in body.lower()


def server_message(document: object, secrets: Collection[str]) -> str:
    """Return what a server says of an error, short and on one line; nothing if it may quote any of the ``secrets``."""
    error = (
        document.get("error", document.get("message", document.get("detail"))) if isinstance(document, dict) else None
    )
    if isinstance(error, dict):
        error = error.get("message")
    if not isinstance(error, str) or not error.strip():
        return "no reason given"
    text = " ".join(error.split())[:_SHOWN]
    runs = {text[start : start + _QUOTE] for start in range(len(text) - _QUOTE + 1)} or {text}
    if any(run in secret for secret in secrets for run in runs):
        return "its reason quotes the request and is not shown"
    return text


def _json(body: bytes) -> object:
    try:
        return _JSON.validate_json(body)
    except ValueError:
        return None
