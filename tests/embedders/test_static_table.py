import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from semindex.embedders.static_table import FORMAT, StaticTable
from semindex.embedders.tokenizer import BUCKETS
from semindex.model.errors import ConfigurationError
from semindex.model.profiles import Role

PIECES = ["parse", "header", "line", "#s", "socket"]


def table_file(**changes: NDArray[np.generic] | None) -> bytes:
    """Return the content of a small random table's file, with some members changed or left out."""
    random = np.random.default_rng(1)
    size = BUCKETS + len(PIECES)
    metadata = {"format": FORMAT, "name": "small", "damping": 0.5}
    members: dict[str, NDArray[np.generic] | None] = {
        "table": random.integers(-127, 128, (size, 16)).astype(np.int8),
        "query_weight": random.random(size, np.float32),
        "document_weight": random.random(size, np.float32),
        "vocabulary": np.frombuffer("\n".join(PIECES).encode(), np.uint8),
        "metadata": np.frombuffer(json.dumps(metadata).encode(), np.uint8),
    }
    members.update(changes)
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer, allow_pickle=False, **{name: value for name, value in members.items() if value is not None}
    )
    return buffer.getvalue()


@pytest.mark.parametrize("role", Role)
def test_a_vector_is_the_weighted_sum_of_its_tokens_rows_at_length_one(role: Role) -> None:
    table = StaticTable.parse(table_file())
    parse, header, s = (BUCKETS + PIECES.index(piece) for piece in ("parse", "header", "#s"))
    weights, rows = table.weights[role].astype(float), table.rows.astype(float)
    expected = weights[parse] * 3**0.5 * rows[parse] + weights[header] * rows[header] + weights[s] * rows[s]

    [vector] = table.embed(["parse(parse) # Parse HEADERS"], role)

    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)


def test_a_text_without_tokens_has_the_direction_of_row_0() -> None:
    table = StaticTable.parse(table_file())
    expected = table.rows[0].astype(float)

    [vector] = table.embed(["-->"], Role.DOCUMENT)

    np.testing.assert_allclose(vector, expected / np.linalg.norm(expected), atol=1e-6)


@given(st.lists(st.text(st.characters() | st.sampled_from("parse header line ")), max_size=6))
def test_a_texts_vector_is_bit_for_bit_the_same_in_any_company(texts: list[str]) -> None:
    table = StaticTable.parse(table_file())

    together = table.embed(texts, Role.DOCUMENT)

    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_array_equal(table.embed([text], Role.DOCUMENT)[0], vector)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"not a zip archive", id="text"),
        pytest.param(table_file()[:-100], id="cut short"),
        pytest.param(table_file(table=None), id="no table"),
        pytest.param(table_file(metadata=np.frombuffer(b"[]", np.uint8)), id="metadata of another shape"),
        pytest.param(table_file(metadata=np.frombuffer(b'{"format": "other"}', np.uint8)), id="another format"),
        pytest.param(table_file(metadata=np.frombuffer(b'{"forma', np.uint8)), id="metadata cut short"),
        pytest.param(table_file(vocabulary=np.frombuffer(b"\xff", np.uint8)), id="vocabulary not UTF-8"),
    ],
)
def test_a_file_that_is_no_table_is_a_configuration_error(content: bytes) -> None:
    with pytest.raises(ConfigurationError, match="static embedding table"):
        StaticTable.parse(content)
