"""Why something is found or not: the ledger of a workspace, page by page, and one path explained."""

import heapq

import trio
from attrs import evolve, frozen

from semindex.core.prefix import parse_prefix
from semindex.engine.filetable import FILES_PER_STEP
from semindex.engine.pacing import paced
from semindex.engine.workspace import Workspace
from semindex.model.answers import Explanation, FilesPage
from semindex.model.errors import InvalidInput
from semindex.model.status import FileRecord, FileState
from semindex.registry import Registry

MAX_PAGE = 1000


@frozen
class Inspection:
    """Looks into the workspaces of a cell; changes nothing."""

    registry: Registry
    threads: trio.CapacityLimiter
    """For sorting large ledgers off the loop."""

    async def files(
        self, registration_id: str, *, state: FileState | None = None, after: str = "", limit: int = 100
    ) -> FilesPage:
        """Return the records of a workspace in the order of their paths, beginning after one of them.

        Raises InvalidInput, UnknownRegistration, Releasing, NotReady.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidInput(f"limit is a number from 1 to {MAX_PAGE}.")
        index = self._workspace(registration_id).index
        records = []
        async for record in paced(list(index.table), FILES_PER_STEP):
            present = index.state_of(record.path) or record.state
            if state in (None, present):
                records.append(record if record.state is present else evolve(record, state=present))

        def page() -> tuple[FileRecord, ...]:
            return tuple(heapq.nsmallest(limit, (r for r in records if r.path > after), key=lambda record: record.path))

        return FilesPage(await trio.to_thread.run_sync(page, limiter=self.threads), len(records))

    async def explain(self, registration_id: str, path: str) -> Explanation:
        """Say why a path of the workspace is or is not searchable. Raises as :meth:`files` does, and ChunkingFailed."""
        segments = parse_prefix(path)
        if not segments:
            raise InvalidInput("Name a file or a directory of the workspace to be explained.")
        return await self._workspace(registration_id).explain("/".join(segments))

    def _workspace(self, registration_id: str) -> Workspace:
        return self.registry.lease(registration_id).running()
