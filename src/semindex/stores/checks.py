"""What every vector store refuses before anything is written or asked, so that all of them refuse alike.

The engine behind a store would take NaN, drop part of a batch, or delete everything on an empty filter; nothing
that fails here reaches it. All failures are :class:`~semindex.model.errors.StoreRejected`.
"""

import re
import uuid
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from semindex.model.errors import StoreRejected
from semindex.model.ids import METADATA_POINT_ID
from semindex.ports import Vectors

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")


def check_name(collection: str) -> None:
    """Refuse a name that could not be a directory's, or could be that of another directory."""
    if not _NAME.fullmatch(collection):
        raise StoreRejected(f"{collection!r} is no collection name; use letters, digits, '-' and '_'.")


def check_dimension(dimension: int) -> None:
    """Refuse a dimension that no vector has."""
    if dimension < 1:
        raise StoreRejected(f"A collection cannot hold vectors of dimension {dimension}.")


def check_points(
    dimension: int, ids: Sequence[str], vectors: Vectors, payloads: Sequence[Mapping[str, object]]
) -> None:
    """Refuse points whose numbers differ, whose vectors the collection cannot hold, or whose text is not Unicode."""
    check_ids(ids)
    if METADATA_POINT_ID in ids:
        raise StoreRejected("The id of the metadata point cannot be that of a chunk.")
    if len(payloads) != len(ids):
        raise StoreRejected(f"{len(ids)} ids came with {len(payloads)} payloads.")
    if vectors.ndim != 2 or vectors.shape[0] != len(ids):
        raise StoreRejected(f"{len(ids)} ids came with vectors of shape {list(vectors.shape)}.")
    check_vectors(dimension, vectors)
    for payload in payloads:
        check_text(payload)


def check_vectors(dimension: int, vectors: Vectors) -> None:
    """Refuse vectors of another dimension than the collection's, and those with NaN or infinite components."""
    if vectors.ndim == 0 or vectors.shape[-1] != dimension:
        raise StoreRejected(
            f"The collection holds vectors of dimension {dimension}, not of shape {list(vectors.shape)}; "
            "index again with the present embedder."
        )
    if not np.isfinite(vectors).all():
        raise StoreRejected("A vector has a component that is NaN or infinite.")


def check_query(dimension: int, vector: Vectors) -> None:
    """Refuse a query that is not one finite vector of the collection's dimension."""
    if vector.ndim != 1:
        raise StoreRejected(f"A search takes one vector, not vectors of shape {list(vector.shape)}.")
    check_vectors(dimension, vector)


def check_ids(ids: Sequence[str]) -> None:
    """Refuse an id that is not a UUID in its canonical form, the only form in which ids come back."""
    for point in ids:
        try:
            canonical = str(uuid.UUID(point))
        except ValueError:
            canonical = None
        if point != canonical:
            raise StoreRejected(f"{point!r} is no point id; ids are UUIDs in lower case.")


def check_text(payload: Mapping[str, object]) -> None:
    """Refuse a payload with a string that cannot be encoded as UTF-8."""
    for key, value in payload.items():
        if isinstance(value, Mapping):
            check_text(value)
        elif isinstance(value, str) and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise StoreRejected(f"The payload field {key!r} holds a lone surrogate; replace it first.") from None


def joined(paths: Collection[str]) -> bytes:
    """Return paths as UTF-8, separated by NUL, which no path holds. Refuse a path that cannot be encoded."""
    try:
        return "\0".join(paths).encode()
    except UnicodeEncodeError:
        raise StoreRejected("A path holds a lone surrogate; files with such names are not for the index.") from None
