"""Well-known embedding models: what their users would otherwise have to look up."""

from attrs import frozen


@frozen
class KnownModel:
    """Properties of one model."""

    dimension: int
    min_score: float
    """Cosine below which a hit says nothing."""
    query_prefix: str = ""
    """Goes before queries. The reference engine puts it before chunks as well."""


KNOWN_MODELS = {
    "nomic-embed-text": KnownModel(768, 0.3, "search_query: "),
    "mxbai-embed-large": KnownModel(1024, 0.3),
    "all-minilm": KnownModel(384, 0.3),
    "text-embedding-3-small": KnownModel(1536, 0.4),
    "text-embedding-3-large": KnownModel(3072, 0.4),
    "codestral-embed-2505": KnownModel(1536, 0.35),
    "voyage-code-3": KnownModel(1024, 0.35),
}


def known_model(name: str) -> KnownModel | None:
    """Return what is known of a model; a tag (``nomic-embed-text:latest``) and a vendor's prefix do not count."""
    return KNOWN_MODELS.get(name.rpartition("/")[2].partition(":")[0])
