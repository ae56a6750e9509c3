"""The composition root: a cell opens where something is missing, and ends where something hangs."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
import trio

from semindex.config import IndexingConfig, ShutdownConfig
from semindex.embedders.static import PROFILE, StaticEmbedder
from semindex.model.answers import CellPhase
from semindex.model.errors import EmbedderUnavailable, NotReady
from semindex.model.profiles import Role
from semindex.model.registrations import OperationState
from semindex.model.status import State
from semindex.observe import health
from semindex.ports import Vectors
from semindex.service import OpenEmbedder
from semindex.testing.cells import config_below, embedding_with, running_cell, workspace_of

PATIENCE = 60.0
TEXT = "# Heliotrope authentication validates bearer credentials before it dispatches the request.\n"


class Embedder:
    """Does what a test wants with each call, and passes on what is left."""

    profile = PROFILE
    batch_size = 16

    def __init__(self, before: Callable[[], Awaitable[None]]) -> None:
        self._before = before

    async def embed(self, texts: Sequence[str], role: Role) -> Vectors:
        await self._before()
        return await (await StaticEmbedder.load()).embed(texts, role)


def embedding_after(before: Callable[[], Awaitable[None]]) -> OpenEmbedder:
    """Has a cell embed by calling something first."""
    return embedding_with(Embedder(before))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "auth.py").write_text(TEXT)
    return tree


async def test_a_cell_ends_within_its_grace_although_its_embedder_hangs(tmp_path: Path, tree: Path) -> None:
    hanging = trio.Event()

    async def hang() -> None:
        hanging.set()
        await trio.sleep_forever()

    embedder = embedding_after(hang)
    config = config_below(tmp_path, tree).model_copy(update={"shutdown": ShutdownConfig(drain_grace_ms=50)})
    with trio.fail_after(PATIENCE):
        async with running_cell(config, embedder=embedder) as cell:
            await cell.leases.register("tree", str(tree))
            operation = await cell.operations.reindex("tree")
            await hanging.wait()
            assert cell.operations.get(operation.id).state is OperationState.RUNNING

        async with running_cell(config, embedder=embedder) as cell:
            ended = cell.operations.get(operation.id)
            assert ended.state is OperationState.FAILED
            assert ended.error


async def test_a_cell_is_degraded_while_its_embedder_does_not_answer_and_recovers_by_itself(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "PROBE_PAUSE", 0.01)
    is_down = True

    async def answer() -> None:
        await trio.lowlevel.checkpoint()
        if is_down:
            raise EmbedderUnavailable("The endpoint does not answer; see whether it runs.")

    with trio.fail_after(PATIENCE):
        async with running_cell(config_below(tmp_path, tree), embedder=embedding_after(answer)) as cell:
            await cell.leases.register("tree", str(tree))
            while cell.phase()[0] is CellPhase.READY:
                await cell.changes.beyond(cell.changes.value)
            phase, message = cell.phase()
            assert phase is CellPhase.DEGRADED
            assert "The endpoint does not answer" in message
            assert (await cell.status()).embedder.checked_at is not None

            is_down = False
            while cell.phase()[0] is not CellPhase.READY:
                await cell.changes.beyond(cell.changes.value)
            assert (await workspace_of(cell, "tree").settled()).chunks == 1


async def test_an_allowed_root_that_is_missing_keeps_no_cell_from_starting(tmp_path: Path, tree: Path) -> None:
    missing = tmp_path / "unmounted"
    async with running_cell(config_below(tmp_path, missing, tree)) as cell:
        assert cell.leases.allowed_roots == (str(missing), str(tree))
        await cell.leases.register("tree", str(tree))
        missing.mkdir()

        assert (await cell.leases.register("back", str(missing))).registration.path == str(missing)


@pytest.mark.parametrize("indexing", [
    {"vectorStore": "qdrant", "qdrant": {"url": "http://127.0.0.1:1"}},
    {"openai-compatible": {"baseUrl": "http://127.0.0.1:1"}, "model": "m", "dimension": 3},
], ids=["store", "embedder"])  # fmt: skip
async def test_a_cell_starts_although_what_is_configured_does_not_answer_and_says_so(
    tmp_path: Path, indexing: dict[str, object]
) -> None:
    config = config_below(tmp_path, tmp_path).model_copy(update={"indexing": IndexingConfig.model_validate(indexing)})

    with trio.fail_after(PATIENCE):
        async with running_cell(config) as cell:
            while cell.phase()[0] is not CellPhase.DEGRADED:
                await cell.changes.beyond(cell.changes.value)
            assert "http://127.0.0.1:1" in cell.phase()[1]


async def test_what_was_registered_is_not_served_once_it_lies_outside_of_the_allowed_roots(
    tmp_path: Path, tree: Path
) -> None:
    config = config_below(tmp_path, tree)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with running_cell(config) as cell:
        await cell.leases.register("mine", str(tree))

    async with running_cell(config_below(tmp_path, elsewhere)) as cell:
        status = cell.leases.status("mine")
        assert status.workspace.state is State.STANDBY
        assert "outside" in status.workspace.message
        with pytest.raises(NotReady, match="outside"):
            await cell.searches.search("mine", "heliotrope")

    async with running_cell(config) as cell:
        assert workspace_of(cell, "mine") is not None
