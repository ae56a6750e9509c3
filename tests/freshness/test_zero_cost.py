"""Text whose vector is known is never sent to the embedder again, whatever happens to the files that hold it."""

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from attrs import define, field

from semindex.cell.cell import Cell
from semindex.model.status import WorkspaceStatus
from semindex.testing.cells import workspace_of
from tests.freshness.cells import CountingEmbedder, cheap_cell
from tests.freshness.moves import Repository, remove

PATIENCE = 120.0


@define
class Project:
    """A repository, and a cell over one or several lives that counts what it embeds."""

    home: Path
    repository: Repository
    embedder: CountingEmbedder = field(factory=CountingEmbedder)

    @asynccontextmanager
    async def running(self, *trees: Path) -> AsyncIterator[Cell]:
        """Run a cell, and register these trees in it, in this order."""
        async with cheap_cell(self.home, self.repository.directory, embedder=self.embedder) as cell:
            for tree in trees:
                await self.register(cell, tree)
            yield cell

    async def register(self, cell: Cell, tree: Path) -> WorkspaceStatus:
        """Register a tree, and wait until it is indexed."""
        await cell.leases.register(tree.name, str(tree))
        with trio.fail_after(PATIENCE):
            return await workspace_of(cell, tree.name).settled()

    async def found(self, cell: Cell, tree: Path, word: str) -> set[str]:
        """Return the files that a fresh answer shows."""
        with trio.fail_after(PATIENCE):
            while not (answer := await cell.searches.search(tree.name, word, max_results=50)).fresh:
                pass
        return {hit.file_path for hit in answer.results if word in hit.code_chunk}

    async def settled(self, cell: Cell, tree: Path) -> None:
        """Let a tree take in what is on disk."""
        await self.found(cell, tree, "everywhere")


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Project:
    repository = Repository(tmp_path / "project")
    repository.make()
    return Project(home, repository)


def age(tree: Path, seconds: float) -> None:
    """Give every file other times."""
    for file in tree.rglob("*.py"):
        time = file.stat().st_mtime + seconds
        os.utime(file, (time, time))


@pytest.mark.parametrize("seconds", [0.0, -86_400.0, 86_400.0])
async def test_a_worktree_of_what_is_indexed_costs_nothing_whatever_its_times(project: Project, seconds: float) -> None:
    trees = project.repository
    async with project.running(trees.primary) as cell:
        sent = list(project.embedder.documents)
        await trio.to_thread.run_sync(age, trees.linked, seconds)

        status = await project.register(cell, trees.linked)

        assert sent
        assert project.embedder.documents == sent
        assert (status.embedded_chunks, status.files.pending, status.files.failed) == (0, 0, 0)
        assert status.files.indexed == len(trees.files(trees.linked)) + 100
        assert await project.found(cell, trees.linked, "everywhere") == {
            str(file.relative_to(trees.linked)) for file in trees.files(trees.linked)
        }


async def test_what_one_worktree_has_embedded_costs_another_nothing(project: Project) -> None:
    trees = project.repository
    async with project.running(trees.primary, trees.linked) as cell:
        trees.write(trees.linked / "alpha/first1.py")
        await project.settled(cell, trees.linked)
        sent = list(project.embedder.documents)
        shutil.copyfile(trees.linked / "alpha/first1.py", trees.nested / "alpha/elsewhere.py")

        status = await project.register(cell, trees.nested)

        assert project.embedder.documents == sent
        assert (status.embedded_chunks, status.chunks) == (0, 1)


def switch_there_and_back(trees: Repository) -> list[Callable[[], object]]:
    return [
        lambda: trees.git(trees.linked, "checkout", "--quiet", "linked-other"),
        lambda: trees.git(trees.linked, "checkout", "--quiet", "linked"),
        lambda: trees.git(trees.linked, "checkout", "--quiet", "linked-other"),
    ]


def edit_and_revert(trees: Repository) -> list[Callable[[], object]]:
    return [
        lambda: trees.write(trees.linked / "first0.py"),
        lambda: trees.git(trees.linked, "checkout", "--", "first0.py"),
    ]


def delete_and_restore(trees: Repository) -> list[Callable[[], object]]:
    return [lambda: remove(trees.linked / "alpha"), lambda: trees.git(trees.linked, "reset", "--quiet", "--hard")]


def stash_and_pop(trees: Repository) -> list[Callable[[], object]]:
    return [
        lambda: trees.write(trees.linked / "first0.py"),
        lambda: trees.git(trees.linked, "stash", "push", "--quiet"),
        lambda: trees.git(trees.linked, "stash", "pop", "--quiet"),
    ]


@pytest.mark.parametrize("there_and_back", [switch_there_and_back, edit_and_revert, delete_and_restore, stash_and_pop])
async def test_what_comes_back_costs_nothing(
    project: Project, there_and_back: Callable[[Repository], list[Callable[[], object]]]
) -> None:
    trees = project.repository
    there, *back = there_and_back(trees)
    async with project.running(trees.primary, trees.linked) as cell:
        before = await project.found(cell, trees.linked, "everywhere")
        await trio.to_thread.run_sync(there)
        await project.settled(cell, trees.linked)
        sent = list(project.embedder.documents)
        for step in back:
            await trio.to_thread.run_sync(step)
            await project.settled(cell, trees.linked)

        assert project.embedder.documents == sent
        assert before


def move_a_file(trees: Repository) -> None:
    (trees.linked / "first0.py").rename(trees.linked / "alpha/renamed.py")


def move_a_directory(trees: Repository) -> None:
    (trees.linked / "alpha").rename(trees.linked / "omega")


def copy_a_file(trees: Repository) -> None:
    shutil.copyfile(trees.primary / "first0.py", trees.linked / "copied.py")


def move_a_file_into_another_tree(trees: Repository) -> None:
    (trees.primary / "first0.py").rename(trees.linked / "taken.py")


def commit_what_was_edited_elsewhere(trees: Repository) -> None:
    shutil.copyfile(trees.linked / "alpha/first1.py", trees.primary / "first0.py")
    trees.commit(trees.primary)


@pytest.mark.parametrize(
    "change",
    [
        move_a_file,
        move_a_directory,
        copy_a_file,
        move_a_file_into_another_tree,
        commit_what_was_edited_elsewhere,
    ],
)
async def test_text_that_is_somewhere_else_now_costs_nothing(
    project: Project, change: Callable[[Repository], None]
) -> None:
    trees = project.repository
    async with project.running(trees.primary, trees.linked) as cell:
        sent = list(project.embedder.documents)
        await trio.to_thread.run_sync(change, trees)
        await project.settled(cell, trees.primary)
        await project.settled(cell, trees.linked)

        assert project.embedder.documents == sent


@pytest.mark.parametrize("purge", [False, True])
async def test_to_be_registered_again_costs_nothing(project: Project, purge: bool) -> None:
    trees = project.repository
    async with project.running(trees.primary, trees.linked) as cell:
        trees.write(trees.linked / "first0.py")
        before = await project.found(cell, trees.linked, "everywhere")
        sent = list(project.embedder.documents)
        for _ in range(2):
            await cell.leases.release("linked", purge=purge)
            await cell.leases.release("primary", purge=purge)
            await project.register(cell, trees.primary)
            await project.register(cell, trees.linked)

        assert await project.found(cell, trees.linked, "everywhere") == before
        assert project.embedder.documents == sent


async def test_a_restart_and_a_reindex_cost_nothing(project: Project) -> None:
    trees = project.repository
    async with project.running(trees.primary, trees.linked) as cell:
        trees.write(trees.linked / "first0.py")
        before = await project.found(cell, trees.linked, "everywhere")
        sent = list(project.embedder.documents)
    async with project.running(trees.primary, trees.linked) as cell:
        assert await project.found(cell, trees.linked, "everywhere") == before
        for tree in (trees.primary, trees.linked):
            await workspace_of(cell, tree.name).reindex()
            await project.settled(cell, tree)
        assert await project.found(cell, trees.linked, "everywhere") == before

    assert project.embedder.documents == sent


async def test_a_cache_that_was_lost_costs_nothing_while_the_vectors_are_stored(project: Project) -> None:
    trees = project.repository
    async with project.running(trees.primary, trees.linked) as cell:
        trees.write(trees.linked / "first0.py")
        await project.settled(cell, trees.linked)
        sent = list(project.embedder.documents)
    shutil.rmtree(project.home / "cache")
    move_a_file(trees)
    move_a_directory(trees)
    async with project.running(trees.primary, trees.linked) as cell:
        await project.settled(cell, trees.linked)
        await project.register(cell, trees.nested)
        await cell.leases.release("linked", purge=True)
        await project.register(cell, trees.linked)

    assert project.embedder.documents == sent
