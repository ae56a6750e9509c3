"""Directories as people name them."""

import os
from pathlib import Path

import pytest
import trio

from semindex.files.roots import MAX_PATH_BYTES, LocalPlaces, resolve_workspace_root, root_identity
from semindex.model.errors import PathRefused, WorkspaceUnavailable
from semindex.model.places import Place
from tests.files.repositories import commit_all, git, write


def test_a_root_is_canonical(tmp_path: Path) -> None:
    (tmp_path / "real/project").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")

    assert resolve_workspace_root(f"{tmp_path}/link//project/.") == f"{tmp_path}/real/project"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("", "not absolute"),
        ("project", "not absolute"),
        ("~/project", "not absolute"),
        ("{here}/gone", "There is no directory"),
        ("{here}/file", "is not a directory"),
        ("{here}/file/below", "is not a directory"),
        ("{here}/loop", "Too many levels of symbolic links"),
        ("{here}/a/../b", r"holds a '\.\.'"),
        ("{here}/\0", "character that no path can have"),
        ("{here}/\ud800", "character that no path can have"),
        ("/" + "a/" * MAX_PATH_BYTES, "longer than"),
        ("{here}/" + "a" * 300, "File name too long"),
        ("{here}/raw", r"bad\\xff is not valid UTF-8"),
    ],
)
def test_a_path_that_cannot_be_a_root_is_refused_with_the_reason(tmp_path: Path, path: str, sentence: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    raw = os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff")
    os.mkdir(raw)
    os.symlink(raw, tmp_path / "raw")
    with pytest.raises(PathRefused, match=sentence) as refused:
        resolve_workspace_root(path.replace("{here}", str(tmp_path)))

    assert str(refused.value).endswith(".")


def test_the_whole_disk_and_the_home_directory_have_to_be_forced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to("home")
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    for path, canonical in (("/", "/"), (str(tmp_path / "home"), str(tmp_path / "home"))):
        with pytest.raises(PathRefused, match="or say --force"):
            resolve_workspace_root(path)
        assert resolve_workspace_root(path, force=True) == canonical


def test_the_identity_of_a_root_changes_when_it_is_replaced(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    before = root_identity(str(root))
    root.rename(tmp_path / "moved")
    root.mkdir()

    assert root_identity(str(root)) != before
    assert root_identity(str(tmp_path / "moved")) == before
    with pytest.raises(WorkspaceUnavailable, match="No such file"):
        root_identity(str(tmp_path / "gone"))


def test_a_root_below_a_directory_that_became_a_link_is_another_directory(tmp_path: Path) -> None:
    (tmp_path / "allowed/project").mkdir(parents=True)
    (tmp_path / "elsewhere/project").mkdir(parents=True)
    (tmp_path / "allowed").rename(tmp_path / "moved")
    (tmp_path / "allowed").symlink_to("elsewhere")

    with pytest.raises(WorkspaceUnavailable, match=r"leads to .*/elsewhere/project by a link"):
        root_identity(str(tmp_path / "allowed/project"))


async def test_a_place_tells_its_repository(git_repository: Path, tmp_path: Path) -> None:
    write(git_repository, "src/a.py")
    commit_all(git_repository)
    git(git_repository, "worktree", "add", "--quiet", "-b", "topic", "linked")
    places, top = LocalPlaces(trio.CapacityLimiter(1)), str(git_repository)

    assert await places.directory(top) == Place(top, None, "main", (top,))
    assert await places.directory(f"{top}/src") == Place(f"{top}/src", None, None, (top,))
    assert await places.registrable(f"{top}/linked", force=False) == Place(
        f"{top}/linked", top, "topic", (f"{top}/linked", top)
    )
    assert await places.directory(str(tmp_path)) == Place(str(tmp_path), None, None, ())


async def test_a_place_that_is_to_be_indexed_is_neither_the_disk_nor_the_home_directory() -> None:
    places = LocalPlaces(trio.CapacityLimiter(1))
    home = os.environ["HOME"]

    assert (await places.directory("/")).path == "/"
    with pytest.raises(PathRefused, match="whole file system"):
        await places.registrable("/", force=False)
    with pytest.raises(PathRefused, match="home directory"):
        await places.registrable(home, force=False)
    assert (await places.registrable("/", force=True)).path == "/"
