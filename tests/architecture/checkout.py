"""This checkout as the rules see it: its files, its modules and what they import, its locks."""

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = "tests/fixtures/"
"""Files of any shape on purpose; no rule applies to them."""


@cache
def files() -> tuple[str, ...]:
    """Every file that is in git, or would be after ``git add``, fixtures apart; relative paths, sorted."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    paths = listing.stdout.decode().rstrip("\0").split("\0")
    return tuple(sorted(path for path in set(paths) if not path.startswith(FIXTURES) and (ROOT / path).is_file()))


def is_text(path: str) -> bool:
    """Whether a file is text by git's own measure: no NUL byte near its start."""
    with (ROOT / path).open("rb") as file:
        return b"\0" not in file.read(8000)


def modules(*roots: str) -> list[str]:
    """The Python files below some top-level directories."""
    return [path for path in files() if path.endswith(".py") and path.split("/")[0] in roots]


def imported_names(path: str) -> Iterator[str]:
    """The top-level names that a module imports, anywhere in it, from outside of its own package."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def project() -> dict[str, Any]:
    """The content of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins(name: str) -> dict[str, str]:
    """What a lock file pins: normalised name → version."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, flags=re.MULTILINE))
