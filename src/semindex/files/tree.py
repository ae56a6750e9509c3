"""The working tree of one workspace on the local file system.

Owns the crossing into threads: nothing of the disk is touched on the event loop. Implements
:class:`semindex.ports.SourceTree`.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar, TypeVarTuple, Unpack

import trio

from semindex.core.eligibility import FileTypes, Standing, Verdict
from semindex.core.judge import Judge
from semindex.files.listing import Lister
from semindex.files.reading import MAX_FILE_BYTES, decode, read_regular
from semindex.files.roots import root_identity
from semindex.files.rules import IgnoreRules
from semindex.files.sight import DiskSight
from semindex.files.walk import Memory, Walk
from semindex.model.chunks import FileProblem, Signature
from semindex.model.errors import WorkspaceUnavailable
from semindex.model.ids import file_hash
from semindex.ports import TreeScan

MAX_FILES = 200_000
"""Default for the number of eligible files of one workspace."""

MEMORY_SECONDS = 600.0
"""After so long a walk lists every directory again: not every network file system keeps its directories' times."""

_BATCH = 32
"""Files hashed in one visit to a thread."""

_PARALLEL = 2
"""Threads that one call hashes with: more wait for the interpreter, and make the event loop wait for it."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class WorkingTree:
    """A source tree on disk; implements :class:`semindex.ports.SourceTree`.

    Its threads count against the limiter that it is given, which all trees of a cell share.
    """

    def __init__(
        self,
        root: str,
        limiter: trio.CapacityLimiter,
        *,
        types: FileTypes | None = None,
        exclude: Sequence[str] = (),
        boundaries: Callable[[], Collection[str]] = tuple,
        max_files: int = MAX_FILES,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        """``root`` is canonical (see :func:`semindex.files.roots.resolve_workspace_root`).

        ``exclude`` are ignore patterns of the configuration; ``boundaries`` gives, for each scan anew, the absolute
        paths of registered workspaces; ``environ`` is where git's own configuration is looked for.
        """
        self._lister = Lister(root.rstrip("/") + "/", types or FileTypes(), IgnoreRules(root, exclude, environ))
        self._root = root
        self._limiter = limiter
        self._boundaries = boundaries
        self._max_files = max_files
        self._memory = Memory()
        self._remembers_since = -MEMORY_SECONDS

    async def scan(self) -> TreeScan:
        """Walk the tree by the rules of docs/configuration.md (What is indexed).

        Raises WorkspaceUnavailable if the root is gone or cannot be read, TooManyFiles.
        """
        began = trio.current_time()
        if began - self._remembers_since >= MEMORY_SECONDS:
            self._memory, self._remembers_since = Memory(), began
        walk = Walk(
            self._lister,
            self._memory,
            boundaries=tuple(self._boundaries()),
            max_files=self._max_files,
            checkpoint=trio.from_thread.check_cancelled,
        )
        scan, self._memory = await self._in_thread(walk.run)
        return scan

    async def look(self, paths: Sequence[str]) -> TreeScan:
        """Tell of these paths alone what a scan would tell of them; those in neither mapping are not for the index now.

        Raises WorkspaceUnavailable if the root is gone or cannot be read.
        """
        return await self._in_thread(self._look, self._judge(), paths)

    async def explain(self, path: str) -> Verdict:
        """Return why a path below the root is, or is not, for the index."""
        return await self._in_thread(self._judge().verdict, path)

    async def hashes(self, paths: Sequence[str]) -> dict[str, str | None]:
        """Read each file now and return path → file hash; None where there is no such readable, eligible file."""
        judge = self._judge()
        hashes: dict[str, str | None] = dict.fromkeys(paths)

        starts = iter(range(0, len(paths), _BATCH))

        async def hash_batches() -> None:
            for start in starts:
                hashes.update(await self._in_thread(self._hash, judge, paths[start : start + _BATCH]))

        async with trio.open_nursery() as nursery:
            for _ in range(_PARALLEL):
                nursery.start_soon(hash_batches)
        return hashes

    async def _in_thread(self, work: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        # A file system that hangs must not hold up whoever gives up waiting for it: a cancelled thread is left to
        # itself, ends at its next checkpoint, and changes nothing that is used later.
        return await trio.to_thread.run_sync(work, *arguments, abandon_on_cancel=True, limiter=self._limiter)

    def _judge(self) -> Judge:
        sight = DiskSight(self._root, self._lister.rules, frozenset(self._boundaries()))
        return Judge(sight, self._lister.types, MAX_FILE_BYTES)

    def _look(self, judge: Judge, paths: Iterable[str]) -> TreeScan:
        identity = root_identity(self._root)
        scan = told(judge, paths, trio.from_thread.check_cancelled)
        if "" in scan.unreadable:
            raise WorkspaceUnavailable(f"{self._root} cannot be read: {scan.unreadable['']}")
        if root_identity(self._root) != identity:
            raise WorkspaceUnavailable(f"{self._root} was replaced while it was looked at; it will be scanned again.")
        return scan

    def _hash(self, judge: Judge, paths: Iterable[str]) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for path in paths:
            trio.from_thread.check_cancelled()
            found[path] = self._hash_now(path) if judge.verdict(path).eligible else None
        return found

    def _hash_now(self, path: str) -> str | None:
        read = read_regular(self._root, path)
        if isinstance(read, FileProblem):
            return None
        text = decode(read.data, self._lister.types.profile)
        return None if text is None else file_hash(text)


_SKIPPED = frozenset({Standing.LINK, Standing.NOT_REGULAR, Standing.NAME, Standing.SIZE, Standing.BROKEN})


def told(judge: Judge, paths: Iterable[str], checkpoint: Callable[[], object]) -> TreeScan:
    """Return what a scan would tell of these paths; ``checkpoint`` is called once per path."""
    files: dict[str, Signature] = {}
    skipped: dict[str, str] = {}
    unreadable: dict[str, str] = {}
    for path in paths:
        checkpoint()
        verdict = judge.verdict(path)
        if verdict.eligible and verdict.signature is not None:
            files[path] = verdict.signature
        elif verdict.standing is Standing.UNREADABLE:
            unreadable[verdict.decided_by] = verdict.reason
        elif verdict.standing in _SKIPPED and verdict.decided_by == path:
            skipped[path] = verdict.reason
    return TreeScan(files, skipped, unreadable)
