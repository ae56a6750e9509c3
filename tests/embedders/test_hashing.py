import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semindex.embedders.hashing import EmbedCall, HashingEmbedder
from semindex.model.profiles import Role
from semindex.ports import Embedder
from tests.embedders.conformance import EmbedderConformance, assert_unit


class TestHashingConformance(EmbedderConformance):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return HashingEmbedder()


def fnv1a(token: str) -> int:
    value = 2166136261
    for character in token:
        value = ((value ^ ord(character)) * 16777619) % 2**32
    return value


def test_the_oracle_is_the_published_hash() -> None:
    assert (fnv1a(""), fnv1a("a"), fnv1a("foobar")) == (0x811C9DC5, 0xE40C292C, 0xBF9CF968)


async def test_tokens_are_split_lowered_filtered_and_hashed_as_the_fixture_does() -> None:
    embedder = HashingEmbedder(dimension=32)
    expected = np.zeros(32)
    for token in ("get", "user", "name", "user", "x86"):
        expected[fnv1a(token) % 32] += 1
        expected[fnv1a("pair:" + token) % 32] += 0.35

    [vector] = await embedder.embed(["export function getUserName of the USER, id: x86"], Role.DOCUMENT)

    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)


async def test_queries_and_documents_share_one_space() -> None:
    embedder = HashingEmbedder()

    np.testing.assert_array_equal(
        await embedder.embed(["heliotrope token"], Role.QUERY),
        await embedder.embed(["heliotrope token"], Role.DOCUMENT),
    )


async def test_calls_and_texts_are_recorded_in_order() -> None:
    embedder = HashingEmbedder()
    assert embedder.calls == []

    await embedder.embed(["one", "two"], Role.DOCUMENT)
    await embedder.embed(["three"], Role.QUERY)

    assert embedder.calls == [EmbedCall(("one", "two"), Role.DOCUMENT), EmbedCall(("three",), Role.QUERY)]
    assert embedder.texts == ["one", "two", "three"]


async def test_more_texts_than_the_batch_size_are_refused() -> None:
    embedder = HashingEmbedder(batch_size=2)

    with pytest.raises(ValueError, match="3 texts in one call, at most 2"):
        await embedder.embed(["a", "b", "c"], Role.DOCUMENT)

    assert embedder.calls == []


@given(st.lists(st.text(st.characters()), max_size=5), st.integers(1, 40))
async def test_any_texts_give_unit_vectors_in_any_dimension(texts: list[str], dimension: int) -> None:
    embedder = HashingEmbedder(dimension)

    assert_unit(await embedder.embed(texts, Role.DOCUMENT), len(texts), embedder)
