"""The one definition of every JSON shape that leaves or enters a cell; docs/api.md describes them.

Requests are strict models, answers are functions from values to plain JSON. Clients ignore fields that they do not
know: answers may get more.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema

from semindex import __version__
from semindex.janitor import Orphan
from semindex.leasing import Receipt
from semindex.model.answers import (
    CellStatus,
    DependencyStatus,
    Explanation,
    FilesPage,
    RegistrationStatus,
    SearchResponse,
)
from semindex.model.limits import DEFAULT_RESULTS, MAX_PATH, MAX_QUERY, MAX_RESULTS
from semindex.model.points import Hit
from semindex.model.registrations import Operation, TokenRecord
from semindex.model.status import FileRecord

Json = dict[str, Any]


class Request(BaseModel):
    """A request body: unknown keys are refused, and nothing is taken for what it is not."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_alias=True,
        validate_by_name=False,
        hide_input_in_errors=True,
    )


class RegistrationRequest(Request):
    """``PUT /v1/registrations/{id}``."""

    path: str = Field(min_length=1)
    baseline_path: Annotated[str, Field(min_length=1)] = ""
    project_id: Annotated[str, Field(max_length=256)] = ""
    workspace_id: Annotated[str, Field(max_length=256)] = ""
    purge_on_release: bool | None = None
    force: bool = False
    adopt: bool = False


class SearchFields(Request):
    """What a search takes through every door."""

    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUERY)] = Field(
        description="What to look for, in plain words"
    )
    path: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_PATH)] = Field(
        "", description="Directory or file, relative to the workspace"
    )
    max_results: int = Field(DEFAULT_RESULTS, ge=1, le=MAX_RESULTS)
    fresh: bool = Field(True, description="Take in first what changed on disk before the call, for at most two seconds")
    overlap: Literal["fold", "keep"] | SkipJsonSchema[None] = Field(
        None, description="keep: also return hits that lie inside a better one"
    )

    @property
    def keep_overlaps(self) -> bool | None:
        """Say whether hits inside better ones are wanted, None to leave it to the profile."""
        return None if self.overlap is None else self.overlap == "keep"


class SearchRequest(SearchFields):
    """``POST /v1/search``."""

    registration_id: str = Field(min_length=1)


class TokenRequest(Request):
    """``POST /v1/registrations/{id}/tokens``."""

    label: str = Field("", max_length=256)


class OrphansRequest(Request):
    """``POST /v1/orphans/purge``."""

    names: Annotated[list[str], Field(min_length=1, max_length=1000)]
    dry_run: bool = False


class NoFields(Request):
    """``semantic-index.status``."""


class PathFields(Request):
    """``semantic-index.workspace-status``."""

    path: str = Field(min_length=1)


class RegisterFields(RegistrationRequest):
    """``semantic-index.register``."""

    id: str


class ReleaseFields(Request):
    """``semantic-index.release``."""

    id: str
    purge: bool | None = None
    force: bool = False


class ReindexFields(Request):
    """``semantic-index.reindex``."""

    id: str
    force: bool = False


class WatchFields(Request):
    """``semantic-index.watch``."""

    since: str | None = None


def timestamp(value: datetime) -> str:
    """Return a time as ISO 8601 in UTC, to the millisecond."""
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def present(fields: Json) -> Json:
    """Return the fields that have a value: absent ones are left out, never null."""
    return {name: value for name, value in fields.items() if value is not None}


def error(message: str, code: str, detail: Json | None = None) -> Json:
    """Return the body of every answer that is no success."""
    return present({"error": message, "code": code, "detail": detail})


def registration(status: RegistrationStatus) -> Json:
    """Return a RegistrationStatus."""
    lease = status.registration
    return present(
        {
            "id": lease.id,
            "kind": "primary" if lease.baseline_path is None else "worktree",
            "path": lease.path,
            "baselinePath": lease.baseline_path,
            "projectId": lease.project_id,
            "workspaceId": lease.workspace_id,
            "purgeOnRelease": lease.purge_on_release,
            "lifecycle": status.lifecycle,
            "references": status.references,
            "collection": status.collection,
            "createdAt": timestamp(lease.created_at),
        }
    ) | workspace_progress(status)


def workspace_progress(status: RegistrationStatus) -> Json:
    """Return the part of a RegistrationStatus that an agent may see: nothing of ids and paths."""
    workspace, files = status.workspace, status.workspace.files
    completed = workspace.completed_at and timestamp(workspace.completed_at)
    return present(
        {
            "kind": "primary" if status.registration.baseline_path is None else "worktree",
            "state": workspace.state,
            "message": workspace.message,
            "processedItems": workspace.processed,
            "totalItems": workspace.total,
            "percent": workspace.percent,
            "updatedAt": timestamp(workspace.updated_at or status.registration.created_at),
            "lastCompletedAt": completed,
            "lastUpdateAt": completed,
            "filesIndexed": files.indexed,
            "filesDiscovered": files.discovered,
            "pendingFiles": files.pending,
            "skippedFiles": files.skipped,
            "failedFiles": {
                "count": files.failed,
                "first": [{"path": path, "reason": reason} for path, reason in workspace.failed_files],
            },
            "totalChunks": workspace.chunks,
            "embeddedChunks": workspace.embedded_chunks,
            "reusedChunks": workspace.reused_chunks,
            "lagMs": round(1000 * workspace.lag),
            "lastError": workspace.last_error,
        }
    )


def dependency(status: DependencyStatus) -> Json:
    """Return the health of a dependency."""
    return present(
        {
            "reachable": status.reachable,
            "latencyMs": status.latency_ms,
            "lastError": status.last_error,
            "checkedAt": status.checked_at and timestamp(status.checked_at),
        }
    )


def service(status: CellStatus, registrations: list[Json]) -> Json:
    """Return a ServiceStatus with the RegistrationStatus of each registration, as whoever answers shows them."""
    return {
        "phase": status.phase,
        "version": __version__,
        "startedAt": timestamp(status.started_at),
        "updatedAt": timestamp(status.updated_at),
        "message": status.message,
        "revision": status.revision,
        "registrations": registrations,
        "activeManagers": status.active_workspaces,
        "mcpSessions": status.mcp_sessions,
        "watchers": status.watchers,
        "queueDepth": status.queue_depth,
        "cache": {"hits": status.cache_hits, "misses": status.cache_misses, "bytes": status.cache_bytes},
        "dependencies": {"embedder": dependency(status.embedder), "store": dependency(status.store)},
        "grammars": {"missing": list(status.missing_grammars)},
        "orphans": status.orphans,
    }


def hit(found: Hit) -> Json:
    """Return a SearchResult."""
    return {
        "filePath": found.file_path,
        "startLine": found.start_line,
        "endLine": found.end_line,
        "score": round(found.score, 6),
        "codeChunk": found.code_chunk,
    }


def search(response: SearchResponse) -> Json:
    """Return a SearchResponse."""
    return present(
        {
            "workspace": response.workspace,
            "root": response.workspace.rstrip("/").rpartition("/")[2] or "/",
            "branch": response.branch,
            "state": response.state,
            "results": [hit(found) for found in response.results],
            "fresh": response.fresh,
            "pending": list(response.pending),
            "pendingCount": response.pending_count,
            "withheld": response.withheld,
            "reason": response.reason,
            "milliseconds": {part: round(1000 * seconds, 2) for part, seconds in response.seconds.items()},
        }
    )


def operation(status: Operation) -> Json:
    """Return an OperationStatus."""
    return present(
        {
            "id": status.id,
            "registrationId": status.registration_id,
            "kind": status.kind,
            "state": status.state,
            "startedAt": timestamp(status.started_at),
            "completedAt": status.completed_at and timestamp(status.completed_at),
            "error": status.error,
        }
    )


def receipt(done: Receipt) -> Json:
    """Return what a release did."""
    return {
        "released": done.released,
        "purged": done.purged,
        "points": done.points,
        "bytes": done.bytes,
        "drained": done.drained,
        "cancelled": done.cancelled,
        "durationMs": round(1000 * done.duration.total_seconds()),
        "worktrees": list(done.worktrees),
    }


def file(record: FileRecord) -> Json:
    """Return one file of a ledger."""
    return present(
        {
            "path": record.path,
            "state": record.state,
            "reason": record.reason,
            "fileHash": record.file_hash,
            "size": record.signature and record.signature.size,
            "chunks": record.chunks,
            "inherited": record.inherited,
        }
    )


def files(page: FilesPage) -> Json:
    """Return a page of a ledger."""
    return {"files": [file(record) for record in page.records], "total": page.total}


def explanation(found: Explanation) -> Json:
    """Return why a path is or is not searchable."""
    return present(
        {
            "path": found.path,
            "searchable": found.searchable,
            "reason": found.reason,
            "rule": found.rule,
            "source": found.source,
            "file": found.record and file(found.record),
            "chunks": [{"startLine": first, "endLine": last} for first, last in found.chunks],
        }
    )


def token(record: TokenRecord) -> Json:
    """Return what may be told of a search token."""
    return {"id": record.id, "label": record.label, "createdAt": timestamp(record.created_at)}


def tokens(records: Iterable[TokenRecord]) -> Json:
    """Return a list of search tokens."""
    return {"tokens": [token(record) for record in records]}


def orphans(found: Iterable[Orphan]) -> Json:
    """Return a list of orphans."""
    return {
        "orphans": [
            {"name": orphan.name, "kind": orphan.kind, "points": orphan.points, "reason": orphan.reason}
            for orphan in found
        ]
    }
