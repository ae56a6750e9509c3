import pytest

from semindex.core.known_models import known_model


@pytest.mark.parametrize("name", ["nomic-embed-text", "nomic-embed-text:latest", "ollama/nomic-embed-text:v1.5"])
def test_a_tag_and_a_vendor_do_not_count(name: str) -> None:
    known = known_model(name)

    assert known is not None
    assert (known.dimension, known.min_score, known.query_prefix) == (768, 0.3, "search_query: ")


@pytest.mark.parametrize("name", ["", "nomic", "nomic-embed-text-v2", "text-embedding-3"])
def test_a_model_that_is_only_similar_is_not_known(name: str) -> None:
    assert known_model(name) is None
