"""What git's own files tell, against real repositories."""

import os
from pathlib import Path

import pytest
import trio

from semindex.core.eligibility import Standing
from semindex.files.git import enclosing_repository, is_boundary, repository_at
from semindex.files.tree import WorkingTree
from tests.files.repositories import add_submodule, commit_all, git, write


@pytest.fixture
def linked(git_repository: Path, tmp_path: Path) -> Path:
    """A linked worktree on a branch of its own."""
    commit_all(git_repository)
    git(git_repository, "worktree", "add", "--quiet", "-b", "topic/one", str(tmp_path / "linked"))
    return tmp_path / "linked"


def test_a_primary_checkout_knows_its_branch(git_repository: Path) -> None:
    repository = repository_at(str(git_repository))

    assert repository is not None
    assert repository.top == str(git_repository)
    assert repository.git_dir == repository.common_dir == str(git_repository / ".git")
    assert not repository.is_worktree
    assert repository.branch == "main"


def test_a_linked_worktree_knows_its_branch_and_its_primary_checkout(git_repository: Path, linked: Path) -> None:
    repository = repository_at(str(linked))

    assert repository is not None
    assert repository.is_worktree
    assert repository.primary == str(git_repository)
    assert repository.common_dir == str(git_repository / ".git")
    assert repository.branch == "topic/one"


def test_a_detached_head_is_no_branch(linked: Path) -> None:
    git(linked, "checkout", "--quiet", "--detach")
    repository = repository_at(str(linked))

    assert repository is not None
    assert repository.branch is None


def test_a_worktree_of_a_bare_repository_has_no_primary_checkout(git_repository: Path, tmp_path: Path) -> None:
    commit_all(git_repository)
    git(tmp_path, "clone", "--quiet", "--bare", str(git_repository), str(tmp_path / "bare"))
    git(tmp_path / "bare", "worktree", "add", "--quiet", str(tmp_path / "linked"))
    repository = repository_at(str(tmp_path / "linked"))

    assert repository is not None
    assert repository.is_worktree
    assert repository.primary is None


def test_a_submodule_is_no_linked_worktree(git_repository: Path, tmp_path: Path) -> None:
    commit_all(git_repository)
    add_submodule(git_repository, git_repository, "libs/inner")
    repository = repository_at(str(git_repository / "libs/inner"))

    assert repository is not None
    assert not repository.is_worktree
    assert repository.git_dir == str(git_repository / ".git/modules/libs/inner")


def test_the_enclosing_repository_is_the_nearest(git_repository: Path) -> None:
    write(git_repository, "src/deep/a.py")
    found = enclosing_repository(str(git_repository / "src/deep"))
    assert found is not None
    assert found.top == str(git_repository)

    git(git_repository / "src", "init", "--quiet")
    found = enclosing_repository(str(git_repository / "src/deep"))
    assert found is not None
    assert found.top == str(git_repository / "src")


@pytest.mark.parametrize(
    "content", ["", "gitdir: ", "gitdir: nowhere", "gitdir: .git", "gitdir: \0", "\0" * 100, "ref: refs/heads/main\n"]
)
def test_a_damaged_git_file_marks_no_repository(tmp_path: Path, content: str) -> None:
    write(tmp_path, ".git", text=content)

    assert repository_at(str(tmp_path)) is None
    assert not is_boundary(str(tmp_path / ".git"))


def test_a_git_fifo_is_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".git")

    assert repository_at(str(tmp_path)) is None
    assert not is_boundary(str(tmp_path / ".git"))


async def test_clones_and_linked_worktrees_inside_are_not_entered_and_submodules_are(
    git_repository: Path, tmp_path: Path
) -> None:
    write(git_repository, "main.py")
    commit_all(git_repository)
    git(git_repository, "clone", "--quiet", ".", "nested/clone")
    git(git_repository, "worktree", "add", "--quiet", "nested/linked")
    add_submodule(git_repository, git_repository, "nested/module")
    git(git_repository / "nested/module", "worktree", "add", "--quiet", "../module-linked")
    (git_repository / "nested/shared").mkdir()
    write(git_repository, "nested/shared/main.py", "nested/no-repository/main.py", "nested/no-repository/.git/config")
    (git_repository / "nested/shared/.git").symlink_to(git_repository / ".git")
    tree = WorkingTree(str(git_repository), trio.CapacityLimiter(1))
    scan = await tree.scan()

    assert scan.files.keys() == {"main.py", "nested/module/main.py", "nested/no-repository/main.py"}
    for name in ("clone", "linked", "module-linked", "shared"):
        verdict = await tree.explain(f"nested/{name}/main.py")
        assert (verdict.standing, verdict.decided_by) == (Standing.BOUNDARY, f"nested/{name}")


async def test_a_submodule_of_a_linked_worktree_belongs_to_it(git_repository: Path, tmp_path: Path) -> None:
    write(git_repository, "main.py")
    commit_all(git_repository)
    git(git_repository, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    add_submodule(tmp_path / "linked", git_repository, "module")
    tree = WorkingTree(str(tmp_path / "linked"), trio.CapacityLimiter(1))

    assert "/worktrees/" in (tmp_path / "linked/module/.git").read_text()
    assert (await tree.scan()).files.keys() == {"main.py", "module/main.py"}
