"""Which vector store a configuration means."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from semindex.config import IndexingConfig
from semindex.ports import TryFailed, VectorStore, ignore_failure
from semindex.secrets import QDRANT_API_KEY, read_secret


@asynccontextmanager
async def open_vector_store(
    indexing: IndexingConfig, directory: Path, failed: TryFailed = ignore_failure
) -> AsyncIterator[VectorStore]:
    """Open the store that is configured; an embedded one keeps its files in the directory.

    A key of the environment comes before the configuration's own. Nothing is sent to a server yet.
    Raises ConfigurationError.
    """
    if not indexing.uses_qdrant:
        from semindex.stores.edge import open_edge_store

        async with open_edge_store(directory) as embedded:
            yield embedded
        return
    # Here, since importing the client takes a second, which is for those to wait who have a server.
    from semindex.stores.qdrant import open_qdrant_store
    from semindex.stores.qdrant_calls import parse_url

    configured = indexing.qdrant
    assert configured is not None, "the configuration has been checked"
    key = read_secret(QDRANT_API_KEY, os.environ) or configured.api_key
    async with open_qdrant_store(
        parse_url(configured.url),
        None if key is None else key.get_secret_value(),
        call_timeout=configured.timeout_ms / 1000,
        concurrency=configured.max_concurrency,
        hnsw_m=configured.hnsw_m,
        hnsw_ef_construct=configured.hnsw_ef_construct,
        failed=failed,
    ) as server:
        yield server
