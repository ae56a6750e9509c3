"""The list of packages: what is asked of which ecosystem, where a download lies, and downloading itself."""

import subprocess
import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from attrs import frozen

from semindex.model.errors import InvalidInput


class Ecosystem(StrEnum):
    """Where a package comes from; the value is the word of the package list and of DATA.tsv."""

    PYPI = "pypi"
    NPM = "npm"
    DEB = "deb"
    """Debian binary packages: Go, Rust, Ruby and PHP ship their sources in them."""
    DEBSRC = "debsrc"


@frozen
class Request:
    """One line of the package list."""

    ecosystem: Ecosystem
    name: str
    heldout: bool
    """Whether the package serves evaluation only."""

    @property
    def key(self) -> str:
        """The name under which pairs refer to the package."""
        return f"{self.ecosystem}:{self.name}"

    def folder(self, work: Path) -> Path:
        """Return where the package's files lie once they are downloaded."""
        return work / "packages" / self.ecosystem / self.name.replace("/", "+")


_COMMANDS: Final[dict[Ecosystem, Callable[[str], list[str]]]] = {
    Ecosystem.PYPI: lambda name: (
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", ".", name]
    ),
    Ecosystem.NPM: lambda name: ["npm", "pack", "--silent", name],
    Ecosystem.DEB: lambda name: ["apt-get", "download", "-q", name],
    Ecosystem.DEBSRC: lambda name: ["apt-get", "source", "--download-only", "-q", name],
}
_TIMEOUT = 300
"""Seconds for one package."""


def read_requests(path: Path) -> list[Request]:
    """Read lines of "ecosystem name [heldout]"; raises InvalidInput naming the first line that is something else."""
    requests = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match line.partition("#")[0].split():
            case []:
                continue
            case [("pypi" | "npm" | "deb" | "debsrc") as ecosystem, name, *use] if use in ([], ["heldout"]):
                requests.append(Request(Ecosystem(ecosystem), name, bool(use)))
            case _:
                raise InvalidInput(f'{path.name}, line {number}: expected "ecosystem name [heldout]".')
    return requests


def download(requests: Iterable[Request], work: Path) -> None:
    """Fetch the packages that are not there yet with each ecosystem's own client; one that fails is left out."""
    for request in requests:
        folder = request.folder(work)
        if not folder.exists():
            trouble = _fetch(_COMMANDS[request.ecosystem](request.name), folder)
            print(request.ecosystem, request.name, trouble or "ok", flush=True)


def _fetch(command: list[str], folder: Path) -> str:
    """Run a client in a folder of its own, which takes its place if the client succeeds; return what went wrong."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as scratch:
        part = Path(scratch) / "part"
        part.mkdir()
        try:
            subprocess.run(command, cwd=part, capture_output=True, timeout=_TIMEOUT, check=True, text=True)
        except subprocess.CalledProcessError as error:
            return f"failed: {error.stderr.strip().splitlines()[-1:]}"
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"failed: {error}"
        part.rename(folder)
    return ""
