"""The embedding cache's rows: finding, keeping, checking and dropping vectors, each within one call of its database.

An entry is a small row that says when it was last used, beside a large one with the vector. "When" is a generation, a
number that grows with use, so that reading an entry again and again writes nothing.
"""

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np
from attrs import field, frozen

from semindex.ports import Vectors
from semindex.state.database import Connection

_STORED = np.dtype("<f4")

_LOOKUPS = 500
"""Digests per query: below the number of parameters that any SQLite takes."""
_DROPPED = 16
"""Entries dropped between two looks at the size."""
_DROPPED_AT_MOST = 4096
"""Entries dropped by one call: a limit that was lowered by gigabytes is reached over several."""


@frozen
class Found:
    """What was found, and which rows ask for a change."""

    vectors: dict[bytes, Vectors] = field(factory=dict)
    unnoted: list[int] = field(factory=list)
    """Entries whose last noted use lies in an earlier generation."""
    damaged: list[int] = field(factory=list)
    """Entries whose vector is not what was kept."""


def find(connection: Connection, space: str, digests: Sequence[bytes], generation: int) -> Found:
    """Return the intact vectors among those asked for, as read-only views, shape [dimension]."""
    found = Found()
    for number, digest, used, checksum, data in _rows(connection, space, digests):
        if data is None or checksum != _checksum(space, digest, data):
            found.damaged.append(number)
            continue
        found.vectors[digest] = np.frombuffer(data, _STORED).astype(np.float32, copy=False)
        if used < generation:
            found.unnoted.append(number)
    return found


def _rows(
    connection: Connection, space: str, digests: Sequence[bytes]
) -> Iterator[tuple[int, bytes, int, bytes | None, bytes | None]]:
    for first in range(0, len(digests), _LOOKUPS):
        asked = digests[first : first + _LOOKUPS]
        yield from connection.execute(
            # The casts are for damaged rows: in a sound one each value has that type.
            f"""SELECT entries.id, digest, CAST(used AS INTEGER), CAST(checksum AS BLOB), CAST(vector AS BLOB)
            FROM entries LEFT JOIN vectors ON vectors.id = entries.id
            WHERE space = (SELECT id FROM spaces WHERE name = ?) AND digest IN ({", ".join("?" * len(asked))})""",
            (space, *asked),
        )


def keep(connection: Connection, space: str, digests: Sequence[bytes], vectors: Vectors, generation: int) -> None:
    """Write vectors, replacing those with the same keys."""
    connection.execute("INSERT OR IGNORE INTO spaces (name) VALUES (?)", (space,))
    for digest, vector in zip(digests, vectors.astype(_STORED, copy=False), strict=True):
        data = vector.tobytes()
        (number,) = connection.execute(
            """INSERT INTO entries (space, digest, used) VALUES ((SELECT id FROM spaces WHERE name = ?), ?, ?)
            ON CONFLICT DO UPDATE SET used = excluded.used RETURNING id""",
            (space, digest, generation),
        ).fetchone()
        connection.execute(
            "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", (number, _checksum(space, digest, data), data)
        )


def make_room(connection: Connection, max_bytes: int) -> int:
    """Drop the least recently used entries beyond the limit, and return the bytes then in use."""
    for _ in range(0, _DROPPED_AT_MOST, _DROPPED):
        if bytes_in_use(connection) <= max_bytes:
            break
        oldest = connection.execute("SELECT id FROM entries ORDER BY used, id LIMIT ?", (_DROPPED,)).fetchall()
        connection.executemany("DELETE FROM entries WHERE id = ?", oldest)
    return bytes_in_use(connection)


def note_uses(connection: Connection, numbers: Sequence[int], generation: int) -> None:
    """Record that these entries were used in this generation."""
    connection.executemany("UPDATE entries SET used = ? WHERE id = ?", ((generation, number) for number in numbers))


def drop(connection: Connection, numbers: Sequence[int]) -> None:
    """Remove entries together with their vectors."""
    connection.executemany("DELETE FROM entries WHERE id = ?", ((number,) for number in numbers))


def bytes_in_use(connection: Connection) -> int:
    """Return the bytes of the file that hold something: vectors, keys, and what SQLite needs around them."""
    (size,) = connection.execute(
        """SELECT (page_count - freelist_count) * page_size
        FROM pragma_page_count, pragma_freelist_count, pragma_page_size"""
    ).fetchone()
    return int(size)


def last_generation(connection: Connection) -> int:
    """Return the generation of the latest noted use."""
    (generation,) = connection.execute("SELECT coalesce(max(used), 0) FROM entries").fetchone()
    return int(generation)


def _checksum(space: str, digest: bytes, data: bytes) -> bytes:
    """Return 8 bytes over key and vector: a vector that ended up at another's key is damage too."""
    return hashlib.blake2b(data, digest_size=8, key=hashlib.sha256(space.encode() + digest).digest()).digest()
