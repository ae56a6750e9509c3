"""What the status says while files change: what is pending, what was embedded, what was reused."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from semindex.cell.cell import Cell
from semindex.model.profiles import Role
from semindex.model.status import FileState, State, WorkspaceStatus
from semindex.ports import Vectors
from semindex.testing.cells import indexed, workspace_of
from tests.freshness.cells import CountingEmbedder, Watching, cheap_cell
from tests.freshness.moves import BALLAST_FILES, Repository

PATIENCE = 120.0


class GatedEmbedder(CountingEmbedder):
    """Embeds documents only while it is open."""

    def __init__(self) -> None:
        super().__init__()
        self.opened = trio.Event()
        self.reached = trio.Event()

    def shut(self) -> None:
        """Hold what comes from now on."""
        self.opened, self.reached = trio.Event(), trio.Event()

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        """Embed, when open."""
        if role is Role.DOCUMENT:
            self.reached.set()
            await self.opened.wait()
        return await super().embed(texts, role)


@pytest.fixture
def trees(tmp_path: Path) -> Repository:
    repository = Repository(tmp_path / "project")
    repository.make()
    return repository


def check_sum(status: WorkspaceStatus) -> None:
    files = status.files
    assert files.discovered == files.indexed + files.pending + files.skipped + files.failed
    assert min(files.indexed, files.pending, files.skipped, files.failed) >= 0


async def listed(cell: Cell, name: str, state: FileState) -> list[str]:
    return [record.path for record in (await cell.inspection.files(name, state=state, limit=1000)).records]


async def test_what_waits_for_the_embedder_is_pending_in_a_build_and_after_an_edit(
    home: Path, trees: Repository
) -> None:
    embedder, texts = GatedEmbedder(), len(trees.files(trees.primary))
    with trio.fail_after(PATIENCE):
        async with cheap_cell(home, trees.directory, embedder=embedder, watching=Watching.OFF) as cell:
            await cell.leases.register("primary", str(trees.primary))
            workspace = workspace_of(cell, "primary")
            await embedder.reached.wait()
            status = workspace.status()
            check_sum(status)
            assert status.state is State.INDEXING
            assert status.files.pending >= texts
            answer = await cell.searches.search("primary", "everywhere")
            assert (answer.fresh, answer.pending_count >= texts) == (False, True)

            embedder.opened.set()
            status = await workspace.settled()
            assert (status.files.indexed, status.files.pending) == (texts + BALLAST_FILES, 0)
            assert (status.embedded_chunks, status.reused_chunks, status.chunks) == (texts, 0, texts)

            embedder.shut()
            trees.write(trees.primary / "first0.py")
            trees.write(trees.primary / "added.py")
            (trees.primary / "alpha/first1.py").unlink()
            await workspace.sweep(full=False)
            await embedder.reached.wait()
            # What was written a moment ago is read again, which needs no embedder.
            while (status := workspace.status()).files.pending != 2:
                check_sum(status)
                await workspace.changes.beyond(workspace.changes.value)
            assert await listed(cell, "primary", FileState.PENDING) == ["added.py", "first0.py"]
            assert "first0.py" not in await listed(cell, "primary", FileState.INDEXED)
            assert status.files.discovered == texts + BALLAST_FILES

            embedder.opened.set()
            status = await workspace.settled()
            check_sum(status)
            assert (status.files.indexed, status.files.pending) == (texts + BALLAST_FILES, 0)
            assert status.embedded_chunks == texts + 2


async def test_a_worktree_tells_what_it_reused_and_what_it_embedded(home: Path, trees: Repository) -> None:
    texts = len(trees.files(trees.primary))
    with trio.fail_after(PATIENCE):
        async with cheap_cell(home, trees.directory) as cell:
            await indexed(cell, "primary", trees.primary)
            status = await indexed(cell, "linked", trees.linked)
            assert (status.embedded_chunks, status.reused_chunks, status.chunks) == (0, texts, 0)
            assert status.files.indexed == texts + BALLAST_FILES

            trees.write(trees.linked / "first0.py")
            await cell.searches.search("linked", "everywhere")
            status = await workspace_of(cell, "linked").settled()
            assert (status.embedded_chunks, status.reused_chunks, status.chunks) == (1, texts, 1)

            trees.git(trees.linked, "checkout", "--", "first0.py")
            await cell.searches.search("linked", "everywhere")
            status = await workspace_of(cell, "linked").settled()
            assert (status.embedded_chunks, status.reused_chunks, status.chunks) == (1, texts + 1, 0)
