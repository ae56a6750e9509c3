"""Searching a registration's workspace, and finding the registration that a client's roots lead to."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from attrs import evolve, frozen

from semindex.cell.leases import lies_in
from semindex.core.prefix import parse_prefix
from semindex.engine.search import SearchAnswer, SearchRequest
from semindex.engine.workspace import Workspace
from semindex.leasing import Lease
from semindex.model.answers import EmptyReason, SearchResponse
from semindex.model.errors import (
    AmbiguousRoot,
    InvalidInput,
    PathRefused,
    SemindexError,
    UnregisteredRoot,
)
from semindex.model.limits import DEFAULT_RESULTS, MAX_QUERY, MAX_RESULTS
from semindex.model.status import State
from semindex.ports import Places
from semindex.registry import Registry

MAX_PENDING_SHOWN = 20


@frozen
class SearchDefaults:
    """What a search uses unless it says otherwise."""

    min_score: float
    candidates: int
    fold: bool
    """Off under the ``kilo`` profile, whose results keep hits that lie inside other hits."""


@frozen
class Searches:
    """The searches of a cell."""

    registry: Registry
    places: Places
    defaults: SearchDefaults
    answered: Callable[[SearchResponse], None] = lambda _: None
    """Told of every answer."""

    async def search(
        self,
        registration_id: str,
        query: str,
        *,
        path: str | None = None,
        max_results: int = DEFAULT_RESULTS,
        fresh: bool = True,
        keep_overlaps: bool | None = None,
    ) -> SearchResponse:
        """Search the workspace of a registration.

        ``path`` is a relative file or directory; ``keep_overlaps`` returns hits that lie inside better ones as
        well, None leaves that to the profile. Raises InvalidInput, UnknownRegistration, Releasing, NotReady,
        StoreUnavailable, EmbedderUnavailable.
        """
        query = query.strip()
        if not 1 <= len(query) <= MAX_QUERY:
            raise InvalidInput(f"A query has 1 to {MAX_QUERY} characters.")
        if not 1 <= max_results <= MAX_RESULTS:
            raise InvalidInput(f"maxResults is a number from 1 to {MAX_RESULTS}.")
        request = SearchRequest(
            query,
            parse_prefix(path),
            max_results,
            self.defaults.candidates,
            self.defaults.min_score,
            fold=self.defaults.fold if keep_overlaps is None else not keep_overlaps,
            fresh=fresh,
        )
        workspace = self.registry.lease(registration_id).running()
        answer = await workspace.search(request)
        response = SearchResponse(
            workspace.root,
            await self._branch(workspace.root),
            workspace.status().state,
            answer.results,
            answer.fresh,
            answer.pending[:MAX_PENDING_SHOWN],
            len(answer.pending),
            answer.withheld,
            None if answer.results else await self._why_empty(workspace, request, answer),
            {
                "sweep": answer.timings.sweep,
                "embedding": answer.timings.embedding,
                "store": answer.timings.store,
                "verification": answer.timings.verification,
            },
        )
        self.answered(response)
        return response

    async def bind(self, roots: Sequence[str]) -> tuple[str, str]:
        """Return the id of the registration that a client's roots lead to, and the path they name in its workspace.

        A root below a registered workspace counts as that workspace, unless another working tree lies in between.
        Raises UnregisteredRoot, AmbiguousRoot.
        """
        found: dict[str, tuple[str, str]] = {}
        refusals = []
        for root in roots:
            try:
                lease, below = await self._bind_one(root)
            except SemindexError as error:
                refusals.append(str(error))
            else:
                found[lease.registration.path] = (lease.registration.id, below)
        if len(found) > 1:
            names = ", ".join(sorted(found))
            raise AmbiguousRoot(
                f"Exactly one registered MCP workspace root is required; these are: {names}. "
                "Open one of them alone, or connect with a token of one registration (indexctl token create)."
            )
        if not found:
            raise UnregisteredRoot(
                refusals[0] if refusals else "The client named no root; open a registered directory."
            )
        return next(iter(found.values()))

    async def _bind_one(self, root: str) -> tuple[Lease, str]:
        try:
            place = await self.places.directory(root)
        except PathRefused as error:
            raise UnregisteredRoot(f"The client's root cannot be used: {error}") from error
        above = [lease for lease in self.registry.leases() if lies_in(place.path, lease.registration.path)]
        if not above:
            raise UnregisteredRoot(
                f"The MCP workspace root is not registered for semantic indexing: {place.path}. "
                "Register it first (indexctl register --id NAME --path PATH)."
            )
        lease = max(above, key=lambda lease: len(lease.registration.path))
        workspace = lease.registration.path
        between = next((top for top in place.tops if len(top) > len(workspace)), None)
        if between is not None:
            raise UnregisteredRoot(f"{between} is a working tree of its own and is not registered; register it.")
        return lease, place.path[len(workspace) :].strip("/")

    async def _branch(self, root: str) -> str | None:
        try:
            return (await self.places.directory(root)).branch
        except PathRefused:  # it went away meanwhile: that is no reason to lose the answer
            return None

    async def _why_empty(self, workspace: Workspace, request: SearchRequest, answer: SearchAnswer) -> EmptyReason:
        if answer.withheld:
            return EmptyReason.WITHHELD
        if request.segments:
            with suppress(SemindexError):  # the answer itself stands, whatever happens to this second look
                if (await workspace.search(evolve(request, segments=(), max_results=1, fresh=False))).results:
                    return EmptyReason.FILTERED_OUT
        if workspace.status().state is State.INDEXING:
            return EmptyReason.STILL_INDEXING
        return EmptyReason.NO_MATCH
