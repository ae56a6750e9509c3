"""Names and hashes that the reference engine shares with us, so that indexes are interchangeable."""

import hashlib
import uuid

METADATA_POINT_ID = "f946a536-9af4-4f1f-9f95-7d6efb4647d5"
"""The point of each collection that holds no vector but what the collection is."""

_POINT_NAMESPACE = uuid.UUID("f47ac10b-58cc-4372-a567-0e02b2c3d479")


def well_formed(text: str) -> str:
    """Return the text with each lone surrogate replaced by U+FFFD, so that it can be encoded as UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def sha256_hex(text: str) -> str:
    """Return the SHA-256 of a text as UTF-8, lone surrogates counted as U+FFFD, in 64 hex digits."""
    return hashlib.sha256(well_formed(text).encode()).hexdigest()


def file_hash(text: str) -> str:
    """Return the hash of a file's decoded text; two files with different invalid bytes can share it."""
    return sha256_hex(text)


def collection_name(workspace: str) -> str:
    """Return the collection of a workspace, given its canonical absolute path."""
    return "ws-" + sha256_hex(workspace)[:16]


def reference_cache_file(workspace: str) -> str:
    """Return the name of the file in which the reference engine keeps a workspace's file hashes."""
    return f"roo-index-cache-{sha256_hex(workspace)}.json"


def segment_hash(path: str, start: int, end: int, length: int, preview: str) -> str:
    """Return the hash that identifies a chunk.

    ``path`` is the file's absolute path; lines are 1-based and inclusive; ``length`` and the cut of ``preview``
    (the first 100) count UTF-16 code units.
    """
    return sha256_hex(f"{path}-{start}-{end}-{length}-{preview}")


def piece_hash(path: str, line: int, offset: int, length: int, preview: str) -> str:
    """Return the hash of a piece of an over-long line; ``offset`` is its first UTF-16 code unit within that line."""
    return sha256_hex(f"{path}-{line}-{line}-{offset}-{length}-{preview}")


def point_id(segment: str) -> str:
    """Return the id of the point that stores the chunk with this segment hash."""
    return str(uuid.uuid5(_POINT_NAMESPACE, segment))
