"""Real git repositories for the tests of this package."""

import subprocess
from pathlib import Path


def git(directory: Path, *arguments: str) -> str:
    """Run git in a directory."""
    done = subprocess.run(["git", *arguments], cwd=directory, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def commit_all(directory: Path) -> None:
    """Commit all files, and something if there are none."""
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--allow-empty", "--message", "All of it")


def write(root: Path, *paths: str, text: str = "x = 1\n") -> None:
    """Write files of the same content."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def add_submodule(directory: Path, source: Path, path: str) -> None:
    """Add a repository on this disk as a submodule."""
    git(directory, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(source), path)
