"""The wire format of OpenAI-compatible embedding endpoints: where to post, what to send, what an answer means.

Pure: bytes and values in, bytes and values out. Facts: engine page, section 9. No message made here holds a key, a text, or
the user-info of a URL.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np
from attrs import frozen

from semindex.model.errors import EmbedderRejected, EmbedderUnavailable
from semindex.ports import Vectors

_COMPLETE = re.compile(r"(/embeddings|/embed|/serving-endpoints/[^/]+/invocations)$")
"""Paths that are posted to as they are; a path of deployments ends in /embeddings, too."""
_TOO_LARGE = re.compile(
    r"too (large|long|many)|maximum|max(imum)? (context|input|batch|tokens)|exceed|context length", re.IGNORECASE
)
_SHOWN = 200
"""Characters of a server's own message that are passed on."""


@frozen
class Endpoint:
    """Where to post, and with which headers."""

    url: str
    headers: Mapping[str, str]

    @property
    def shown(self) -> str:
        """Return the URL as it may be shown: without user-info and query."""
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def endpoint_of(base_url: str, api_key: str | None) -> Endpoint:
    """Return the endpoint of a base URL; without a key there is no header of authentication."""
    parts = urlsplit(base_url)
    path = parts.path.rstrip("/")
    is_complete = _COMPLETE.search(path) is not None
    headers = {"content-type": "application/json"}
    if api_key:
        headers["authorization"] = f"Bearer {api_key}"
        if is_complete:
            headers["api-key"] = api_key
    url = urlunsplit(parts._replace(path=path if is_complete else f"{path}/embeddings"))
    return Endpoint(url, headers)


def request_body(texts: Sequence[str], model: str, dimension: int | None) -> bytes:
    """Return the body of a request; ``dimension`` is sent if it is given."""
    body: dict[str, Any] = {"input": list(texts), "model": model, "encoding_format": "base64"}
    if dimension is not None:
        body["dimensions"] = dimension
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def read_vectors(body: bytes, count: int, dimension: int) -> Vectors:
    """Return the vectors of an answer in the order of the request, scaled to length 1; shape [count, dimension].

    Raises EmbedderRejected for an answer to these texts that cannot be right, EmbedderUnavailable for one that no other
    texts would make right.
    """
    try:
        document = json.loads(body)
    except ValueError:
        raise EmbedderUnavailable("The embedding endpoint answered with something that is not JSON.") from None
    if not isinstance(document, dict) or not isinstance(document.get("data"), list):
        raise EmbedderRejected(f"The embedding endpoint answered without vectors: {server_message(document)}")
    data = document["data"]
    if len(data) != count:
        raise EmbedderRejected(f"The embedding endpoint answered with {len(data)} vectors for {count} texts.")
    vectors = np.empty((count, dimension), np.float32)
    seen = set()
    for position, entry in enumerate(data):
        index = entry.get("index", position) if isinstance(entry, dict) else position
        if not isinstance(index, int) or not 0 <= index < count or index in seen:
            raise EmbedderRejected("The embedding endpoint answered with vectors in no order that can be told.")
        seen.add(index)
        vector = _vector(entry.get("embedding") if isinstance(entry, dict) else None)
        if vector.shape != (dimension,):
            raise EmbedderUnavailable(
                f"The embedding endpoint answers with {vector.size} dimensions where {dimension} are configured; "
                "set indexing.dimension to the model's own."
            )
        vectors[index] = vector
    if not np.isfinite(vectors).all():
        raise EmbedderRejected("The embedding endpoint answered with a vector that is not finite.")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), np.float32)


def _vector(value: object) -> Vectors:
    try:
        if isinstance(value, str):
            return np.frombuffer(base64.b64decode(value, validate=True), "<f4")
        if isinstance(value, list):
            return np.asarray(value, np.float32)
    except (binascii.Error, ValueError, TypeError):
        pass
    raise EmbedderRejected("The embedding endpoint answered with a vector that cannot be read.")


def refusal(status: int, body: bytes, shown: str) -> EmbedderRejected | EmbedderUnavailable:
    """Return the error of an answer that is no success: rejected if other texts might pass, else unavailable."""
    message = server_message(_json(body))
    match status:
        case 401 | 403:
            return EmbedderUnavailable(f"The embedding endpoint {shown} refuses the API key (HTTP {status}): {message}")
        case 404:
            return EmbedderUnavailable(f"There is no embedding endpoint at {shown}, or no such model: {message}")
        case 413:
            return EmbedderRejected(f"The embedding endpoint finds a request too large: {message}")
        case 400 | 422 if _TOO_LARGE.search(message):
            return EmbedderRejected(f"The embedding endpoint finds a request too large: {message}")
        case 400 | 422:
            return EmbedderRejected(f"The embedding endpoint refuses a request (HTTP {status}): {message}")
        case _ if 300 <= status < 400:
            return EmbedderUnavailable(f"The embedding endpoint {shown} redirects; configure the URL that it leads to.")
        case _:
            return EmbedderUnavailable(f"The embedding endpoint {shown} fails (HTTP {status}): {message}")


def server_message(document: object) -> str:
    """Return what a server says of an error, shortened and on one line; it is asked for, but never needed."""
    error = (
        document.get("error", document.get("message", document.get("detail"))) if isinstance(document, dict) else None
    )
    if isinstance(error, dict):
        error = error.get("message")
    text = " ".join(str(error).split()) if isinstance(error, str) else "no reason given"
    return text[:_SHOWN]


def _json(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None
