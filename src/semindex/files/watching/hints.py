"""What a change in a directory hints at, and the bounded box in which hints wait.

Owns which names are worth telling: those of files for the index, and those that decide what is for the index. A hint
never decides anything by itself; whoever takes it looks at the disk.
"""

from enum import Enum, auto

import trio

from semindex.core.eligibility import FileTypes, name_exclusion, shown_name
from semindex.core.ignore import IGNORE_FILES
from semindex.files.git import GIT
from semindex.ports import Changes

MAX_PATHS = 1000
"""Paths that wait in one box; above that a sweep is cheaper than looking at each, and memory stays bounded."""

RULING_NAMES = frozenset({*IGNORE_FILES, GIT})
"""Entries of a directory that decide on others: rules, and what makes it a working tree of its own."""

_TYPES = FileTypes()
"""The widest choice of file types: what a workspace narrows further, its source tree leaves out."""


class Hint(Enum):
    """What is to be looked at after a change."""

    NOTHING = auto()
    FILE = auto()
    """The file alone."""
    TREE = auto()


def hint_of(name: str, *, directory: bool, entry: bool) -> Hint:
    """Return what a change of one entry of a watched directory hints at.

    ``entry`` says that the entry itself came, went or was renamed; otherwise its content or attributes changed.
    """
    if name in RULING_NAMES:
        return Hint.TREE
    if name_exclusion(name, directory=directory) is not None:
        return Hint.NOTHING
    if directory:
        return Hint.TREE
    if not _TYPES.includes(name):
        return Hint.NOTHING
    if shown_name(name) != name:
        # Not valid UTF-8: it is skipped whatever it holds, but it has to be listed among the skipped, or no longer.
        return Hint.TREE if entry else Hint.NOTHING
    return Hint.FILE


class Inbox:
    """Hints for one workspace that wait to be taken; paths beyond a bound collapse into a rescan."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._rescan = False
        self._arrived = trio.Event()

    def put(self, path: str) -> None:
        """Add the path of a file."""
        if self._rescan:
            return
        self._paths.add(path)
        if len(self._paths) > MAX_PATHS:
            self.put_rescan()
        else:
            self._arrived.set()

    def put_rescan(self) -> None:
        """Note that paths cannot tell all that changed."""
        self._paths.clear()
        self._rescan = True
        self._arrived.set()

    async def take(self) -> Changes:
        """Wait until there is something, and return all that there is. A cancelled call takes nothing."""
        await self._arrived.wait()
        changes = Changes(frozenset(self._paths), self._rescan)
        self._paths.clear()
        self._rescan = False
        self._arrived = trio.Event()
        return changes
