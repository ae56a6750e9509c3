"""Which embedder a configuration means, and what its space is."""

import subprocess
import sys
from typing import Any

import pytest

from semindex.config import IndexingConfig
from semindex.embedders.factory import concurrency_of, endpoint_profile, open_embedder
from semindex.embedders.static import PROFILE
from semindex.model.errors import ConfigurationError
from semindex.model.profiles import EmbeddingProfile


def indexing(**fields: Any) -> IndexingConfig:
    endpoint = {"baseUrl": "http://127.0.0.1:1/v1", "maxConcurrency": 7, "apiKey": "key-in-the-file"}
    return IndexingConfig.model_validate({"model": "m", "dimension": 3, "openai-compatible": endpoint} | fields)


@pytest.mark.parametrize(
    ("fields", "profile"),
    [
        ({}, EmbeddingProfile("openai-compatible", "m", 3, 0.4)),
        (
            {"model": "nomic-embed-text:latest", "dimension": 768},
            EmbeddingProfile("openai-compatible", "nomic-embed-text:latest", 768, 0.3, "search_query: "),
        ),
        (
            {"model": "nomic-embed-text", "queryPrefix": "", "documentPrefix": "search_document: "},
            EmbeddingProfile("openai-compatible", "nomic-embed-text", 3, 0.3, "", "search_document: "),
        ),
        ({"model": "voyage-code-3"}, EmbeddingProfile("openai-compatible", "voyage-code-3", 3, 0.35)),
    ],
)
def test_what_is_not_configured_is_the_models_own(fields: dict[str, Any], profile: EmbeddingProfile) -> None:
    assert endpoint_profile(indexing(**fields)) == profile


async def test_an_endpoint_is_opened_without_being_asked_for_anything() -> None:
    async with open_embedder(indexing(embeddingBatchSize=17)) as embedder:
        assert embedder.batch_size == 17
        assert embedder.profile.model == "m"
        assert "key-in-the-file" not in repr(embedder)


async def test_without_an_endpoint_it_is_the_embedded_model() -> None:
    async with open_embedder(IndexingConfig()) as embedder:
        assert embedder.profile == PROFILE


async def test_a_secret_file_that_cannot_be_read_is_told_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMANTIC_INDEX_EMBEDDER_API_KEY_FILE", "/nowhere/key")

    async with open_embedder(IndexingConfig()):
        pass
    with pytest.raises(ConfigurationError, match="/nowhere/key"):
        async with open_embedder(indexing()):
            pass


def test_as_many_batches_are_under_way_as_requests_may_be() -> None:
    assert concurrency_of(indexing()) == 7
    assert concurrency_of(IndexingConfig()) >= 1


def test_a_cell_without_servers_imports_no_client_of_them() -> None:
    program = "import sys, semindex.service; print([name for name in ('qdrant_client', 'grpc') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)

    assert done.stdout == "[]\n"
