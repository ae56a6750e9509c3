"""The configuration of one cell: what may be set, its defaults, and how a file of it is read.

docs/configuration.md names every setting. Every object is strict: an unknown key is refused by name, with
the nearest known key. Together with :mod:`semindex.secrets` this is the only reader of files and environment
variables that configure the cell.
"""

import difflib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AnyUrl,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel

from semindex.core.eligibility import parse_extensions
from semindex.discovery import state_home, xdg_home
from semindex.model.errors import ConfigurationError, InvalidInput
from semindex.model.limits import HNSW_EF_CONSTRUCT, HNSW_M
from semindex.model.profiles import ChunkingProfile

CONFIG_FILE_VARIABLE = "SEMANTIC_INDEX_CONFIG_FILE"
HANDOVER_MARGIN = 5.0
"""Seconds beyond its graces for which a cell that is ending is waited for."""


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("expected an absolute path")
    return path


AbsolutePath = Annotated[Path, AfterValidator(_absolute)]


class Section(BaseModel):
    """A strict, frozen object of the configuration; its keys are in camel case."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, hide_input_in_errors=True
    )


class ListenConfig(Section):
    """Where the cell listens: a TCP port on loopback, or a Unix socket."""

    host: Literal["127.0.0.1"] = Field("127.0.0.1", description="loopback, and nothing else")
    port: int = Field(7790, ge=0, le=65535, description="TCP port; 0 takes any free one, which is printed")
    socket: AbsolutePath | None = Field(None, description="path of a Unix socket, instead of host and port")


class EndpointConfig(Section):
    """An OpenAI-compatible embedding endpoint."""

    base_url: AnyUrl = Field(repr=False, description="what comes before `/embeddings`")
    api_key: SecretStr | None = Field(None, description="overridden by the secret variable")
    max_concurrency: int = Field(4, ge=1, le=64, description="requests of the whole cell at the same time")
    request_timeout_ms: int = Field(60_000, ge=100, description="for one request")


class QdrantConfig(Section):
    """A Qdrant server."""

    url: str = Field(min_length=1, repr=False, description="where the server is")
    api_key: SecretStr | None = Field(None, description="overridden by the secret variable")
    timeout_ms: int = Field(30_000, ge=100, description="for one call with all of its tries")
    max_concurrency: int = Field(8, ge=1, le=64, description="requests at the same time")
    hnsw_m: int = Field(HNSW_M, ge=4, le=128, description="links of each point in the search structure")
    hnsw_ef_construct: int = Field(HNSW_EF_CONSTRUCT, ge=4, le=2048, description="points that are looked at for them")


class IndexingConfig(Section):
    """How trees are indexed and searched."""

    enabled: bool = Field(True, description="false: registrations are kept, and nothing is indexed")
    provider: Literal["openai-compatible", "embedded"] | None = Field(
        None, description="what makes vectors; default: the endpoint if one is configured, else the embedded model"
    )
    model: str | None = Field(None, min_length=1, description="name of the endpoint's model")
    dimension: int | None = Field(None, gt=0, description="components of its vectors")
    vector_store: Literal["qdrant", "embedded"] | None = Field(
        None, description="what stores them; default: the server if one is configured, else the embedded store"
    )
    openai_compatible: EndpointConfig | None = Field(
        None, alias="openai-compatible", description="an OpenAI-compatible embedding endpoint"
    )
    qdrant: QdrantConfig | None = Field(None, description="a Qdrant server")
    profile: ChunkingProfile = Field(ChunkingProfile.EXTENDED, description="how files become chunks")
    search_min_score: float | None = Field(
        None, ge=0, le=1, description="score below which no hit is shown; default: the model's own"
    )
    search_max_results: int = Field(50, ge=1, le=200, description="hits of a collection that are looked at first")
    embedding_batch_size: int = Field(60, ge=1, le=200, description="texts of one request to the endpoint")
    scanner_max_batch_retries: int = Field(
        3, ge=1, le=10, description="tries of a batch in all, as long as its failure may pass"
    )
    file_extensions: tuple[str, ...] | None = Field(
        None, min_length=1, description='what is indexed, like `[".py", "md"]`; default: all that are known'
    )
    exclude: tuple[str, ...] = Field((), description="ignore patterns added at the root of every workspace")
    query_prefix: str | None = Field(None, description="put before queries; default: the model's own")
    document_prefix: str | None = Field(None, description="put before chunks; default: the model's own")
    debounce_ms: int = Field(150, ge=0, le=60_000, description="quiet time after an edit before it is looked at")
    adopt_cache_directory: AbsolutePath | None = Field(
        None, description="where the reference engine's `roo-index-cache-*.json` lie; default: `cacheDirectory`"
    )
    cache_max_bytes: int = Field(2 * 1024**3, ge=0, description="largest size of the embedding cache")

    @field_validator("file_extensions")
    @classmethod
    def _normalised(cls, tokens: tuple[str, ...] | None) -> tuple[str, ...] | None:
        try:
            return None if tokens is None else parse_extensions(tokens)
        except InvalidInput as error:
            raise ValueError(str(error)) from error

    @model_validator(mode="after")
    def _complete(self) -> Self:
        """Check that what a chosen provider or store needs is there."""
        if self.provider == "openai-compatible" and self.openai_compatible is None:
            raise ValueError('the provider "openai-compatible" needs the block "openai-compatible" with a baseUrl')
        if self.uses_endpoint and (self.model is None or self.dimension is None):
            raise ValueError("an embedding endpoint needs model and dimension")
        if self.vector_store == "qdrant" and self.qdrant is None:
            raise ValueError('the vector store "qdrant" needs the block "qdrant" with a url')
        return self

    @property
    def uses_endpoint(self) -> bool:
        """Say whether texts are embedded by the endpoint."""
        return self.provider == "openai-compatible" or (self.provider is None and self.openai_compatible is not None)

    @property
    def uses_qdrant(self) -> bool:
        """Say whether vectors are stored in the server."""
        return self.vector_store == "qdrant" or (self.vector_store is None and self.qdrant is not None)


class RetentionConfig(Section):
    """What becomes of an index when its last registration is released."""

    worktree: Literal["purge", "keep"] = Field("purge", description="what becomes of a released worktree's index")
    ttl: int = Field(7 * 86_400, ge=0, description="seconds for which a kept index that nobody uses stays")


class LimitsConfig(Section):
    """What one cell may take on."""

    max_registrations: int = Field(500, ge=1, description="registrations at the same time")
    max_sessions: int = Field(100, ge=1, description="MCP sessions at the same time")
    session_idle_seconds: int = Field(300, ge=1, description="after which an unused MCP session ends")
    max_files: int = Field(200_000, ge=1, description="eligible files of one workspace")


class ShutdownConfig(Section):
    """How long the parts of an orderly end may take."""

    request_grace_ms: int = Field(5_000, ge=0, description="for calls under way")
    drain_grace_ms: int = Field(10_000, ge=0, description="for accepted work to reach the store")

    @property
    def graces(self) -> float:
        """Return the seconds that both may take together."""
        return (self.request_grace_ms + self.drain_grace_ms) / 1000

    @property
    def handover(self) -> float:
        """Return the seconds for which a predecessor that is ending is waited for."""
        return self.graces + HANDOVER_MARGIN


class CellConfig(Section):
    """Everything that a cell is made from."""

    state_directory: AbsolutePath = Field(description="what must survive: registrations, tokens, embedded vectors")
    cache_directory: AbsolutePath = Field(description="what may be deleted while the cell does not run")
    allowed_roots: tuple[AbsolutePath, ...] = Field((), description="workspaces must lie below one of these")
    listen: ListenConfig = ListenConfig()
    indexing: IndexingConfig = IndexingConfig()
    retention: RetentionConfig = RetentionConfig()
    limits: LimitsConfig = LimitsConfig()
    shutdown: ShutdownConfig = ShutdownConfig()
    workers: int = Field(
        default_factory=lambda: max(1, min(8, os.cpu_count() or 1)),
        ge=1,
        le=64,
        description="processes that chunk files",
    )


def load_config(path: Path) -> CellConfig:
    """Read a configuration file. Raises ConfigurationError with one sentence per fault, the file's name first."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"The configuration file {path} cannot be read: {error.strerror}.") from error
    try:
        config = CellConfig.model_validate_json(content, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        raise ConfigurationError("; ".join(f"{path}: {fault}" for fault in _faults(error))) from error
    if not config.allowed_roots:
        raise ConfigurationError(f"{path}: allowedRoots: name at least one directory that may be indexed")
    return config


def _faults(error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in fault["loc"]) or "configuration"
        if fault["type"] == "extra_forbidden":
            yield f"{place}: unknown key{_suggestion(fault['loc'])}"
        else:
            yield f"{place}: {fault['msg'].removeprefix('Value error, ')}"


def _suggestion(location: Sequence[Any]) -> str:
    """Return the known key that is nearest to an unknown one, as part of a sentence."""
    model: Any = CellConfig
    for part in location[:-1]:
        annotation = next(info.annotation for info in model.model_fields.values() if info.alias == part)
        model = next(
            (kind for kind in (annotation, *getattr(annotation, "__args__", ())) if _is_section(kind)), CellConfig
        )
    known = [info.alias or "" for info in model.model_fields.values()]
    near = difflib.get_close_matches(str(location[-1]), known, n=1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def config_file() -> Path | None:
    """Return the file that the environment names, relative paths resolved against the working directory."""
    value = os.environ.get(CONFIG_FILE_VARIABLE, "").strip()
    return Path(value).absolute() if value else None


def cache_home() -> Path:
    """Return where data of this user lies that may be deleted at any time (XDG_CACHE_HOME)."""
    return xdg_home("XDG_CACHE_HOME", ".cache")


def zero_configuration(roots: Sequence[Path], *, port: int | None = None) -> CellConfig:
    """Return the configuration of a cell that was given nothing but its roots."""
    return CellConfig(
        state_directory=state_home(),
        cache_directory=cache_home(),
        allowed_roots=tuple(roots),
        listen=ListenConfig() if port is None else ListenConfig(port=port),
    )
