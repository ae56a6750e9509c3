"""Metrics as Prometheus reads them."""

from datetime import UTC, datetime

from prometheus_client.parser import text_string_to_metric_families

from semindex.model.answers import CellPhase, CellStatus, DependencyStatus, RegistrationStatus, SearchResponse
from semindex.model.errors import EmbedderUnavailable, StoreRejected
from semindex.model.profiles import Role
from semindex.model.registrations import Lifecycle, Registration
from semindex.model.status import FileCounts, State, WorkspaceStatus
from semindex.observe.calls import Call
from semindex.observe.metrics import Metrics

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


def status(*paths: str) -> CellStatus:
    """A cell with registrations of these paths."""
    registrations = [
        RegistrationStatus(
            Registration(f"r{number}", path, None, NOW),
            Lifecycle.ACTIVE,
            1,
            "ws-1",
            WorkspaceStatus(path, State.INDEXED, files=FileCounts(indexed=10, failed=2)),
        )
        for number, path in enumerate(paths)
    ]
    reachable, away = DependencyStatus(reachable=True), DependencyStatus(reachable=False)
    return CellStatus(
        CellPhase.READY, "", NOW, NOW, "boot-1", tuple(registrations), 2, 3, 4, 5, 6, 7, 8, reachable, away, (), 0
    )  # fmt: skip


def samples(metrics: Metrics, of: CellStatus) -> dict[str, float]:
    """Every sample, by its name and labels as they are written."""
    families = text_string_to_metric_families(metrics.text(of).decode())
    return {
        sample.name + "".join(f",{name}={value}" for name, value in sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def test_what_happened_is_counted() -> None:
    metrics = Metrics()
    metrics.embedding(Call("embed", (["a", "b", "c"], Role.DOCUMENT), 0.02, None))
    metrics.embedding(Call("embed", (["a"], Role.QUERY), 0.02, EmbedderUnavailable("Away.")))
    metrics.storing(Call("upsert", (), 0.3, None))
    metrics.storing(Call("search", (), 0.3, StoreRejected("No.")))
    metrics.storing(Call("search", (), 0.3, ValueError("No.")))
    parts = {"sweep": 0.1, "embedding": 0.002, "store": 0.003, "verification": 0.004}
    metrics.searched(SearchResponse("/w", None, State.INDEXED, (), True, (), 0, 3, None, parts))
    metrics.settled(0.4)
    metrics.overflowed()

    counted = samples(metrics, status())

    assert (
        counted.items()
        >= {
            "semindex_embedding_calls_total,outcome=ok,role=document": 1,
            "semindex_embedding_calls_total,outcome=embedder_unavailable,role=query": 1,
            "semindex_embedding_texts_total,role=document": 3,
            "semindex_embedding_seconds_count,role=document": 1,
            "semindex_store_calls_total,operation=upsert,outcome=ok": 1,
            "semindex_store_calls_total,operation=search,outcome=store_rejected": 1,
            "semindex_store_calls_total,operation=search,outcome=internal": 1,
            "semindex_store_seconds_count,operation=search": 2,
            "semindex_search_seconds_sum,part=embedding": 0.002,
            "semindex_search_withheld_hits_total": 3,
            "semindex_edit_to_searchable_seconds_sum": 0.4,
            "semindex_watcher_overflows_total": 1,
        }.items()
    )


def test_what_is_now_is_read_when_asked_and_a_workspace_counts_once() -> None:
    assert (
        samples(Metrics(), status("/one", "/two", "/two")).items()
        >= {
            "semindex_files,state=indexed": 20,
            "semindex_files,state=failed": 4,
            "semindex_registrations": 3,
            "semindex_active_workspaces": 2,
            "semindex_watchers": 3,
            "semindex_embedding_queue_texts": 4,
            "semindex_mcp_sessions": 5,
            "semindex_cache_hits_total": 6,
            "semindex_cache_misses_total": 7,
            "semindex_cache_bytes": 8,
            "semindex_dependency_reachable,dependency=embedder": 1,
            "semindex_dependency_reachable,dependency=store": 0,
        }.items()
    )


def test_two_cells_in_a_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.settled(1)

    assert samples(other, status())["semindex_edit_to_searchable_seconds_count"] == 0
