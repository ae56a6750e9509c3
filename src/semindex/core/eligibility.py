"""Which files are for the index, as far as names and sizes tell (docs/configuration.md, What is indexed).

Owns the excluded names, the allowlist of extensions and the words in which a path's standing is told. Ignore files
are :mod:`semindex.core.ignore`'s, what lies on the disk is the source tree's.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from types import MappingProxyType

from attrs import frozen

from semindex.core.filetypes import extension, handling
from semindex.core.ignore import Rule
from semindex.model.chunks import Signature
from semindex.model.errors import InvalidInput
from semindex.model.profiles import ChunkingProfile

_NAMES = (
    "node_modules bower_components .pnpm-store vendor .npm dist build out .next target bin obj .git .svn .hg .vscode"
    " .idea .turbo .output desktop .sst .cache .webkit-cache __pycache__ .pytest_cache mypy_cache .history .gradle"
    " logs tmp temp coverage .nyc_output"
)
EXCLUDED_DIRECTORIES = frozenset(_NAMES.split())
"""Directories that are never entered, at any depth below the workspace's root; compared with case."""

EXCLUDED_FILES = re.compile(r".*\.(?:swp|swo|pyc|log)|\.DS_Store|Thumbs\.db", re.DOTALL)
"""Names of files that are never indexed."""


class Standing(StrEnum):
    """Why a path is, or is not, for the index."""

    ELIGIBLE = "eligible"
    DIRECTORY = "directory"
    """A directory that is entered: the files in it are judged one by one."""
    OUTSIDE = "outside"
    MISSING = "missing"
    BOUNDARY = "boundary"
    """In a working tree or a registered workspace of its own."""
    EXCLUDED_NAME = "excluded_name"
    DOT_NAME = "dot_name"
    IGNORED = "ignored"
    TYPE = "type"
    """No indexed file type."""
    NAME = "name"
    """Not valid UTF-8."""
    LINK = "link"
    NOT_REGULAR = "not_regular"
    SIZE = "size"
    BROKEN = "broken"
    """The path cannot be looked at, though its directory can."""
    UNREADABLE = "unreadable"
    """The directory that it lies in cannot be read, or the rules that apply there."""


REASONS = MappingProxyType(
    {
        Standing.LINK: "Symbolic links are not followed.",
        Standing.NAME: "The name is not valid UTF-8.",
        Standing.NOT_REGULAR: "It is not a regular file.",
        Standing.SIZE: "The file is larger than 1 MiB.",
        Standing.BROKEN: "The file cannot be looked at.",
    }
)
"""Why a file of an indexed type is skipped; the scan and the explanation use the same words."""


@frozen
class Verdict:
    """What the rules say of one path, and why."""

    path: str
    standing: Standing
    reason: str
    """One sentence for people."""
    decided_by: str
    """The path itself, or the directory above it that settles the matter."""
    rule: Rule | None = None
    """The ignore rule that decided; also one that keeps an eligible path from being ignored."""
    signature: Signature | None = None
    """Of an eligible file, at the time of the verdict."""

    @property
    def eligible(self) -> bool:
        """Say whether the path is a file for the index."""
        return self.standing is Standing.ELIGIBLE


def name_exclusion(name: str, *, directory: bool) -> tuple[Standing, str] | None:
    """Return why no file or directory of this name is ever indexed, None if the name is no obstacle."""
    if directory and name in EXCLUDED_DIRECTORIES:
        return Standing.EXCLUDED_NAME, f"Directories named {name} are never indexed."
    if not directory and EXCLUDED_FILES.fullmatch(name):
        return Standing.EXCLUDED_NAME, f"Files named like {name} are never indexed."
    if name.startswith("."):
        return Standing.DOT_NAME, "Names that begin with a dot are never indexed."
    return None


def shown_name(path: str) -> str:
    """Return a path as it can be shown and stored: bytes that are not UTF-8 are written as ``\\xNN``."""
    return path if path.isascii() else path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


@frozen
class FileTypes:
    """The file types that one workspace indexes."""

    profile: ChunkingProfile = ChunkingProfile.EXTENDED
    allowed: frozenset[str] | None = None
    """Extensions as :func:`parse_extensions` returns them; None allows all that the profile knows."""

    def includes(self, name: str) -> bool:
        """Say whether files of this name are of an indexed type."""
        if handling(name, self.profile) is None:
            return False
        return self.allowed is None or extension(name) in self.allowed


_EXTENSION = re.compile(r"\.?([A-Za-z0-9_+#-]+)")


def parse_extensions(tokens: Iterable[str]) -> tuple[str, ...]:
    """Return an allowlist of extensions sorted, unique, in lower case, each with its dot.

    Raises InvalidInput for a token that is not a single extension, such as ``*.js``, ``src/php`` or ``.d.ts``.
    """
    extensions = set()
    for token in tokens:
        match = _EXTENSION.fullmatch(token.strip())
        if match is None:
            raise InvalidInput(f"{token!r} is not a file extension; write it like .py or py.")
        extensions.add("." + match[1].lower())
    return tuple(sorted(extensions))
