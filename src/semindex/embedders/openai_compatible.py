"""The embedder of OpenAI-compatible endpoints, over HTTP on Trio.

Owns the requests: their time limit, the size of their answers, what each failure means. How often one is tried again is
:mod:`semindex.embedders.patience`'s, batching and the cell-wide concurrency are the scheduler's.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import httpx
import trio

from semindex.embedders.endpoint import Endpoint, read_vectors, refusal, request_body
from semindex.embedders.patience import Passing, Patience, RateLimited, retry_after
from semindex.model.errors import EmbedderRejected, EmbedderUnavailable
from semindex.model.profiles import EmbeddingProfile, Role
from semindex.ports import Vectors

CONNECT_TIMEOUT = 10.0
MAX_ANSWER = 64 * 1024 * 1024
"""Bytes of an answer: 200 vectors of 16,384 components as numbers in text."""


class OpenAICompatibleEmbedder:
    """Implements :class:`semindex.ports.Embedder`; see :func:`open_endpoint_embedder`."""

    def __init__(
        self,
        client: httpx.AsyncClient,
        endpoint: Endpoint,
        profile: EmbeddingProfile,
        *,
        batch_size: int,
        request_timeout: float,
        tries: int,
    ) -> None:
        """``request_timeout`` in seconds, from the first byte sent to the last one read."""
        self.profile = profile
        self.batch_size = batch_size
        self._client = client
        self._endpoint = endpoint
        self._request_timeout = request_timeout
        self._patience = Patience(tries)
        self._sends_dimension = True
        self._decoding = trio.CapacityLimiter(1)

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return unit vectors, shape [len(texts), dimension].

        A single text that the endpoint finds too large is cut to its first half and tried once more.
        """
        if not texts:
            await trio.lowlevel.checkpoint()
            return read_vectors(b'{"data":[]}', 0, self.profile.dimension)
        try:
            return await self._patience(lambda: self._post(texts))
        except EmbedderRejected:
            if len(texts) > 1 or len(texts[0]) < 2:
                raise
            return await self._patience(lambda: self._post([texts[0][: len(texts[0]) // 2]]))

    async def _post(self, texts: Sequence[str]) -> Vectors:
        dimension = self.profile.dimension
        sent = dimension if self._sends_dimension else None
        status, headers, body = await self._exchange(request_body(texts, self.profile.model, sent))
        if status in (400, 422) and sent is not None and b"dimension" in body.lower():
            # Some servers know no such parameter; what they answer is checked all the same.
            self._sends_dimension = False
            status, headers, body = await self._exchange(request_body(texts, self.profile.model, None))
        if status == 429:
            raise RateLimited("The embedding endpoint limits the rate of requests.", retry_after(headers))
        if status >= 500:
            raise Passing(str(refusal(status, body, self._endpoint.shown)))
        if status != 200:
            raise refusal(status, body, self._endpoint.shown)
        # Megabytes of JSON hold the interpreter's lock for a moment, and a thread gives it back in between.
        return await trio.to_thread.run_sync(read_vectors, body, len(texts), dimension, limiter=self._decoding)

    async def _exchange(self, content: bytes) -> tuple[int, httpx.Headers, bytes]:
        shown = self._endpoint.shown
        try:
            with trio.fail_after(self._request_timeout):
                async with self._client.stream(
                    "POST", self._endpoint.url, content=content, headers=dict(self._endpoint.headers)
                ) as response:
                    body = b""
                    async for piece in response.aiter_bytes():
                        body += piece
                        if len(body) > MAX_ANSWER:
                            raise EmbedderUnavailable(f"The embedding endpoint {shown} answers without an end.")
                    return response.status_code, response.headers, body
        except trio.TooSlowError:
            limit = f"{self._request_timeout:g} s"
            raise Passing(f"The embedding endpoint {shown} did not answer within {limit}.") from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            raise Passing(f"The embedding endpoint {shown} cannot be reached ({type(error).__name__}).") from None


@asynccontextmanager
async def open_endpoint_embedder(
    endpoint: Endpoint,
    profile: EmbeddingProfile,
    *,
    batch_size: int,
    concurrency: int,
    request_timeout: float,
    tries: int,
) -> AsyncIterator[OpenAICompatibleEmbedder]:
    """Open the embedder of an endpoint; nothing is sent yet. Proxies and certificates come from the environment."""
    limits = httpx.Limits(max_connections=concurrency + 1, max_keepalive_connections=concurrency + 1)
    timeout = httpx.Timeout(request_timeout, connect=min(CONNECT_TIMEOUT, request_timeout))
    async with httpx.AsyncClient(limits=limits, timeout=timeout, follow_redirects=False) as client:
        yield OpenAICompatibleEmbedder(
            client, endpoint, profile, batch_size=batch_size, request_timeout=request_timeout, tries=tries
        )
