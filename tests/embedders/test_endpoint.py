"""The wire format of embedding endpoints, without a wire."""

import base64
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from semindex.embedders.endpoint import (
    Passing,
    RateLimited,
    TooLarge,
    endpoint_of,
    names_dimensions,
    read_vectors,
    refusal,
    request_body,
)
from semindex.model.errors import EmbedderRejected, EmbedderUnavailable, SemindexError

ENDPOINT = endpoint_of("http://user:password@127.0.0.1:8001/v1/embeddings?key=hidden", "sk-secret-key")


def answer(*vectors: Any, **fields: Any) -> bytes:
    return json.dumps({"data": [{"embedding": vector} for vector in vectors], **fields}).encode()


def encoded(*components: float) -> str:
    return base64.b64encode(np.array(components, "<f4").tobytes()).decode()


@pytest.mark.parametrize(
    ("base_url", "url", "is_complete"),
    [
        ("https://api.example.com/v1", "https://api.example.com/v1/embeddings", False),
        ("https://api.example.com/v1/", "https://api.example.com/v1/embeddings", False),
        ("http://127.0.0.1:8001", "http://127.0.0.1:8001/embeddings", False),
        ("http://host/v1/embeddings", "http://host/v1/embeddings", True),
        ("http://host/api/embed", "http://host/api/embed", True),
        ("http://host/embedder", "http://host/embedder/embeddings", False),
        ("https://h/openai/deployments/ada/embeddings?api-version=1", "https://h/openai/deployments/ada/embeddings?api-version=1", True),
        ("https://h/serving-endpoints/gte/invocations", "https://h/serving-endpoints/gte/invocations", True),
    ],
)  # fmt: skip
def test_a_base_url_says_where_to_post_and_with_which_headers(base_url: str, url: str, is_complete: bool) -> None:
    endpoint = endpoint_of(base_url, "sk-secret-key")

    assert endpoint.url == url
    assert endpoint.headers["authorization"] == "Bearer sk-secret-key"
    assert endpoint.headers.get("api-key") == ("sk-secret-key" if is_complete else None)


@pytest.mark.parametrize("key", [None, ""])
def test_without_a_key_there_is_no_header_of_authentication(key: str | None) -> None:
    assert endpoint_of("http://host/embeddings", key).headers == {"content-type": "application/json"}


def test_a_user_info_is_used_where_there_is_no_key_and_never_stays_in_the_url() -> None:
    named = endpoint_of("http://us%40er:p%3Ass@host/v1", None)
    keyed = endpoint_of("http://user:pass@host/v1", "sk-secret-key")

    assert named.url == keyed.url == "http://host/v1/embeddings"
    assert named.headers["authorization"] == "Basic " + base64.b64encode(b"us@er:p:ss").decode()
    assert keyed.headers["authorization"] == "Bearer sk-secret-key"


def test_an_endpoint_is_shown_without_credentials() -> None:
    assert str(ENDPOINT) == "http://127.0.0.1:8001/v1/embeddings"
    assert repr(ENDPOINT) == "Endpoint()"


def test_a_request_asks_for_base64_and_names_the_dimension_only_if_it_is_given() -> None:
    assert json.loads(request_body(["a\ud800", "ß"], "m", 256)) == {
        "input": ["a\ufffd", "ß"], "model": "m", "encoding_format": "base64", "dimensions": 256,
    }  # fmt: skip
    assert "dimensions" not in json.loads(request_body(["a"], "m", None))


@given(st.permutations(range(5)), st.booleans())
def test_the_index_decides_the_order_and_both_encodings_are_read(order: list[int], as_text: bool) -> None:
    rows = np.random.default_rng(3).normal(size=(5, 4)).astype(np.float32)
    data = [{"index": i, "embedding": encoded(*rows[i]) if as_text else rows[i].tolist()} for i in order]

    vectors = read_vectors(json.dumps({"data": data}).encode(), ["t"] * 5, 4)

    np.testing.assert_allclose(vectors, rows / np.linalg.norm(rows, axis=1, keepdims=True), atol=1e-6)


def test_without_an_index_the_order_of_the_answer_counts_and_a_zero_vector_stays_zero() -> None:
    np.testing.assert_array_equal(read_vectors(answer([0, 0], [0, 2]), ["a", "b"], 2), [[0, 0], [0, 1]])


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b"<html>", Passing, "not JSON"),
        (b"[]", EmbedderRejected, "no reason given"),
        (b'{"data": {}}', EmbedderRejected, "no reason given"),
        (b'{"error": {"message": "the model is\\n loading"}}', EmbedderRejected, "the model is loading"),
        (b'{"error": "too many tokens"}', TooLarge, "too large: too many tokens"),
        (answer([1, 0]), EmbedderRejected, "1 vectors for 2 texts"),
        (answer([1, 0], [1, 0], [1, 0]), EmbedderRejected, "3 vectors for 2 texts"),
        (answer([1, 0], [1, 0, 0]), EmbedderUnavailable, "3 dimensions where 2 are configured"),
        (answer([1, 0], []), EmbedderUnavailable, "0 dimensions where 2"),
        (answer([1, 0], encoded(1, np.nan)), EmbedderRejected, "not finite"),
        (answer([1, 0], encoded(1, -np.inf)), EmbedderRejected, "not finite"),
        (answer([1, 0], "*"), EmbedderRejected, "cannot be read"),
        (answer([1, 0], "AAA="), EmbedderRejected, "cannot be read"),
        (answer([1, 0], [[1, 0]]), EmbedderRejected, "cannot be read"),
        (answer([1, 0], ["x", 0]), EmbedderRejected, "cannot be read"),
        (answer([1, 0], None), EmbedderRejected, "cannot be read"),
        (b'{"data": [1, 2]}', EmbedderRejected, "cannot be read"),
        (b'{"data": [{"index": 0, "embedding": [1, 0]}, {"index": 0, "embedding": [1, 0]}]}', EmbedderRejected, "no order"),
        (b'{"data": [{"index": 0, "embedding": [1, 0]}, {"index": 2, "embedding": [1, 0]}]}', EmbedderRejected, "no order"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_right_is_an_error_that_says_why(
    body: bytes, kind: type[SemindexError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        read_vectors(body, ["a", "b"], 2)
    assert caught.type is kind


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, b'{"error": {"message": "This model\'s maximum context length is 8192 tokens"}}', TooLarge),
        (413, b"", TooLarge),
        (422, b'{"detail": "batch size exceeds 32"}', TooLarge),
        (400, b'{"error": "bad"}', EmbedderRejected),
        (422, b"", EmbedderRejected),
        (401, b"", EmbedderUnavailable),
        (403, b"", EmbedderUnavailable),
        (404, b'{"error": "model not found"}', EmbedderUnavailable),
        (301, b"", EmbedderUnavailable),
        (307, b"", EmbedderUnavailable),
        (402, b"", EmbedderUnavailable),
        (429, b"", RateLimited),
        (408, b"", Passing),
        (500, b"", Passing),
        (529, b"overloaded", Passing),
    ],
)
def test_a_refusal_is_rejected_if_other_texts_might_pass_and_else_unavailable(
    status: int, body: bytes, kind: type[SemindexError]
) -> None:
    assert type(refusal(status, body, ENDPOINT, ["text"])) is kind


@pytest.mark.parametrize(
    "message",
    [
        "Incorrect API key provided: Bearer sk-secret-key.",
        "cannot tokenise 'def settle_invoice(ledger)'",
        "ledger): too long",
    ],
)
@pytest.mark.parametrize("status", [200, 400, 401, 404, 413, 500])
def test_no_message_quotes_the_key_or_a_text(status: int, message: str) -> None:
    text = "def settle_invoice(ledger): too long"
    body = json.dumps({"error": {"message": message}}).encode()

    if status == 200:
        with pytest.raises(EmbedderRejected) as caught:
            read_vectors(body, [text, "Bearer sk-secret-key"], 2)
        told = str(caught.value)
    else:
        told = str(refusal(status, body, ENDPOINT, [text]))

    for secret in ("sk-secret", "settle_invoice", "ledger):", "password", "hidden"):
        assert secret not in told


def test_what_a_server_says_of_itself_is_told_on_one_line_and_shortened() -> None:
    told = str(refusal(404, json.dumps({"error": {"message": "no such\nmodel " + "x" * 1000}}).encode(), ENDPOINT, []))

    assert told.startswith(
        "There is no embedding endpoint at http://127.0.0.1:8001/v1/embeddings, or no such model: no such model x"
    )
    assert len(told) < 300


def test_a_server_that_does_not_know_dimensions_is_recognised() -> None:
    assert names_dimensions(b'{"error": "Unknown parameter: Dimensions"}')
    assert names_dimensions(b"model does not support matryoshka representation")
    assert not names_dimensions(b"bad request")
