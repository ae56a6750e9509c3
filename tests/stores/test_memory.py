import pytest

from semindex.ports import VectorStore
from semindex.stores.memory import MemoryVectorStore
from tests.stores.conformance import VectorStoreConformance


class TestMemoryVectorStore(VectorStoreConformance):
    @pytest.fixture
    def store(self) -> VectorStore:
        return MemoryVectorStore()
