"""The store on a Qdrant server: the conformance suite, and what only a server far away can do.

SEMINDEX_TEST_QDRANT_URL names a real server to run the suite against (SEMINDEX_TEST_QDRANT_API_KEY its key); every
collection on it is deleted.
"""

from collections.abc import AsyncIterator

import pytest

from semindex.ports import VectorStore
from semindex.stores.qdrant import open_qdrant_store
from semindex.stores.qdrant_calls import parse_url
from tests.stores.conformance import VectorStoreConformance


class TestQdrantVectorStore(VectorStoreConformance):
    @pytest.fixture
    async def store(self, qdrant_server: tuple[str, str | None]) -> AsyncIterator[VectorStore]:
        url, key = qdrant_server
        async with open_qdrant_store(parse_url(url), key, call_timeout=30, concurrency=8) as store:
            for name in await store.collections():
                await store.drop(name)
            yield store
