"""Answering one query: candidates from every collection concerned, each checked against the disk, the rest refilled.

No result shows text that is not on disk: every file behind a hit is read and hashed for this answer. A hit that fails
is withheld, counted and replaced, so that fewer hits than asked for come only when the stores hold no more.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import trio
from attrs import define, field, frozen

from semindex.core.ranking import certain, is_folded, merge
from semindex.engine.index import Index
from semindex.model.errors import SemindexError
from semindex.model.limits import DEFAULT_MIN_SCORE, DEFAULT_RESULTS
from semindex.model.points import Hit
from semindex.ports import SourceTree, Vectors, VectorStore

GROWTH = 4
"""Factor by which the number of candidates grows when checking has left too few."""


@frozen
class SearchRequest:
    """What is asked."""

    query: str
    segments: tuple[str, ...] = ()
    """Leading path segments that every result must have."""
    max_results: int = DEFAULT_RESULTS
    candidates: int = 50
    """Hits of each collection that are looked at first."""
    min_score: float = DEFAULT_MIN_SCORE
    """Cosine below which nothing is returned."""
    fold: bool = True
    """Leave out hits that lie wholly inside a better hit of the same file."""
    fresh: bool = True
    """Let the index take in first what changed on disk before the call."""
    fresh_seconds: float = 2.0
    """How long to wait for that."""


@frozen
class Timings:
    """Seconds that each part of a search took."""

    sweep: float = 0.0
    embedding: float = 0.0
    store: float = 0.0
    verification: float = 0.0


@frozen
class SearchAnswer:
    """What was found."""

    results: tuple[Hit, ...]
    fresh: bool
    """Everything written before the call has been taken into account."""
    pending: tuple[str, ...]
    """Files that may have changed and are not indexed yet."""
    withheld: int
    """Hits dropped because their file is not what was indexed."""
    timings: Timings


@frozen
class Source:
    """One collection to search, and which of its hits count."""

    collection: str
    accepts: Callable[[Hit], bool]
    """Decides, without looking at the disk, whether a hit may be shown at all."""
    exclude: frozenset[str] = frozenset()
    """Paths known to be shadowed."""


def overlay_sources(overlay: Index, delta: str | None, baseline: str) -> list[Source]:
    """Return what a worktree's search consists of: its own delta, and what it inherits from its baseline.

    A baseline hit counts only for a file that the worktree has, too; whether it has the same content is for the check
    on disk to say. What is known to be shadowed is not even asked for.
    """

    def is_inherited(hit: Hit) -> bool:
        record = overlay.table.get(hit.file_path)
        return record is not None and (record.file_hash == hit.file_hash or hit.file_path in overlay.queue)

    sources = [Source(baseline, is_inherited, overlay.shadowed)]
    return [Source(delta, lambda _hit: True), *sources] if delta else sources


@define
class Candidates:
    """Collects verified hits for one query vector from several sources."""

    store: VectorStore
    tree: SourceTree
    sources: Sequence[Source]
    request: SearchRequest
    store_seconds: float = 0.0
    verification_seconds: float = 0.0
    _hashes: dict[str, str | None] = field(factory=dict)
    """Files read for this answer."""
    _withheld: set[str] = field(factory=set)

    @property
    def withheld(self) -> int:
        """Return how many hits were dropped because their file is not what was indexed."""
        return len(self._withheld)

    async def best(self, vector: Vectors) -> list[Hit]:
        """Return the best hits that hold on disk now, at most ``max_results``."""
        useless: dict[str, set[str]] = {source.collection: set() for source in self.sources}
        limit = max(self.request.candidates, self.request.max_results)
        while True:
            began = trio.current_time()
            found = await self._fetch(vector, limit, useless)
            fetched = trio.current_time()
            results = await self._choose(found, limit, useless)
            self.store_seconds += fetched - began
            self.verification_seconds += trio.current_time() - fetched
            if len(results) >= self.request.max_results or all(len(hits) < limit for hits in found.values()):
                return results
            limit *= GROWTH

    async def _fetch(self, vector: Vectors, limit: int, useless: Mapping[str, set[str]]) -> dict[str, list[Hit]]:
        found: dict[str, list[Hit]] = {}
        errors: list[SemindexError] = []

        async def fetch(source: Source) -> None:
            collection = source.collection
            try:
                found[collection] = await self.store.search(
                    collection,
                    vector,
                    limit=limit,
                    min_score=self.request.min_score,
                    segments=self.request.segments,
                    # A worktree that is on another branch shadows tens of thousands: they are copied only if need be.
                    exclude=source.exclude | added if (added := useless[collection]) else source.exclude,
                )
            except SemindexError as error:
                errors.append(error)
                nursery.cancel_scope.cancel(reason="another collection cannot be searched")

        async with trio.open_nursery() as nursery:
            for source in self.sources:
                nursery.start_soon(fetch, source)
        if errors:
            raise errors[0]
        return found

    async def _choose(
        self, found: Mapping[str, Sequence[Hit]], limit: int, useless: Mapping[str, set[str]]
    ) -> list[Hit]:
        """Return what may be shown; note in ``useless`` the files that need not be asked for again."""
        floor = certain([(hits, len(hits) < limit) for hits in found.values()])
        acceptable = []
        for source in self.sources:
            accepted = [hit for hit in found[source.collection] if source.accepts(hit)]
            useless[source.collection].update(
                {hit.file_path for hit in found[source.collection]} - {hit.file_path for hit in accepted}
            )
            acceptable.append(accepted)
        results = await self._verified([hit for hit in merge(acceptable) if hit.score > floor])
        for source, accepted in zip(self.sources, acceptable, strict=True):
            useless[source.collection].update(
                hit.file_path for hit in accepted if self._hashes.get(hit.file_path, hit.file_hash) != hit.file_hash
            )
        return results

    async def _verified(self, ranked: Sequence[Hit]) -> list[Hit]:
        """Walk down the ranking until there are enough hits whose file still has the indexed content."""
        results: list[Hit] = []
        for first in range(0, len(ranked), self.request.max_results):
            group = ranked[first : first + self.request.max_results]
            await self._read(hit.file_path for hit in group)
            for hit in group:
                if self._hashes.get(hit.file_path) != hit.file_hash:
                    self._withheld.add(hit.segment_hash)
                elif not (self.request.fold and is_folded(hit, results)):
                    results.append(hit)
                    if len(results) == self.request.max_results:
                        return results
        return results

    async def _read(self, paths: Iterable[str]) -> None:
        if missing := [path for path in dict.fromkeys(paths) if path not in self._hashes]:
            found = await self.tree.hashes(missing)
            self._hashes.update((path, found.get(path)) for path in missing)
