"""An embedding endpoint's double: deterministic vectors in the wire format of OpenAI-compatible endpoints.

The vectors are made from the hashes of words: texts that share rare words are close. Every
vector is base64, whatever was asked for. To try semindex with it:
``python -m semindex.testing.embedder_double --port 8001``, and ``http://127.0.0.1:8001/v1`` as the base URL.
"""

import argparse
import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from attrs import define, field
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from semindex.embedders.hashing import hashed_tokens
from semindex.ports import Vectors
from semindex.testing.doubles import Faulty, main

DIMENSION = 32


class Wanted(BaseModel):
    """What a request asks for; anything else in it is ignored."""

    input: str | list[str]
    model: str


@define
class EmbedderDouble:
    """The endpoint; an ASGI application. Anything may be changed while it runs."""

    dimension: int = DIMENSION
    api_key: str | None = field(default=None, repr=False)
    max_texts: int | None = None
    """Texts of one request above which it is refused as too large."""
    max_length: int | None = None
    """Characters of one text above which its request is refused as too large."""
    poison: str | None = None
    """A request with a text that holds this is refused."""
    batches: list[tuple[str, ...]] = field(factory=list)
    """The texts of each request that was answered with vectors."""

    @property
    def texts(self) -> list[str]:
        """Return every text that was embedded, as often as it was."""
        return [text for batch in self.batches for text in batch]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await Router([Route("/healthz", self._health), Route("/v1/embeddings", self._embed, methods=["POST"])])(
            scope, receive, send
        )

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok", "dimension": self.dimension})

    async def _embed(self, request: Request) -> Response:
        if self.api_key is not None and request.headers.get("authorization") != f"Bearer {self.api_key}":
            return _error(401, "invalid_api_key", f"Incorrect API key: {request.headers.get('authorization')}")
        try:
            wanted = Wanted.model_validate_json(await request.body())
        except ValidationError:
            return _error(400, "invalid_request", "The request has no input or no model.")
        texts = [wanted.input] if isinstance(wanted.input, str) else wanted.input
        if (refusal := self._refusal(texts)) is not None:
            return refusal
        self.batches.append(tuple(texts))
        return JSONResponse(_answer(texts, wanted.model, self._vectors(texts, request.scope["state"].get("spoil"))))

    def _refusal(self, texts: Sequence[str]) -> Response | None:
        if self.max_texts is not None and len(texts) > self.max_texts:
            return _error(413, "too_many_inputs", f"There are more than {self.max_texts} inputs.")
        if self.max_length is not None and any(len(text) > self.max_length for text in texts):
            return _error(400, "context_length_exceeded", f"The maximum context length is {self.max_length}.")
        if self.poison is not None and any(self.poison in text for text in texts):
            return _error(400, "invalid_input", f"Cannot embed an input that holds {self.poison}.")
        return None

    def _vectors(self, texts: Sequence[str], spoil: str | None) -> Vectors:
        vectors = hashed_tokens(texts, self.dimension + (spoil == "dimension"))
        if spoil == "nan":
            vectors[-1, 0] = np.nan
        return vectors[1:] if spoil == "count" else vectors


def _answer(texts: Sequence[str], model: str, vectors: Vectors) -> dict[str, Any]:
    tokens = sum(-(-len(text) // 4) for text in texts)
    return {
        "object": "list",
        "model": model,
        "data": [
            {"object": "embedding", "index": index, "embedding": base64.b64encode(vector.tobytes()).decode()}
            for index, vector in enumerate(vectors.astype("<f4"))
        ],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _error(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": "invalid_request_error", "code": code}}, status)


@asynccontextmanager
async def _opened(arguments: argparse.Namespace) -> AsyncIterator[Faulty]:
    yield Faulty(EmbedderDouble(arguments.dimension, arguments.api_key))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--dimension", type=int, default=DIMENSION, help=f"of the vectors (default: {DIMENSION})")
    options.add_argument("--api-key", metavar="KEY", help="what clients have to show (default: nothing)")
    main("The embedder double", options, _opened)
