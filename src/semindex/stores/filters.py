"""Filters of the vector stores, as the JSON objects of Qdrant's REST interface.

Owns which payload keys are indexed, and how what the port asks becomes conditions on them. A server gets the objects
as they are; the embedded engine's worker translates them. Pure functions, no I/O.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from semindex.model.points import INDEXED_SEGMENTS, METADATA_TYPE

Filter = Mapping[str, Any]

INDEXED_KEYS = ("type", "filePath", *(f"pathSegments.{index}" for index in range(INDEXED_SEGMENTS)))
"""Keys with a keyword index; made before the first point, since search structures are built to follow them."""

DEEP_PATHS = "deepPaths"
"""Payload field, with an index, that only the embedded store adds: see :func:`deep_paths`. Without it a search below
``src/main/java/org/example/…`` would look at the payload of every point below the first five, at some 5 µs each."""

HIT_FIELDS = ("filePath", "fileHash", "codeChunk", "startLine", "endLine", "segmentHash")
"""Payload fields of which a :class:`~semindex.model.points.Hit` is made."""

SEARCH_EF = 128
"""Candidates that a search keeps while it walks the HNSW graph, as the reference engine has it."""

DELETES_PER_REQUEST = 50
"""Paths of one delete request: servers time out on larger ones."""

CHUNKS_ONLY: Filter = {"must_not": [{"key": "type", "match": {"value": METADATA_TYPE}}]}
"""Every point but the metadata point."""


def delete_filters(paths: Sequence[str]) -> Iterator[Filter]:
    """Yield filters that together match the points of exactly these files; none for no path, and none is empty.

    Segments find a file's points fast, its full path keeps those of ``a/b/c`` when the file ``a/b`` goes.
    """
    for start in range(0, len(paths), DELETES_PER_REQUEST):
        yield {"should": [_file(path) for path in paths[start : start + DELETES_PER_REQUEST]]}


def search_filter(segments: Sequence[str], exclude: Collection[str] = (), *, deep: bool = False) -> Filter:
    """Return the filter of a search: chunks whose path begins with these segments, without those of excluded files.

    More segments than have an index are matched by :data:`DEEP_PATHS` where all points have it (``deep``); elsewhere
    the filter lets through what only begins like them, and the caller checks each hit with :func:`lies_below`.
    """
    must_not = [*CHUNKS_ONLY["must_not"]]
    if exclude:
        must_not.append({"key": "filePath", "match": {"any": list(exclude)}})
    must = _segments(segments[:INDEXED_SEGMENTS])
    if deep and len(segments) > INDEXED_SEGMENTS:
        must = [{"key": DEEP_PATHS, "match": {"value": "/".join(segments)}}]
    return {"must": must, "must_not": must_not}


def deep_paths(path: str) -> list[str]:
    """Return a path's beginnings that have more segments than are indexed one by one, the path itself included."""
    segments = path.split("/")
    return ["/".join(segments[:count]) for count in range(INDEXED_SEGMENTS + 1, len(segments) + 1)]


def lies_below(path: str, segments: Sequence[str]) -> bool:
    """Say whether a path begins with these segments, be they a directory's or the file's own."""
    return path.split("/")[: len(segments)] == list(segments)


def score_threshold(min_score: float) -> float:
    """Return the threshold that keeps a score of exactly ``min_score``, since the engine drops what equals its own."""
    return float(np.nextafter(np.float32(min_score), np.float32(-np.inf)))


def _file(path: str) -> Filter:
    segments = _segments(path.split("/")[:INDEXED_SEGMENTS])
    return {"must": [*segments, {"key": "filePath", "match": {"value": path}}]}


def _segments(segments: Sequence[str]) -> list[Filter]:
    return [{"key": f"pathSegments.{index}", "match": {"value": segment}} for index, segment in enumerate(segments)]
