"""The embedder of OpenAI-compatible endpoints, over HTTP on Trio.

Owns the requests: their time limit, the size of their answers, what each failure means. When one is sent and sent again
is :mod:`semindex.embedders.patience`'s, batching the scheduler's.
"""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from math import inf

import httpx2
import numpy as np
import trio

from semindex.embedders.endpoint import (
    Endpoint,
    Passing,
    RateLimited,
    TooLarge,
    names_dimensions,
    read_vectors,
    refusal,
    request_body,
)
from semindex.embedders.patience import Patience, retry_after
from semindex.model.errors import EmbedderRejected, EmbedderUnavailable
from semindex.model.profiles import EmbeddingProfile, Role
from semindex.ports import TryFailed, Vectors, ignore_failure

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT = 10.0
VALIDATION_TIMEOUT = 15.0
"""Seconds for the request that has to succeed before any other is made."""
TRUST = 10.0
"""Seconds for which an endpoint that has answered the validation is not asked again when it refuses a batch."""
PROBE = "semindex"
"""The text of the validation."""
SMALL_ANSWER = 64 * 1024
"""Bytes of an answer up to which reading it takes less than a millisecond; larger ones are read in a thread."""
MAX_ANSWER = 64 * 1024 * 1024
"""Bytes of an answer: 200 vectors of 16,384 components as numbers in text."""


class OpenAICompatibleEmbedder:
    """Implements :class:`semindex.ports.Embedder`; see :func:`open_endpoint_embedder`."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        endpoint: Endpoint,
        profile: EmbeddingProfile,
        patience: Patience,
        *,
        batch_size: int,
        request_timeout: float,
    ) -> None:
        """``request_timeout`` in seconds, from the first byte sent to the last one read."""
        self.profile = profile
        self.batch_size = batch_size
        self._client = client
        self._endpoint = endpoint
        self._patience = patience
        self._request_timeout = request_timeout
        self._sends_dimension = True
        self._decoding = trio.CapacityLimiter(1)
        self._validating = trio.Lock()
        self._validated_at = self._failed_at = -inf
        self._failure: EmbedderUnavailable | None = None

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return unit vectors, shape [len(texts), dimension]; a query takes no longer than one request may.

        A single text that the endpoint finds too large is cut to its first half. One that it refuses for another reason
        is rejected only if it is refused again after the endpoint has taken another text. Once the endpoint was not
        available, no text is sent before it has answered the validation.
        """
        if not texts:
            await trio.lowlevel.checkpoint()
            return np.empty((0, self.profile.dimension), np.float32)
        with trio.move_on_after(self._request_timeout if role is Role.QUERY else inf):
            try:
                return await self._embed(texts)
            except RateLimited:
                raise
            except EmbedderUnavailable:
                self._validated_at = -inf
                raise
        raise EmbedderUnavailable(self._too_slow(self._request_timeout))

    async def _embed(self, texts: Sequence[str]) -> Vectors:
        await self._validate(since=-inf)
        try:
            return await self._send(texts)
        except TooLarge:
            raise
        except EmbedderRejected as error:
            rejection = error
        is_single = len(texts) == 1
        await self._validate(since=trio.current_time() - (0 if is_single else TRUST))
        if not is_single:
            raise rejection
        return await self._send(texts)

    async def _send(self, texts: Sequence[str]) -> Vectors:
        try:
            return await self._patience(partial(self._post, texts))
        except TooLarge as error:
            if len(texts) > 1 or len(texts[0]) < 2:
                raise
            logger.warning("a text is cut to its half: %s", error)
        return await self._patience(partial(self._post, [texts[0][: len(texts[0]) // 2]]))

    async def _validate(self, *, since: float) -> None:
        """Make sure that the endpoint has answered as configured after ``since``, asking it once for all who wait.

        Raises EmbedderUnavailable.
        """
        arrived = trio.current_time()
        if self._validated_at > since:
            return
        async with self._validating:
            if self._validated_at > since:
                return
            if self._failure is None or self._failed_at < arrived:
                await self._ask()
        if self._failure is not None:
            raise self._failure

    async def _ask(self) -> None:
        self._validated_at, self._failure = -inf, EmbedderUnavailable(self._too_slow(VALIDATION_TIMEOUT))
        with trio.move_on_after(VALIDATION_TIMEOUT):
            try:
                await self._patience(partial(self._post, [PROBE]))
                self._validated_at, self._failure = trio.current_time(), None
            except EmbedderRejected as error:
                self._failure = EmbedderUnavailable(f"The embedding endpoint refuses every text. {error}")
            except EmbedderUnavailable as error:
                self._failure = error
        self._failed_at = trio.current_time()

    async def _post(self, texts: Sequence[str]) -> Vectors:
        status, headers, body = await self._exchange(texts)
        if status in (400, 422) and self._sends_dimension and names_dimensions(body):
            logger.info("the embedding endpoint does not know the parameter dimensions; it is not sent any more")
            self._sends_dimension = False
            status, headers, body = await self._exchange(texts)
        if status != 200:
            raise refusal(status, body, self._endpoint, texts, retry_after(headers))
        if len(body) <= SMALL_ANSWER:
            return read_vectors(body, texts, self.profile.dimension)
        return await trio.to_thread.run_sync(read_vectors, body, texts, self.profile.dimension, limiter=self._decoding)

    async def _exchange(self, texts: Sequence[str]) -> tuple[int, httpx2.Headers, bytes]:
        dimension = self.profile.dimension if self._sends_dimension else None
        content, headers = request_body(texts, self.profile.model, dimension), dict(self._endpoint.headers)
        body = bytearray()
        try:
            with trio.fail_after(self._request_timeout), trio.CancelScope() as reading:
                async with self._client.stream(
                    "POST", self._endpoint.url, content=content, headers=headers
                ) as response:
                    async for piece in response.aiter_bytes():
                        body += piece
                        if len(body) > MAX_ANSWER:
                            # Leaving the loop would leave the client's generators behind, unfinished.
                            reading.cancel(reason="the answer has no end")
                    return response.status_code, response.headers, bytes(body)
        except trio.TooSlowError:
            raise Passing(self._too_slow(self._request_timeout)) from None
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            reason = type(error).__name__
            raise Passing(f"The embedding endpoint {self._endpoint} cannot be reached ({reason}).") from None
        raise EmbedderUnavailable(f"The embedding endpoint {self._endpoint} answers without an end.")

    def _too_slow(self, seconds: float) -> str:
        return f"The embedding endpoint {self._endpoint} did not answer within {seconds:g} s."


@asynccontextmanager
async def open_endpoint_embedder(
    endpoint: Endpoint,
    profile: EmbeddingProfile,
    *,
    batch_size: int,
    concurrency: int,
    request_timeout: float,
    tries: int,
    failed: TryFailed = ignore_failure,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> AsyncIterator[OpenAICompatibleEmbedder]:
    """Open the embedder of an endpoint; nothing is sent yet. ``transport`` instead of sockets.

    Proxies and certificate authorities are those of the environment.
    """
    limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    timeout = httpx2.Timeout(request_timeout, connect=min(CONNECT_TIMEOUT, request_timeout))
    patience = Patience(concurrency=concurrency, tries=tries, failed=failed)
    async with httpx2.AsyncClient(limits=limits, timeout=timeout, transport=transport) as client:
        yield OpenAICompatibleEmbedder(
            client, endpoint, profile, patience, batch_size=batch_size, request_timeout=request_timeout
        )
