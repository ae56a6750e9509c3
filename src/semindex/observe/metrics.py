"""Metrics of a cell in Prometheus' text format: what happened is counted at once, what is now is read when asked."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from semindex.model.answers import CellStatus, SearchResponse
from semindex.model.status import FileState
from semindex.observe.calls import Call

disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no annotations; each series would have a time stamp

_FAST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds in seconds, for calls."""
_SLOW = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Bounds in seconds, for the way of an edit into the index."""


class Metrics:
    """The metrics of one cell, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._embedding_calls = Counter(
            "semindex_embedding_calls", "Calls of the embedder.", ("role", "outcome"), registry=self._registry
        )
        self._embedding_texts = Counter(
            "semindex_embedding_texts", "Texts sent to the embedder.", ("role",), registry=self._registry
        )
        self._embedding_seconds = Histogram(
            "semindex_embedding_seconds",
            "Duration of calls of the embedder.",
            ("role",),
            buckets=_FAST,
            registry=self._registry,
        )
        self._store_calls = Counter(
            "semindex_store_calls", "Calls of the vector store.", ("operation", "outcome"), registry=self._registry
        )
        self._store_seconds = Histogram(
            "semindex_store_seconds",
            "Duration of calls of the vector store.",
            ("operation",),
            buckets=_FAST,
            registry=self._registry,
        )
        self._search_seconds = Histogram(
            "semindex_search_seconds",
            "Duration of the parts of searches.",
            ("part",),
            buckets=_FAST,
            registry=self._registry,
        )
        self._withheld = Counter(
            "semindex_search_withheld_hits",
            "Hits not returned because their file had changed.",
            registry=self._registry,
        )
        self._lag = Histogram(
            "semindex_edit_to_searchable_seconds",
            "From noticing an edit to its being searchable.",
            buckets=_SLOW,
            registry=self._registry,
        )
        self._overflows = Counter(
            "semindex_watcher_overflows", "Times that file events were lost.", registry=self._registry
        )
        self._snapshot = _Snapshot()
        self._registry.register(self._snapshot)

    def embedding(self, call: Call) -> None:
        """Count a call of the embedder; an observer."""
        if call.name == "embed":
            texts, role = call.arguments
            self._embedding_calls.labels(role.value, _outcome(call)).inc()
            self._embedding_texts.labels(role.value).inc(len(texts))
            self._embedding_seconds.labels(role.value).observe(call.seconds)

    def overflowed(self) -> None:
        """Count that file events were lost."""
        self._overflows.inc()

    def storing(self, call: Call) -> None:
        """Count a call of the vector store; an observer."""
        self._store_calls.labels(call.name, _outcome(call)).inc()
        self._store_seconds.labels(call.name).observe(call.seconds)

    def searched(self, response: SearchResponse) -> None:
        """Count a search that was answered."""
        for part, seconds in response.seconds.items():
            self._search_seconds.labels(part).observe(seconds)
        self._withheld.inc(response.withheld)

    def settled(self, seconds: float) -> None:
        """Count an edit that is searchable now, so many seconds after it was noticed."""
        self._lag.observe(seconds)

    def text(self, status: CellStatus) -> bytes:
        """Return all metrics, with the status of now."""
        self._snapshot.status = status
        return generate_latest(self._registry)


class _Snapshot(Collector):
    """What a status tells, as metrics."""

    def __init__(self) -> None:
        self.status: CellStatus | None = None

    def collect(self) -> Iterator[Metric]:
        status = self.status
        if status is None:
            return
        yield CounterMetricFamily("semindex_cache_hits", "Texts found in the embedding cache.", status.cache_hits)
        yield CounterMetricFamily("semindex_cache_misses", "Texts not found there.", status.cache_misses)
        yield GaugeMetricFamily("semindex_cache_bytes", "Size of the embedding cache.", status.cache_bytes)
        yield GaugeMetricFamily("semindex_embedding_queue_texts", "Texts waiting for vectors.", status.queue_depth)
        yield GaugeMetricFamily("semindex_registrations", "Registrations.", len(status.registrations))
        yield GaugeMetricFamily("semindex_active_workspaces", "Workspaces at work.", status.active_workspaces)
        yield GaugeMetricFamily("semindex_mcp_sessions", "Open MCP sessions.", status.mcp_sessions)
        yield GaugeMetricFamily("semindex_watchers", "Trees that are watched.", status.watchers)
        reachable = GaugeMetricFamily(
            "semindex_dependency_reachable", "Whether the last call was answered.", labels=("dependency",)
        )
        for name, health in (("embedder", status.embedder), ("store", status.store)):
            reachable.add_metric((name,), float(health.reachable))
        yield reachable
        yield _files(status)


def _files(status: CellStatus) -> Metric:
    counts = {each.workspace.path: each.workspace.files for each in status.registrations}.values()
    files = GaugeMetricFamily("semindex_files", "Discovered files of all workspaces.", labels=("state",))
    for state in FileState:
        files.add_metric((state.value,), sum(getattr(count, state.value) for count in counts))
    return files


def _outcome(call: Call) -> str:
    return "ok" if call.error is None else getattr(type(call.error), "code", "internal")
