"""What is stored in a collection and what comes back from it."""

from collections.abc import Mapping
from typing import Any, TypedDict

from attrs import frozen

from semindex.model.chunks import Chunk
from semindex.model.ids import well_formed
from semindex.model.profiles import ChunkingProfile, EmbeddingProfile

INDEXED_SEGMENTS = 5
"""Path segments that have a payload index; strict servers refuse a filter on any deeper one."""

METADATA_TYPE = "metadata"
SCHEMA_VERSION = 2


class Payload(TypedDict):
    """The payload of a chunk's point, shared with the reference engine."""

    filePath: str
    fileHash: str
    codeChunk: str
    startLine: int
    endLine: int
    segmentHash: str
    pathSegments: dict[str, str]


def chunk_payload(path: str, file_hash: str, chunk: Chunk) -> Payload:
    """Return the payload of a chunk of the file at ``path``, relative to its workspace."""
    return {
        "filePath": path,
        "fileHash": file_hash,
        "codeChunk": well_formed(chunk.text),
        "startLine": chunk.start_line,
        "endLine": chunk.end_line,
        "segmentHash": chunk.segment_hash,
        "pathSegments": {str(index): segment for index, segment in enumerate(path.split("/"))},
    }


@frozen
class Hit:
    """One point found by a search; ``score`` is the cosine with the query."""

    file_path: str
    start_line: int
    end_line: int
    score: float
    code_chunk: str
    file_hash: str
    segment_hash: str

    @classmethod
    def from_payload(cls, score: float, payload: Mapping[str, Any]) -> "Hit | None":
        """Read a stored payload; None for one that is not a chunk's (a foreign or damaged point)."""
        path, text = payload.get("filePath"), payload.get("codeChunk")
        if not isinstance(path, str) or not isinstance(text, str):
            return None
        return cls(
            path,
            int(payload.get("startLine") or 0),
            int(payload.get("endLine") or 0),
            score,
            text,
            str(payload.get("fileHash") or ""),
            str(payload.get("segmentHash") or ""),
        )


@frozen
class CollectionMetadata:
    """The metadata point of a collection: which vectors and chunks it holds, whose it is, whether it is whole."""

    embedding_provider: str
    embedding_model_id: str
    embedding_dimension: int
    indexing_complete: bool
    """False only during a first build or a rebuild."""
    chunking_profile: ChunkingProfile = ChunkingProfile.KILO
    cell_id: str | None = None
    """The cell that made the collection; only that cell's janitor may ever delete it."""
    timestamp_ms: int = 0
    """When building began or, once complete, when it ended; Unix milliseconds."""
    index_schema: int = SCHEMA_VERSION
    query_prefix: str = ""
    document_prefix: str = ""

    def differences(self, profile: EmbeddingProfile) -> list[str]:
        """Return what keeps vectors of this embedding profile from being compared with those stored, for people."""
        pairs: dict[str, tuple[object, object]] = {
            "schema": (self.index_schema, SCHEMA_VERSION),
            "provider": (self.embedding_provider, profile.provider),
            "model": (self.embedding_model_id, profile.model),
            "dimension": (self.embedding_dimension, profile.dimension),
            "query prefix": (self.query_prefix, profile.query_prefix),
            "document prefix": (self.document_prefix, profile.document_prefix),
        }
        return [f"{name} {stored!r} became {own!r}" for name, (stored, own) in pairs.items() if stored != own]

    def to_payload(self) -> dict[str, Any]:
        """Return the payload as the reference engine writes it, plus our own fields."""
        payload: dict[str, Any] = {
            "type": METADATA_TYPE,
            "index_schema": self.index_schema,
            "indexing_complete": self.indexing_complete,
            "embedding_provider": self.embedding_provider,
            "embedding_model_id": self.embedding_model_id,
            "embedding_dimension": self.embedding_dimension,
            "chunking_profile": self.chunking_profile.value,
            "completed_at" if self.indexing_complete else "started_at": self.timestamp_ms,
        }
        ours = {
            "cell_id": self.cell_id,
            "embedding_query_prefix": self.query_prefix,
            "embedding_document_prefix": self.document_prefix,
        }
        return payload | {key: value for key, value in ours.items() if value}

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "CollectionMetadata":
        """Read a stored payload; what is missing or malformed becomes a value that matches no profile."""
        known = {profile.value: profile for profile in ChunkingProfile}
        complete = payload.get("indexing_complete") is True
        return cls(
            str(payload.get("embedding_provider") or ""),
            str(payload.get("embedding_model_id") or ""),
            _integer(payload.get("embedding_dimension")),
            complete,
            known.get(str(payload.get("chunking_profile")), ChunkingProfile.KILO),
            str(payload["cell_id"]) if payload.get("cell_id") else None,
            _integer(payload.get("completed_at" if complete else "started_at")),
            _integer(payload.get("index_schema")),
            str(payload.get("embedding_query_prefix") or ""),
            str(payload.get("embedding_document_prefix") or ""),
        )


def _integer(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
