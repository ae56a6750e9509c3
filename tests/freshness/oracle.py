"""What a working tree holds for the index, worked out without the product: a plain walk, and git's ignore rules.

It knows the rules of docs/configuration.md (What is indexed), as far as the moves of these tests touch them.
"""

import os
import shutil
import stat
import subprocess
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from attrs import frozen

SUFFIXES = frozenset({".py", ".yaml", ".md"})
"""Of indexed types: the moves make files of these and of no others."""
NEVER_ENTERED = "build"
MAX_BYTES = 1 << 20
IGNORE_FILES = (".gitignore", ".kilocodeignore")
"""In the order in which they are read."""


@frozen
class Oracle:
    """Says what is for the index in the working trees of one repository."""

    roots: Collection[Path]
    """All registered workspaces: none is part of another."""
    excludes: Path
    """Git's own ignore file of the repository."""
    scratch: Path
    """A directory of the oracle's own."""

    def texts(self, root: Path) -> dict[str, str]:
        """Return path → text of every file below a root that a search has to find."""
        entries = list(self._entries(root))
        found = {path: data for path in entries if (data := _content(root, path)) is not None}
        ignored = self._ignored(root, [path for path in entries if path.endswith(IGNORE_FILES)], found)
        return {path: data.decode(errors="replace") for path, data in found.items() if path not in ignored}

    def _entries(self, root: Path) -> Iterator[str]:
        """Yield every entry that is no directory, links included."""
        for directory, below, files in os.walk(root):
            below[:] = [name for name in below if self._is_entered(Path(directory, name))]
            yield from (os.path.relpath(os.path.join(directory, file), root) for file in files)

    def _is_entered(self, directory: Path) -> bool:
        has_name = not directory.name.startswith(".") and directory.name != NEVER_ENTERED and _is_text(directory.name)
        return has_name and directory not in self.roots and not directory.is_symlink()

    def _ignored(self, root: Path, rules: Iterable[str], paths: Iterable[str]) -> set[str]:
        """Ask git, in a copy of the ignore files alone, where the two kinds of a directory are one."""
        copy = self.scratch / root.name
        if not copy.exists():
            subprocess.run(["git", "init", "--quiet", str(copy)], check=True)
        for entry in copy.iterdir():
            if entry.name == ".gitignore":
                entry.unlink()
            elif entry.name != ".git":
                shutil.rmtree(entry)
        shutil.copyfile(self.excludes, copy / ".git/info/exclude")
        for path in sorted(rules):  # the order of the two names, too
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            with (copy / path).with_name(".gitignore").open("ab") as file:
                file.write((root / path).read_bytes() + b"\n")
        asked = subprocess.run(
            ["git", "check-ignore", "--no-index", "-z", "--stdin"],
            cwd=copy,
            input=b"\0".join(map(os.fsencode, paths)),
            capture_output=True,
            check=False,
        )
        assert asked.returncode in (0, 1), asked.stderr
        return {os.fsdecode(path) for path in asked.stdout.split(b"\0")}


def _content(root: Path, path: str) -> bytes | None:
    """Return what a file holds, None if no file of that name and kind is ever for the index."""
    name = os.path.basename(path)
    if os.path.splitext(name)[1] not in SUFFIXES or name.startswith(".") or not _is_text(name):
        return None
    status = os.lstat(root / path)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
        return None
    data = (root / path).read_bytes()
    return None if b"\0" in data[:8000] else data


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
