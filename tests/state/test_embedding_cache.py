"""The SQLite embedding cache: what the twin cannot show."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from semindex.state.embedding_cache import DEFAULT_MAX_BYTES, SqliteEmbeddingCache, open_embedding_cache
from tests.state.conformance import EmbeddingCacheConformance, OpenCache


class TestSqliteEmbeddingCache(EmbeddingCacheConformance):
    @pytest.fixture
    def open_cache(self, tmp_path: Path) -> OpenCache:
        def open_cache(*, limited: bool = False) -> AbstractAsyncContextManager[SqliteEmbeddingCache]:
            return open_embedding_cache(tmp_path / "embeddings.db", 320_000 if limited else DEFAULT_MAX_BYTES)

        return open_cache
