"""The embedder port's deterministic twin: bags of hashed tokens, no model, no thread, and a record of every call."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import trio
from attrs import frozen

from semindex.model.profiles import EmbeddingProfile, Role
from semindex.ports import Vectors

_STOP_WORDS: Final = frozenset(
    ("a", "an", "and", "as", "const", "export", "for", "from", "function", "in", "is", "of", "return", "the", "to")
)
_PAIR_WEIGHT = 0.35


@frozen
class EmbedCall:
    """What one call of ``embed`` was asked for."""

    texts: tuple[str, ...]
    role: Role


class HashingEmbedder:
    """Embeds by token overlap: texts that share rare words are close, others about orthogonal.

    The vectors are those of the embedder double (:mod:`semindex.testing.embedder_double`), so both can serve the same
    index. Only for tests: ``calls`` grows for ever.
    """

    def __init__(self, dimension: int = 64, batch_size: int = 60) -> None:
        """Make an embedder of any dimension from 1; small ones have more collisions."""
        self.profile: Final = EmbeddingProfile("hashing", "fnv1a-bag-of-tokens", dimension, default_min_score=0.2)
        self.batch_size: Final = batch_size
        self.calls: Final[list[EmbedCall]] = []
        """Every call, cancelled ones included, in the order in which they began."""

    @property
    def texts(self) -> list[str]:
        """All texts of all calls, in order."""
        return [text for call in self.calls for text in call.texts]

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return unit vectors, shape [len(texts), dimension]; more than ``batch_size`` texts are a ValueError."""
        if len(texts) > self.batch_size:
            raise ValueError(f"{len(texts)} texts in one call, at most {self.batch_size} are allowed")
        self.calls.append(EmbedCall(tuple(texts), role))
        await trio.lowlevel.checkpoint()
        return hashed_tokens(texts, self.profile.dimension)


def hashed_tokens(texts: Sequence[str], dimension: int) -> Vectors:
    """Return the unit vectors of some texts, shape [len(texts), dimension]."""
    vectors = np.zeros((len(texts), dimension), np.float32)
    for vector, text in zip(vectors, texts, strict=True):
        _add_tokens(vector, text)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _add_tokens(vector: Vectors, text: str) -> None:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower()
    tokens = [token for token in re.findall(r"[a-z0-9]+", spaced) if len(token) > 2 and token not in _STOP_WORDS]
    for token in tokens:
        vector[_fnv1a(token) % len(vector)] += 1
        vector[_fnv1a("pair:" + token) % len(vector)] += _PAIR_WEIGHT
    if not tokens:
        vector[0] = 1


@lru_cache(maxsize=10_000)
def _fnv1a(token: str) -> int:
    """Return the 32-bit FNV-1a hash of an ASCII token."""
    value = 0x811C9DC5
    for byte in token.encode("ascii"):
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value
