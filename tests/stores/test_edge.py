from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from semindex.ports import VectorStore
from semindex.stores.edge import open_edge_store
from tests.stores.conformance import VectorStoreConformance


class TestEdgeVectorStore(VectorStoreConformance):
    @pytest.fixture
    async def store(self, directory: Path) -> AsyncIterator[VectorStore]:
        async with open_edge_store(directory) as store:
            yield store
