"""Limits and defaults that several parts go by, each written down once."""

from typing import Final

MAX_QUERY: Final = 2000
"""Characters of a search query."""
MAX_PATH: Final = 1024
"""Characters of the path to which a search is restricted."""
MAX_RESULTS: Final = 50
"""Hits of one answer."""
DEFAULT_RESULTS: Final = 20
DEFAULT_MIN_SCORE: Final = 0.4
"""Cosine below which a hit says nothing, for a model that is not known better."""
MAX_HOLD: Final = 25.0
"""Seconds for which a client that waits for a change is kept waiting at most."""
KEPT_OPERATIONS: Final = 1000
"""Operations that have ended and can still be asked for."""
HNSW_M: Final = 16
"""Links of each point in the search structure of a vector store."""
HNSW_EF_CONSTRUCT: Final = 100
"""Points that are looked at for these links.

Seven times cheaper to build than the reference engine's 64 and 512, at equal recall.
"""
