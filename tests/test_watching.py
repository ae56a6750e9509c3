"""From the kernel to the index, in a whole cell: what happens on disk is taken in, though nobody searches or sweeps."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import trio

from semindex.engine.workspace import Workspace
from semindex.model.ids import file_hash
from semindex.model.status import FileState, State
from semindex.testing.cells import PATIENCE, config_below, indexed, running_cell, workspace_of

Files = dict[str, str]
"""Path → text."""


def held(workspace: Workspace) -> dict[str, str | None]:
    """What the index holds: path → hash of the text."""
    return {record.path: record.file_hash for record in workspace.index.table if record.state is FileState.INDEXED}


async def until_held(workspace: Workspace, files: Files) -> None:
    """Wait until the index holds exactly these files, and has nothing left to do."""
    wanted = {path: file_hash(text) for path, text in files.items()}
    with trio.fail_after(PATIENCE):
        while held(workspace) != wanted or workspace.status().state is not State.INDEXED:
            await workspace.changes.beyond(workspace.changes.value)


class Tree:
    """A git repository, and what an index of it should hold."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: Files = {}

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        self.files[path] = text

    def edit_in_place(self) -> None:
        self.write("src/a.py", "def edited() -> int:\n    return 1\n")

    def save_atomically(self) -> None:
        self.write("src/b.py", "def saved() -> int:\n    return 2\n")
        (self.root / "src/.b.py.tmp").write_text(self.files["src/b.py"])
        (self.root / "src/.b.py.tmp").replace(self.root / "src/b.py")

    def make_deep_directories(self) -> None:
        for number in range(20):
            self.write(f"deep/{number}/er/file.py", f"x = {number}\n")

    def edit_in_deep_directories(self) -> None:
        self.write("deep/7/er/file.py", "x = 'seven'\n")

    def move_a_directory(self) -> None:
        (self.root / "deep").rename(self.root / "moved")
        self.files = {path.replace("deep/", "moved/"): text for path, text in self.files.items()}

    def edit_in_the_moved_directory(self) -> None:
        self.write("moved/3/er/file.py", "x = 'three'\n")

    def delete_a_directory(self) -> None:
        shutil.rmtree(self.root / "moved")
        self.files = {path: text for path, text in self.files.items() if not path.startswith("moved/")}

    def ignore_a_file(self) -> None:
        (self.root / ".git/info/exclude").write_text("b.py\n")
        self.hidden = self.files.pop("src/b.py")

    def ignore_it_no_longer(self) -> None:
        (self.root / ".git/info/exclude").write_text("")
        self.files["src/b.py"] = self.hidden

    def switch_to_a_branch_with_many_files(self) -> None:
        self.git("switch", "many")
        self.files |= {f"many/{number}.py": f"x = {number}\n" for number in range(1500)}

    def switch_back(self) -> None:
        self.git("switch", "main")
        self.files = {path: text for path, text in self.files.items() if not path.startswith("many/")}

    def leave_and_come_back(self) -> None:
        self.root.rename(self.root.parent / "away")
        (self.root.parent / "away/src/new.py").write_text("x = 'written elsewhere'\n")
        self.files["src/new.py"] = "x = 'written elsewhere'\n"
        (self.root.parent / "away").rename(self.root)

    def edit_after_that(self) -> None:
        self.write("src/a.py", "def edited_again() -> int:\n    return 3\n")

    def git(self, *arguments: str, text: str = "") -> None:
        subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True, input=text.encode())

    def prepare(self) -> None:
        """Commit two files to one branch, and many to another without ever writing them here."""
        many = "".join(f"M 644 inline many/{n}.py\ndata <<.\nx = {n}\n.\n" for n in range(1500))
        self.write("src/a.py", "def first() -> int:\n    return 0\n")
        self.write("src/b.py", "def second() -> int:\n    return 0\n")
        self.git("add", ".")
        self.git("commit", "--message", "two files")
        commit = "commit refs/heads/many\ncommitter A Tester <tester@example.invalid> 0 +0000\ndata 0\n"
        self.git("fast-import", text=f"{commit}from refs/heads/main^0\n{many}\n")

    def steps(self) -> list[Callable[[], None]]:
        return [
            self.edit_in_place,
            self.save_atomically,
            self.make_deep_directories,
            self.edit_in_deep_directories,
            self.move_a_directory,
            self.edit_in_the_moved_directory,
            self.delete_a_directory,
            self.ignore_a_file,
            self.ignore_it_no_longer,
            self.switch_to_a_branch_with_many_files,
            self.switch_back,
            self.leave_and_come_back,
            self.edit_after_that,
        ]


async def test_what_happens_on_disk_reaches_the_index_by_itself(tmp_path: Path, git_repository: Path) -> None:
    tree = Tree(git_repository)
    tree.prepare()
    async with running_cell(config_below(tmp_path, tmp_path)) as cell:
        await indexed(cell, "r1", git_repository)
        workspace = workspace_of(cell, "r1")
        await until_held(workspace, tree.files)
        for step in tree.steps():
            step()
            await until_held(workspace, tree.files)

        assert (await cell.status()).watchers == 1
        assert workspace.status().last_error is None
