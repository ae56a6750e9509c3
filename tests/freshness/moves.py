"""What people and agents do to a repository with worktrees: each move is one such thing, on real files with real git.

A move chooses what it works on by numbers, among what is there when its turn comes, so that every program of moves can
be played, and a shorter one made of it.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

from attrs import define, field, frozen

from tests.freshness.oracle import IGNORE_FILES, MAX_BYTES, NEVER_ENTERED, SUFFIXES

COMMON = "everywhere"
"""A word that every file holds."""
TOKEN = re.compile(r"worthwhile\d{6}")
"""Words that only one text holds, which may be that of several files."""
MAX_FILES = 24
"""In one tree: an answer of fifty hits shows all of them."""
BALLAST = "ballast"
"""Directory of files that nobody touches, each too short for a chunk: they make every look at the tree take time."""
BALLAST_FILES = 100
DIRECTORIES = ("", "alpha", "beta", "alpha/deep", "gamma/very/deep")
"""Where new files go."""


def git_environment(home: Path) -> dict[str, str]:
    """Return the variables for a git that nobody's configuration reaches."""
    return {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "A Tester",
        "GIT_AUTHOR_EMAIL": "tester@example.invalid",
        "GIT_COMMITTER_NAME": "A Tester",
        "GIT_COMMITTER_EMAIL": "tester@example.invalid",
    }


@frozen
class Move:
    """One move, and how long whoever makes it rests afterwards."""

    name: str
    """One of :data:`MOVES`."""
    tree: int = 0
    pick: int = 0
    other: int = 0
    pause: float = 0.0
    """In seconds."""


@define
class Repository:
    """A primary checkout, a worktree beside it, and one that lies in it. All of it blocks."""

    directory: Path
    note: Callable[[], None] = lambda: None
    """Called between the parts of a move that passes through more than two states."""
    _numbers: Iterator[int] = field(factory=count)

    @property
    def primary(self) -> Path:
        """Return the primary checkout."""
        return self.directory / "primary"

    @property
    def linked(self) -> Path:
        """Return the worktree beside it."""
        return self.directory / "linked"

    @property
    def nested(self) -> Path:
        """Return the worktree in it."""
        return self.primary / "trees" / "nested"

    @property
    def excludes(self) -> Path:
        """Return git's own ignore file, which counts in all three."""
        return self.primary / ".git/info/exclude"

    @property
    def trees(self) -> tuple[Path, Path, Path]:
        """Return all three, the primary first."""
        return self.primary, self.linked, self.nested

    def make(self) -> None:
        """Make the repository, with two branches for each working tree."""
        self.primary.mkdir(parents=True)
        self.git(self.primary, "init", "--quiet", "--initial-branch=main")
        self.write_excludes("")
        for number in range(BALLAST_FILES):
            place = self.primary / BALLAST / f"part{number % 10}" / f"file{number}.yaml"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(f"number: {number}\n")
        for number in range(6):
            self.write(self.primary / DIRECTORIES[number % 3] / f"first{number}.py")
        self.commit(self.primary)
        self.git(self.primary, "checkout", "--quiet", "-b", "primary-other")
        for number in range(3):
            self.write(self.primary / DIRECTORIES[number] / f"first{number}.py")
        self.write(self.primary / "gamma/other.yaml")
        self.commit(self.primary)
        self.git(self.primary, "checkout", "--quiet", "main")
        for tree in (self.linked, self.nested):
            self.git(self.primary, "branch", f"{tree.name}-other", "primary-other")
            self.git(self.primary, "worktree", "add", "--quiet", "-b", tree.name, str(tree))

    def play(self, move: Move) -> None:
        """Make a move."""
        MOVES[move.name](self, self.trees[move.tree % 3], move.pick, move.other)

    def git(self, tree: Path, *arguments: str) -> bool:
        """Run git in a tree; return whether it did what it was told, which it may refuse."""
        return subprocess.run(["git", *arguments], cwd=tree, capture_output=True, check=False).returncode == 0

    def commit(self, tree: Path) -> None:
        """Commit everything, also nothing."""
        self.git(tree, "add", "--all")
        self.git(tree, "commit", "--quiet", "--allow-empty", "--message=All of it")

    def text(self) -> str:
        """Return a text like no other, and as long as any other."""
        token = f"worthwhile{next(self._numbers):06}"
        return f"# {token} {token} {token} {COMMON}\n" * 2

    def write(self, path: Path) -> None:
        """Write a new text into a file, in place, making its directories if need be."""
        if not path.parent.is_dir():
            path.parent.mkdir(parents=True)
        path.write_text(self.text())

    def write_excludes(self, pattern: str) -> None:
        """Write git's own file of excludes; the worktree in the primary is to be no part of its commits."""
        self.excludes.write_text(f"/trees/\n{pattern}\n")

    def files(self, tree: Path) -> list[Path]:
        """Return every file of an indexed type, whatever it is now: a link, too large, ignored."""
        found = []
        for directory, below, files in os.walk(tree):
            below[:] = [name for name in below if self._is_free(Path(directory, name))]
            found += [Path(directory, file) for file in files if Path(file).suffix in SUFFIXES]
        return sorted(found, key=os.fsencode)

    def _is_free(self, directory: Path) -> bool:
        return not directory.name.startswith(".") and directory.name != BALLAST and directory != self.nested

    def directories(self, tree: Path) -> list[Path]:
        """Return every directory below the root that is free to go."""
        parents = {parent for file in self.files(tree) for parent in file.relative_to(tree).parents}
        links = [entry for entry in tree.iterdir() if entry.is_symlink() and entry.is_dir()]
        return sorted([*(tree / parent for parent in parents if parent.parts), *links])

    def file(self, tree: Path, pick: int) -> Path:
        """Return one of the files, a new one if there is none."""
        if not (files := self.files(tree)):
            self.write(tree / "last.py")
            files = [tree / "last.py"]
        return files[pick % len(files)]

    def directory_of(self, tree: Path, pick: int) -> Path:
        """Return one of the directories, a new one if there is none."""
        if not (directories := self.directories(tree)):
            self.write(tree / "alpha/last.py")
            directories = [tree / "alpha"]
        return directories[pick % len(directories)]


def create(repository: Repository, tree: Path, pick: int, other: int) -> None:
    """Make new files, in new directories now and then."""
    for number in range(min(1 + other % 3, MAX_FILES - len(repository.files(tree)))):
        suffix = sorted(SUFFIXES)[(other + number) % len(SUFFIXES)]
        place = tree / DIRECTORIES[(pick + number) % len(DIRECTORIES)] / f"new{other % 50}{suffix}"
        if not any(parent.is_file() or parent.is_symlink() for parent in (place, *place.parents)):
            remove(place)
            repository.write(place)


def copy(repository: Repository, tree: Path, pick: int, other: int) -> None:
    """Copy a file to another name, its times included."""
    source = repository.file(tree, pick)
    if len(repository.files(tree)) < MAX_FILES and source.is_file():
        shutil.copy2(source, source.with_name(f"copy{other % 9}.py"))


def edit(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Write a file anew, as long as before."""
    file = repository.file(tree, pick)
    remove(file)
    repository.write(file)


def edit_in_place(repository: Repository, tree: Path, pick: int, other: int) -> None:
    """Write a file several times within the same second, each time as long as before."""
    file = repository.file(tree, pick)
    if file.is_symlink():
        file.unlink()
    for _ in range(1 + other % 10):
        repository.write(file)
        repository.note()


def edit_keeping_times(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Write a file anew, and set its times back."""
    file = repository.file(tree, pick)
    if not file.is_symlink():
        status = file.stat()
        repository.write(file)
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def save_atomically(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Write a new file beside the old one, and rename it over that."""
    file = repository.file(tree, pick)
    beside = file.with_name(f".{file.stem}.saving")
    repository.write(beside)
    beside.replace(file)


def append(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Add to a file; one that has become long is written anew."""
    file = repository.file(tree, pick)
    if not file.is_symlink():
        with file.open("r+") as opened:
            opened.seek(0, os.SEEK_END if file.stat().st_size < 500 else os.SEEK_SET)
            opened.write(repository.text())
            opened.truncate()


def delete(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Delete a file."""
    repository.file(tree, pick).unlink()


def rename(repository: Repository, tree: Path, pick: int, other: int) -> None:
    """Rename a file, over another one now and then, or into another type."""
    file = repository.file(tree, pick)
    file.replace(file.with_name(("moved.py", "moved.yaml", "moved.txt.md", ".hidden.py")[other % 4]))


def rename_over(repository: Repository, tree: Path, pick: int, other: int) -> None:
    """Rename a file over another one."""
    repository.file(tree, pick).replace(repository.file(tree, other))


def swap(repository: Repository, tree: Path, pick: int, other: int) -> None:
    """Exchange the names of two files, their times and lengths included."""
    one, two = repository.file(tree, pick), repository.file(tree, other)
    aside = one.with_name(".aside")
    one.rename(aside)
    if two != one:
        repository.note()
        two.rename(one)
        repository.note()
    aside.rename(two)


def move_directory(repository: Repository, tree: Path, pick: int, other: int) -> None:
    """Rename a directory, to a name that keeps it out of the index now and then."""
    directory = repository.directory_of(tree, pick)
    target = directory.with_name(("alpha", "beta", "elsewhere", NEVER_ENTERED)[other % 4])
    if not os.path.lexists(target):
        directory.rename(target)


def delete_directory(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Delete a directory with all that is in it."""
    remove(repository.directory_of(tree, pick))


def touch(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Give a file the present time."""
    os.utime(repository.file(tree, pick), follow_symlinks=False)


def chmod(repository: Repository, tree: Path, pick: int, other: int) -> None:
    """Change who may do what with a file."""
    file = repository.file(tree, pick)
    if not file.is_symlink():
        file.chmod((0o644, 0o755, 0o600)[other % 3])


def outgrow(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Let a file grow beyond what is indexed; a file that has is made small again."""
    file = repository.file(tree, pick)
    if not file.is_symlink():
        if file.stat().st_size > MAX_BYTES:
            repository.write(file)
        else:
            with file.open("a") as opened:
                opened.write("# \n" * (MAX_BYTES // 3))


def become_binary(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Put a NUL before a text; take it away if there is one."""
    file = repository.file(tree, pick)
    if not file.is_symlink():
        data = file.read_bytes()
        file.write_bytes(data[1:] if data.startswith(b"\0") else b"\0" + data)


def become_directory(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Replace a file by a directory of its name."""
    file = repository.file(tree, pick)
    file.unlink()
    repository.write(file / "inner.py")


def become_file(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Replace a directory by a file; its name may be one of an indexed type."""
    directory = repository.directory_of(tree, pick)
    remove(directory)
    repository.write(directory)


def become_link(repository: Repository, tree: Path, pick: int, other: int) -> None:
    """Replace a file by a link to another one; a link is replaced by a file."""
    file, target = repository.file(tree, pick), repository.file(tree, other)
    is_link = file.is_symlink()
    file.unlink()
    if is_link:
        repository.write(file)
    else:
        file.symlink_to(os.path.relpath(target, file.parent))


def link_directory(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Put a link in the place of a directory that moves aside; a link to a directory gives way to it."""
    directory = repository.directory_of(tree, pick)
    if directory.is_symlink():
        target = directory.resolve()
        directory.unlink()
        if target.is_relative_to(tree):
            target.rename(directory)
    elif not os.path.lexists(target := tree / "aside"):
        directory.rename(target)
        directory.symlink_to(target)


def leave_unicode(repository: Repository, tree: Path, pick: int, _other: int) -> None:
    """Give a file a name that is not UTF-8; a file that has such a name gets another."""
    file = repository.file(tree, pick)
    if file.is_symlink():
        return
    is_odd = any("\udc80" <= character <= "\udcff" for character in file.name)
    file.replace(file.with_name("even.py" if is_odd else "odd\udcff.py"))


def change_rules(repository: Repository, tree: Path, pick: int, other: int) -> None:
    """Write an ignore file, at the root or below, or delete it."""
    places = [tree, *(place for place in repository.directories(tree) if not place.is_symlink())]
    rules = places[pick % len(places)] / IGNORE_FILES[other % 2]
    if rules.exists():
        rules.unlink()
        return
    file, directory = repository.file(tree, other), repository.directory_of(tree, other)
    patterns = (file.name, f"{directory.name}/", "*.py\n!first*.py", f"/{file.name}", f"*\n!{file.name}", "**/deep/*")
    rules.write_text(patterns[(pick + other) % len(patterns)], errors="surrogateescape")


def change_excludes(repository: Repository, tree: Path, pick: int, other: int) -> None:
    """Write git's own excludes, which apply in all three trees."""
    repository.write_excludes("" if other % 2 else ("*.yaml", repository.directory_of(tree, pick).name)[pick % 2])


def adopt(repository: Repository, tree: Path, pick: int, other: int) -> None:
    """Take a file over from another of the trees, with its times."""
    source = repository.trees[other % 3]
    file = repository.file(source, pick)
    place = tree / file.relative_to(source)
    if file.is_file() and place.parent.is_dir() and source != tree and len(repository.files(tree)) < MAX_FILES:
        remove(place)
        shutil.copy2(file, place)


def commit(repository: Repository, tree: Path, _pick: int, _other: int) -> None:
    """Commit everything."""
    repository.commit(tree)


def restore(repository: Repository, tree: Path, _pick: int, other: int) -> None:
    """Go back to what was committed, by one of the two ways."""
    repository.git(tree, *(("checkout", "--", ".") if other % 2 else ("reset", "--quiet", "--hard")))


def switch(repository: Repository, tree: Path, _pick: int, other: int) -> None:
    """Check the tree's other branch out, by force now and then; git may refuse."""
    own = "main" if tree == repository.primary else tree.name
    head = subprocess.check_output(["git", "rev-parse", "--abbrev-ref", "HEAD"], cwd=tree, text=True).strip()
    target = f"{tree.name}-other" if head == own else own
    repository.git(tree, "checkout", "--quiet", *(["--force"] if other % 2 else []), target)


def reset(repository: Repository, tree: Path, _pick: int, other: int) -> None:
    """Make the branch the same as another tree's."""
    repository.git(tree, "reset", "--quiet", "--hard", ("main", "linked", "nested", "primary-other")[other % 4])


def merge(repository: Repository, tree: Path, _pick: int, other: int) -> None:
    """Merge another branch, and leave the conflicts in the files."""
    repository.git(tree, "merge", "--quiet", "--no-edit", ("main", "linked", "nested")[other % 3])


def stash(repository: Repository, tree: Path, _pick: int, _other: int) -> None:
    """Put the changes away."""
    repository.git(tree, "stash", "push", "--quiet", "--include-untracked")


def unstash(repository: Repository, tree: Path, _pick: int, _other: int) -> None:
    """Bring changes back that somebody put away, in whichever tree."""
    repository.git(tree, "stash", "pop", "--quiet")


def remove(path: Path) -> None:
    """Delete whatever is at a path."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


MOVES: dict[str, Callable[[Repository, Path, int, int], None]] = {
    move.__name__: move
    for move in (
        *(create, copy, edit, edit_in_place, edit_keeping_times, save_atomically, append, delete),
        *(rename, rename_over, swap, move_directory, delete_directory, touch, chmod),
        *(outgrow, become_binary, become_directory, become_file, become_link, link_directory, leave_unicode),
        *(change_rules, change_excludes, adopt, commit, restore, switch, reset, merge, stash, unstash),
    )
}
"""By name."""
FREQUENT = ("create", "edit", "edit_in_place", "save_atomically", "switch")
"""Made more often than others: what is done most, and what keeps trees from running empty."""
