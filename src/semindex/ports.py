"""What the engine asks of the outside world, in domain terms, numpy arrays and plain values.

An adapter translates foreign exceptions to :mod:`semindex.model.errors` and nothing else crosses the port. Every
port has an in-memory twin and one conformance suite that the twin and the real adapters pass.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from semindex.core.eligibility import Verdict
from semindex.model.chunks import ChunkedFile, FileProblem, Signature, UnchangedFile
from semindex.model.errors import SemindexError
from semindex.model.places import Place, Sighting
from semindex.model.points import Hit, Payload
from semindex.model.profiles import ChunkingProfile, EmbeddingProfile, Role
from semindex.model.registrations import Lifecycle, Operation, Registration, Retained, TokenRecord
from semindex.model.status import FileRecord

Vectors = NDArray[np.float32]
"""Shape [n, dimension], or [dimension] for a single vector; rows have length 1 unless a docstring says otherwise."""


TryFailed = Callable[[SemindexError, float], None]
"""Told by an adapter of a try that failed and how many seconds it took, before the call is tried again."""


def ignore_failure(error: SemindexError, seconds: float) -> None:
    """Take no note of a try that failed."""


class Embedder(Protocol):
    """Turns texts into vectors. Calls may run at the same time; cancelling one abandons its work."""

    @property
    def profile(self) -> EmbeddingProfile:
        """The space of every vector returned."""

    @property
    def batch_size(self) -> int:
        """Largest number of texts of one call."""

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one finite vector per text, in order, shape [len(texts), dimension].

        Raises EmbedderUnavailable where a retry may help, EmbedderRejected where it will not.
        """


@frozen
class CollectionInfo:
    """What a store knows of one collection."""

    dimension: int
    points: int
    """Chunk points, the metadata point not counted."""
    metadata: Mapping[str, object] | None
    """Payload of the metadata point; None if there is none."""


@frozen
class StoredTexts:
    """One page of what a collection holds vectors of."""

    texts: tuple[str, ...]
    vectors: Vectors
    """Shape [len(texts), dimension]."""
    following: str | None
    """What to ask for the next page with; None after the last."""


class VectorStore(Protocol):
    """Collections of points. Upserts and deletes are idempotent; a search that begins after one returned sees it.

    Raises StoreUnavailable where a retry may help, StoreRejected where it will not. A collection that was not opened
    in this process is opened by the first call that needs it.
    """

    async def describe(self, collection: str) -> CollectionInfo | None:
        """Return what is known of a collection; None only when it certainly does not exist."""

    async def create(self, collection: str, dimension: int) -> None:
        """Create an empty collection with all payload indexes; one that exists already is StoreRejected."""

    async def open(self, collection: str) -> None:
        """Make an existing collection ready: its payload indexes are there, its files loaded."""

    async def write_metadata(self, collection: str, payload: Mapping[str, object]) -> None:
        """Replace the metadata point."""

    async def upsert(self, collection: str, ids: Sequence[str], vectors: Vectors, payloads: Sequence[Payload]) -> None:
        """Write points, replacing those with the same id. Vectors: shape [len(ids), dimension], finite."""

    async def delete_files(self, collection: str, paths: Sequence[str]) -> None:
        """Delete the points of exactly these files (not of files below a path of that name)."""

    async def search(
        self,
        collection: str,
        vector: Vectors,
        *,
        limit: int,
        min_score: float,
        segments: Sequence[str] = (),
        exclude: Collection[str] = (),
    ) -> list[Hit]:
        """Return at most ``limit`` hits of at least ``min_score``, best first; ties in any order.

        ``segments`` are the leading path segments that a hit's path must have (all of them, at any depth),
        ``exclude`` the paths of files none of whose points may be returned or counted.
        """

    async def fetch_vectors(self, collection: str, ids: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors of those ids that are stored, shape [dimension] each."""

    async def file_points(self, collection: str) -> dict[str, dict[str, int]]:
        """Return path → file hash → number of points, for every chunk point: the store's own account of itself."""

    async def stored_texts(self, collection: str, after: str | None = None) -> StoredTexts:
        """Return one page of the chunks' texts with their vectors, the first one or that ``after`` the last."""

    async def flush(self, collection: str) -> None:
        """Make what was written durable against a power failure."""

    async def optimize(self, collection: str) -> None:
        """Build search structures if the store needs to be told and the collection is large enough to gain by it."""

    async def close(self, collection: str) -> None:
        """Flush, and free what an open collection holds; it stays stored."""

    async def drop(self, collection: str) -> bool:
        """Delete a collection with all it holds; return whether there was one."""

    async def collections(self) -> list[str]:
        """Return the names of all collections, sorted."""


class ChunkerPool(Protocol):
    """Reads files and cuts them into chunks, outside of this interpreter."""

    async def chunk(
        self, root: str, paths: Sequence[str], profile: ChunkingProfile, known: Mapping[str, str]
    ) -> list[ChunkedFile | UnchangedFile | FileProblem]:
        """Return one result per path (relative to ``root``), in order; one file's trouble never costs another.

        ``known`` maps some of the paths to a file hash: a file that still has it is read and hashed, but not chunked.
        Raises ChunkingFailed only if no worker can be kept alive.
        """


@frozen
class TreeScan:
    """What a walk of the working tree found."""

    files: Mapping[str, Signature]
    """Eligible files: relative path → signature."""
    skipped: Mapping[str, str]
    """Files of an indexable type that are not for the index (too large, a link, a name that is not UTF-8) → reason."""
    unreadable: Mapping[str, str]
    """Directories that could not be listed → reason: nothing is known of what lies below them."""
    directories: Collection[str] = ()
    """Directories that were entered, relative; the root is ""."""


class Places(Protocol):
    """Directories of the file system, by the names that people and agents give them."""

    async def directory(self, path: str) -> Place:
        """Resolve a path. Raises PathRefused unless it is absolute and an existing directory."""

    async def registrable(self, path: str, *, force: bool) -> Place:
        """Resolve a path that is to be indexed; ``/`` and the home directory are refused unless forced."""

    async def look(self, path: str) -> Sighting:
        """Say whether a canonical path is still a directory."""


class SourceTree(Protocol):
    """The working tree below one workspace's root. No call follows a link or opens anything but a regular file."""

    async def scan(self) -> TreeScan:
        """Walk the tree by the rules of docs/configuration.md (What is indexed).

        Raises WorkspaceUnavailable if the root is gone.
        """

    async def look(self, paths: Sequence[str]) -> TreeScan:
        """Tell of these paths alone what a scan would tell; those in neither mapping are not for the index now."""

    async def explain(self, path: str) -> Verdict:
        """Return why a path below the root is, or is not, for the index."""

    async def hashes(self, paths: Sequence[str]) -> dict[str, str | None]:
        """Read each file now and return path → file hash; None where there is no such readable, eligible file.

        The text behind each hash was the file's content at some instant during this call.
        """


@frozen
class Changes:
    """What may have changed below a root since the last time one asked."""

    paths: frozenset[str]
    """Relative paths of files; hints, never the whole truth."""
    rescan: bool
    """More changed than the paths say: directories came, went or moved, ignore rules changed, events were lost."""


class Watch(Protocol):
    """Watches the directories of one workspace. Correctness never depends on it: sweeps are the truth."""

    @property
    def trouble(self) -> str | None:
        """One sentence while changes are found by polling, or not at all, because watching is impossible."""

    async def follow(self, directories: Collection[str]) -> bool:
        """Watch exactly these directories (relative; the root is ""); return whether any was not watched before.

        What happened in a new directory before this call was not seen: whoever gets True has to look again.
        """

    async def changes(self) -> Changes:
        """Wait for a change and return all that is known by then; paths beyond a bound collapse into a rescan."""


class EventSource(Protocol):
    """Makes watches."""

    @property
    def watched(self) -> int:
        """Return how many trees are watched now; those that are compared from time to time instead do not count."""

    def watch(self, root: str) -> AbstractAsyncContextManager[Watch]:
        """Watch below a canonical root for as long as the context lasts."""


class Ledger(Protocol):
    """What is known of each file of one workspace; survives kill -9."""

    async def load(self) -> dict[str, FileRecord]:
        """Return all records by path."""

    async def apply(self, records: Sequence[FileRecord], forget: Sequence[str] = ()) -> None:
        """Write records and remove paths in one transaction; when this returns a crash does not undo it."""

    async def clear(self) -> None:
        """Remove every record."""


@frozen
class CacheCounters:
    """Use of the embedding cache since the cell started, and its size now."""

    hits: int
    misses: int
    bytes: int


class EmbeddingCache(Protocol):
    """Vectors by (embedding space, digest of embedded text). Losing one costs an embedding, never a wrong vector."""

    async def get(self, space: str, digests: Sequence[bytes]) -> dict[bytes, Vectors]:
        """Return the vectors that are there and undamaged, shape [dimension] each."""

    async def put(self, space: str, digests: Sequence[bytes], vectors: Vectors) -> None:
        """Keep vectors, shape [len(digests), dimension]; makes room by dropping the least recently used."""

    async def counters(self) -> CacheCounters:
        """Return how it is used and how large it is."""


class Registrations(Protocol):
    """Leases, and what is kept without one; survives kill -9. Nothing goes but by the call that says so.

    As all of :class:`CellState` it raises StateUnwritable or StateDamaged, and then nothing has changed.
    """

    async def load_all(self) -> list[Registration]:
        """Return all registrations, the oldest first."""

    async def save(self, registration: Registration) -> None:
        """Write a registration, replacing one of the same id; what was retained of its path is adopted by it."""

    async def set_lifecycle(self, registration_id: str, lifecycle: Lifecycle, purge: bool | None = None) -> None:
        """Write where a registration stands and what its release is to do. Raises UnknownRegistration."""

    async def delete(self, registration_id: str, retained: Retained | None = None) -> bool:
        """Forget a registration and its tokens, in the same instant retain its data; return whether there was one."""

    async def load_retained(self) -> list[Retained]:
        """Return what is kept without a registration, the oldest first."""

    async def discard_retained(self, path: str) -> bool:
        """Forget that a path's data are kept; return whether they were."""


class Operations(Protocol):
    """What clients started; those found running at a start have failed, as interrupted."""

    async def load_all(self) -> list[Operation]:
        """Return all operations, the oldest first."""

    async def save(self, operation: Operation) -> None:
        """Write an operation, replacing one of the same id; of those that ended only the latest thousand are kept."""


class Tokens(Protocol):
    """Search tokens, each bound to a registration and known by its digest alone."""

    async def load_all(self) -> list[TokenRecord]:
        """Return all tokens, the oldest first."""

    async def add(self, token: TokenRecord) -> None:
        """Keep a new token. Raises UnknownRegistration."""

    async def delete(self, registration_id: str, token_id: str) -> bool:
        """Forget a token of this registration; return whether there was one."""


class CellState(Protocol):
    """What a cell knows when it starts again."""

    @property
    def cell_id(self) -> str:
        """A random UUID, made with the state: what marks our collections as ours."""

    @property
    def registrations(self) -> Registrations:
        """The leases."""

    @property
    def operations(self) -> Operations:
        """What clients started."""

    @property
    def tokens(self) -> Tokens:
        """The search tokens."""

    def ledger(self, workspace: str) -> Ledger:
        """Return the ledger of a workspace, given its canonical path; the same one for every call."""

    async def ledgers(self) -> list[str]:
        """Return the workspaces whose ledger holds records, sorted."""
