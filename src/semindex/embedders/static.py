"""The embedder that needs no endpoint: the static table in this package's data, run in a worker thread."""

import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Final, Self

import numpy as np
import trio

from semindex.embedders.static_table import StaticTable
from semindex.model.errors import ConfigurationError
from semindex.model.profiles import EmbeddingProfile, Role
from semindex.ports import Vectors

TABLE_FILE: Final = "semindex-static-v1.npz"
TABLE_SHA256: Final = "38ed52a1f7d0d0508f344f1205febedc055419c8b7b21ebedafaad8b1be4856a"
PROFILE: Final = EmbeddingProfile(
    provider="embedded",
    model=f"semindex-static-v1@{TABLE_SHA256[:12]}",
    dimension=256,
    default_min_score=0.25,
)
"""The digest is part of the model's name, so that vectors of two tables can never meet; threshold: the model card."""

_DATA = resources.files("semindex.embedders") / "data"
_SLICE = 50
"""Texts per call into the thread: longer calls keep the interpreter's lock for more than 5 ms."""


class StaticEmbedder:
    """Embeds on one core, 15,000 chunks a second; a query never waits for documents.

    Any text gets a vector: a bag of tokens has no length limit, and characters outside the vocabulary share rows.
    """

    profile: Final = PROFILE
    batch_size: Final = 48

    def __init__(self, table: StaticTable) -> None:
        """Use :meth:`load`."""
        self._table = table
        self._limiters = {role: trio.CapacityLimiter(1) for role in Role}

    @classmethod
    async def load(cls) -> Self:
        """Read and verify the table (0.1 s in a thread); raises ConfigurationError if it is damaged."""
        return cls(await trio.to_thread.run_sync(_read_table, limiter=trio.CapacityLimiter(1)))

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return unit vectors, shape [len(texts), 256]; cancelling takes effect after the slice that is being done."""
        first = await self._embed_slice(texts[:_SLICE], role)
        rest = [
            await self._embed_slice(texts[start : start + _SLICE], role) for start in range(_SLICE, len(texts), _SLICE)
        ]
        return np.concatenate([first, *rest])

    async def _embed_slice(self, texts: Sequence[str], role: Role) -> Vectors:
        return await trio.to_thread.run_sync(self._table.embed, texts, role, limiter=self._limiters[role])


def _read_table() -> StaticTable:
    try:
        content = (_DATA / TABLE_FILE).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"The embedded model's file {TABLE_FILE} cannot be read: install semindex again or configure an endpoint."
        ) from error
    if hashlib.sha256(content).hexdigest() != TABLE_SHA256:
        raise ConfigurationError(
            f"The embedded model's file {TABLE_FILE} is damaged: install semindex again or configure an endpoint."
        )
    return StaticTable.parse(content)
