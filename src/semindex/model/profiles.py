"""What makes two vectors, or two sets of chunks, comparable."""

from enum import StrEnum

from attrs import frozen

from semindex.model.limits import DEFAULT_MIN_SCORE

CHUNKER_VERSION = 1
"""Raised when the chunker's output changes, so that files chunked by an older one are chunked again."""


class ChunkingProfile(StrEnum):
    """How files become chunks (docs/parity.md)."""

    KILO = "kilo"
    """Exactly the chunks of the reference engine, with the lines that it records."""

    EXTENDED = "extended"
    """The same chunks under the same ids, more file types, gap chunks, true line numbers."""

    @property
    def version(self) -> str:
        """Return what the ledger records of how a file was chunked."""
        return f"{self.value}-{CHUNKER_VERSION}"


class Role(StrEnum):
    """What a text is embedded for; many models treat the two differently."""

    QUERY = "query"
    DOCUMENT = "document"


@frozen
class EmbeddingProfile:
    """Identity of an embedding space: vectors of two profiles are never compared or mixed."""

    provider: str
    model: str
    """Name and, where the model is ours, version; part of every collection's metadata point."""
    dimension: int
    """Number of float32 components of a vector."""
    default_min_score: float = DEFAULT_MIN_SCORE
    """Cosine below which a hit is dropped unless the configuration says otherwise."""
    query_prefix: str = ""
    document_prefix: str = ""

    def prefix(self, role: Role) -> str:
        """Return what goes before a text of this role."""
        return self.query_prefix if role is Role.QUERY else self.document_prefix

    def space(self, role: Role) -> str:
        """Return the name under which the embedding cache keeps vectors of this role."""
        return "\n".join((self.provider, self.model, str(self.dimension), role, self.prefix(role)))
