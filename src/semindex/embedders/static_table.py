"""The static model itself: the file format of a table of token vectors, and the sum that embeds a text.

A text's vector is the sum of its tokens' int8 rows, each times the token's weight for the role and a damped count,
scaled to length 1. No neural network, numpy only. ``training/quantise.py`` writes the format that is read here.
"""

import io
import json
import zipfile
from collections import Counter
from collections.abc import Sequence
from typing import Final, Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from semindex.embedders.tokenizer import Tokenizer
from semindex.model.errors import ConfigurationError
from semindex.model.profiles import Role
from semindex.ports import Vectors

FORMAT: Final = "static-embedding-1"
"""Names the layout of the file.

``table`` is [rows, dimension] int8, ``query_weight`` and ``document_weight`` are [rows] float32, ``vocabulary`` is
UTF-8, one piece a line, rows after the buckets, and ``metadata`` is JSON with format, name and damping.
"""


@frozen(eq=False)
class StaticTable:
    """A loaded table. Embedding is deterministic: a text has the same vector, bit for bit, in any company."""

    name: str
    rows: NDArray[np.int8]
    """Shape [tokens, dimension]; one quantisation step per row, folded into both weights."""
    weights: dict[Role, NDArray[np.float32]]
    """Shape [tokens] each: what a token counts in a query and in a document."""
    damping: float
    """Exponent of a token's count within one text."""
    tokenizer: Tokenizer

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """Read a table from the content of its file; raises ConfigurationError if it is none."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as data:
                metadata = json.loads(data["metadata"].tobytes())
                if metadata["format"] != FORMAT:
                    raise ConfigurationError(f"A static embedding table has the format {FORMAT}, not another.")
                return cls(
                    name=metadata["name"],
                    rows=data["table"],
                    weights={Role.QUERY: data["query_weight"], Role.DOCUMENT: data["document_weight"]},
                    damping=metadata["damping"],
                    tokenizer=Tokenizer(data["vocabulary"].tobytes().decode().split("\n")),
                )
        except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
            raise ConfigurationError("The file is not a static embedding table; restore it or name another.") from error

    @property
    def dimension(self) -> int:
        """Components of a vector."""
        return int(self.rows.shape[1])

    def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one vector of length 1 per text, shape [len(texts), dimension]; any text will do.

        Reads the rows of all texts in one step, so a call should have tens of texts, not thousands.
        """
        bags = [Counter(self.tokenizer.rows(text) or [0]) for text in texts]
        tokens = np.array([row for bag in bags for row in bag], np.intp)
        counts = np.array([count for bag in bags for count in bag.values()], np.float32)
        weights = self.weights[role][tokens] * counts**self.damping
        rows = self.rows[tokens].astype(np.float32)
        vectors = np.empty((len(texts), self.dimension), np.float32)
        start = 0
        # One product per text, not one of the whole slice: its sum then does not depend on the other texts.
        for vector, bag in zip(vectors, bags, strict=True):
            end = start + len(bag)
            np.dot(weights[start:end], rows[start:end], out=vector)
            start = end
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors
