"""Command: quantise a trained table to int8 rows and write the file that the package loads.

python -m training.quantise WORK/table.npz WORK/semindex-static-v1.npz --name semindex-static-v1 --threshold 0.25
"""

import argparse
import hashlib
import json
from pathlib import Path

import numpy as np

from semindex.embedders.static_table import FORMAT


def quantise(table: Path, model: Path, *, name: str, threshold: float) -> None:
    """Write the model; the same table gives the same bytes.

    Each row has its own quantisation step, which is folded into both weights, so that embedding multiplies once.
    """
    with np.load(table, allow_pickle=False) as data:
        rows, query, document, vocabulary = data["rows"], data["query"], data["document"], data["vocabulary"]
        metadata = {
            "format": FORMAT,
            "name": name,
            "dimension": rows.shape[1],
            "damping": float(data["damping"]),
            "training_pairs": int(data["pairs"]),
            "languages": json.loads(data["languages"].tobytes()),
            "recommended_threshold": threshold,
        }
    step = np.maximum(np.abs(rows).max(axis=1), 1e-9) / 127
    np.savez_compressed(
        model,
        table=np.round(rows / step[:, None]).astype(np.int8),
        query_weight=(query * step).astype(np.float32),
        document_weight=(document * step).astype(np.float32),
        vocabulary=vocabulary,
        metadata=np.frombuffer(json.dumps(metadata).encode(), np.uint8),
    )


def main() -> None:
    """Quantise, then print what is to be written into the package."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--name", required=True)
    parser.add_argument("--threshold", type=float, required=True, help="recommended lowest score of a result")
    options = parser.parse_args()
    quantise(options.table, options.model, name=options.name, threshold=options.threshold)
    content = options.model.read_bytes()
    print(len(content), "bytes, sha256", hashlib.sha256(content).hexdigest())


if __name__ == "__main__":
    main()
