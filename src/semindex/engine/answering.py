"""One search from the question to the answer: take in what changed on disk, embed the query, collect verified hits."""

from collections.abc import Callable

import trio
from attrs import frozen

from semindex.engine.index import Index
from semindex.engine.search import Candidates, SearchAnswer, SearchRequest, Source, Timings
from semindex.engine.sweeping import Sweeper
from semindex.engine.tools import Tools
from semindex.ports import SourceTree


@frozen
class Answerer:
    """Answers the searches of one workspace."""

    tree: SourceTree
    tools: Tools
    index: Index
    sweeper: Sweeper
    sources: Callable[[], list[Source]]
    """Returns the collections to search, as they are now."""

    async def answer(self, request: SearchRequest, *, is_built: bool) -> SearchAnswer:
        """Answer a query. A first build is not waited for: ``is_built`` is False while it lasts.

        Raises what the embedder, the store and the comparison with the disk raise.
        """
        deadline = trio.current_time() + request.fresh_seconds
        sweep_seconds = embedding_seconds = 0.0
        while True:
            began = trio.current_time()
            fresh, moves = False, self.index.moves
            if request.fresh and is_built:
                fresh, moves = await self._take_in(deadline)
            swept = trio.current_time()
            vector = await self.tools.scheduler.embed_query(request.query)
            sweep_seconds += swept - began
            embedding_seconds += trio.current_time() - swept
            candidates = Candidates(self.tools.store, self.tree, self.sources(), request)
            results = await candidates.best(vector)
            # A baseline that moved meanwhile may have taken away points that this overlay still needed: look again.
            moved = self.index.moves > moves
            if not (fresh and moved) or trio.current_time() >= deadline:
                break
        fresh = fresh and not moved
        return SearchAnswer(
            tuple(results),
            fresh=fresh,
            pending=() if fresh else tuple(self.index.queue.outstanding()),
            withheld=candidates.withheld,
            timings=Timings(
                sweep_seconds, embedding_seconds, candidates.store_seconds, candidates.verification_seconds
            ),
        )

    async def _take_in(self, deadline: float) -> tuple[bool, int]:
        """Let the index take in what is on disk now; return whether it has, and from which move of the baseline on."""
        with trio.move_on_at(deadline):
            await self.sweeper.request()
            while not self.index.followed.is_set():
                # The baseline has started over: what was compared with it has to be compared again.
                await self.index.followed.wait()
                await self.sweeper.request()
            queue, moves = self.index.queue, self.index.moves
            return await queue.settled(queue.outstanding()), moves
        return False, self.index.moves
