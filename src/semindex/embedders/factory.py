"""Which embedder a configuration means."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from semindex.config import EndpointConfig, IndexingConfig
from semindex.core.known_models import known_model
from semindex.model.limits import DEFAULT_MIN_SCORE
from semindex.model.profiles import EmbeddingProfile
from semindex.ports import Embedder, TryFailed, ignore_failure
from semindex.secrets import EMBEDDER_API_KEY, read_secret

PROVIDER = "openai-compatible"
EMBEDDED_CONCURRENCY = 4
"""The embedded model takes one batch at a time; the others are ready when it has finished."""


@asynccontextmanager
async def open_embedder(indexing: IndexingConfig, failed: TryFailed = ignore_failure) -> AsyncIterator[Embedder]:
    """Open the embedder that is configured; a key of the environment comes before the configuration's own.

    Nothing is sent to an endpoint yet. Raises ConfigurationError for a secret that cannot be read and for an
    embedded model that is damaged.
    """
    # Each is imported where it is used: a cell with an endpoint needs no model, and one without needs no client.
    if not indexing.uses_endpoint:
        from semindex.embedders.static import StaticEmbedder

        yield await StaticEmbedder.load()
        return
    from semindex.embedders.endpoint import endpoint_of
    from semindex.embedders.openai_compatible import open_endpoint_embedder

    configured = _endpoint(indexing)
    key = read_secret(EMBEDDER_API_KEY, os.environ) or configured.api_key
    async with open_endpoint_embedder(
        endpoint_of(str(configured.base_url), None if key is None else key.get_secret_value()),
        endpoint_profile(indexing),
        batch_size=indexing.embedding_batch_size,
        concurrency=configured.max_concurrency,
        request_timeout=configured.request_timeout_ms / 1000,
        tries=indexing.scanner_max_batch_retries,
        failed=failed,
    ) as embedder:
        yield embedder


def concurrency_of(indexing: IndexingConfig) -> int:
    """Return how many batches of documents are worth being under way at the same time."""
    return _endpoint(indexing).max_concurrency if indexing.uses_endpoint else EMBEDDED_CONCURRENCY


def endpoint_profile(indexing: IndexingConfig) -> EmbeddingProfile:
    """Return the space of the configured endpoint: what is not configured is the model's own, where it is known."""
    assert indexing.model is not None, "the configuration has been checked"
    assert indexing.dimension is not None, "the configuration has been checked"
    known = known_model(indexing.model)
    prefix = "" if known is None else known.query_prefix
    return EmbeddingProfile(
        PROVIDER,
        indexing.model,
        indexing.dimension,
        DEFAULT_MIN_SCORE if known is None else known.min_score,
        prefix if indexing.query_prefix is None else indexing.query_prefix,
        indexing.document_prefix or "",
    )


def _endpoint(indexing: IndexingConfig) -> EndpointConfig:
    assert indexing.openai_compatible is not None, "the configuration has been checked"
    return indexing.openai_compatible
