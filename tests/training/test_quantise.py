import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from semindex.embedders.static_table import StaticTable
from semindex.embedders.tokenizer import BUCKETS, Tokenizer
from semindex.model.profiles import Role
from training.quantise import quantise

PIECES = ["parse", "header", "line", "socket", "#s", "open", "close", "retry"]
TEXTS = ["def parse_headers(line): parse(line)", "socket.close() // retry", "open open open", "()", "日本 unknown"]


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A random table in full precision, as training writes it."""
    random = np.random.default_rng(7)
    size = BUCKETS + len(PIECES)
    path = tmp_path / "table.npz"
    rows = random.normal(size=(size, 256)).astype(np.float32) * random.random((size, 1), np.float32)
    rows[BUCKETS + 3] = 0
    np.savez(
        path,
        rows=rows,
        query=random.random(size, np.float32) + 0.5,
        document=random.random(size, np.float32) + 0.5,
        damping=0.5,
        vocabulary=np.frombuffer("\n".join(PIECES).encode(), np.uint8),
        pairs=12,
        languages=np.frombuffer(b'{"python": 12}', np.uint8),
    )
    return path


@pytest.mark.parametrize(("role", "side"), [(Role.QUERY, "query"), (Role.DOCUMENT, "document")])
def test_the_quantised_table_embeds_as_the_trained_one_would(
    trained: Path, tmp_path: Path, role: Role, side: str
) -> None:
    quantise(trained, tmp_path / "model.npz", name="small", threshold=0.3)

    found = StaticTable.parse((tmp_path / "model.npz").read_bytes()).embed(TEXTS, role)

    with np.load(trained) as data:
        rows, weights = data["rows"].astype(float), data[side].astype(float)
    for text, vector in zip(TEXTS, found, strict=True):
        counts = Counter(Tokenizer(PIECES).rows(text) or [0])
        expected = sum(weights[row] * count**0.5 * rows[row] for row, count in counts.items())
        assert vector @ expected / np.linalg.norm(expected) > 0.9995


def test_the_model_says_what_it_is(trained: Path, tmp_path: Path) -> None:
    quantise(trained, tmp_path / "model.npz", name="small", threshold=0.3)

    with np.load(tmp_path / "model.npz") as data:
        metadata = json.loads(data["metadata"].tobytes())
        assert np.abs(data["table"]).max(axis=1).tolist() == [127 if row != BUCKETS + 3 else 0 for row in range(264)]

    assert metadata == {
        "format": "static-embedding-1",
        "name": "small",
        "dimension": 256,
        "damping": 0.5,
        "training_pairs": 12,
        "languages": {"python": 12},
        "recommended_threshold": 0.3,
    }


def test_the_same_table_gives_the_same_bytes(trained: Path, tmp_path: Path) -> None:
    for name in ("first.npz", "second.npz"):
        quantise(trained, tmp_path / name, name="small", threshold=0.3)

    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "second.npz").read_bytes()
