"""The working tree of one workspace on the local file system.

Owns the crossing into threads: nothing of the disk is touched on the event loop. Implements
:class:`semindex.ports.SourceTree`; the walk, the explanations and the rules are next door.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import trio

from semindex.core.eligibility import FileTypes, Verdict
from semindex.files.explain import Inspector
from semindex.files.reading import decode, read_regular
from semindex.files.rules import IgnoreRules
from semindex.files.walk import Memory, Settings, Walk
from semindex.model.chunks import FileProblem
from semindex.model.ids import file_hash
from semindex.ports import TreeScan

MAX_FILES = 200_000
"""Default for the number of eligible files of one workspace."""

_BATCH = 32
"""Files hashed in one visit to a thread."""


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
        rules = IgnoreRules(root, exclude, environ)
        self._settings = Settings(root, types or FileTypes(), rules, boundaries, max_files)
        self._limiter = limiter
        self._memory = Memory()

    async def scan(self) -> TreeScan:
        """Walk the tree by the rules of engine page section 2.

        Raises WorkspaceUnavailable if the root is gone or cannot be read, TooManyFiles.
        """
        # A file system that hangs must not hang the caller: a cancelled walk is left to itself. It ends at the next
        # directory, and as it works on a memory of its own it leaves nothing behind.
        scan, self._memory = await trio.to_thread.run_sync(
            self._walk, self._memory, abandon_on_cancel=True, limiter=self._limiter
        )
        return scan

    async def hashes(self, paths: Sequence[str]) -> dict[str, str | None]:
        """Read each file now and return path → file hash; None where there is no such readable, eligible file."""
        inspector = self._inspector()
        hashes: dict[str, str | None] = {}

        async def hash_batch(batch: Sequence[str]) -> None:
            hashes.update(
                await trio.to_thread.run_sync(
                    self._hash, inspector, batch, abandon_on_cancel=True, limiter=self._limiter
                )
            )

        async with trio.open_nursery() as nursery:
            for start in range(0, len(paths), _BATCH):
                nursery.start_soon(hash_batch, paths[start : start + _BATCH])
        return hashes

    async def explain(self, path: str) -> Verdict:
        """Return why a path below the root is, or is not, for the index."""
        return await trio.to_thread.run_sync(
            self._inspector().verdict, path, abandon_on_cancel=True, limiter=self._limiter
        )

    def _inspector(self) -> Inspector:
        settings = self._settings
        return Inspector(settings.root, settings.types, settings.rules, settings.boundaries())

    def _walk(self, memory: Memory) -> tuple[TreeScan, Memory]:
        return Walk(self._settings, memory, trio.from_thread.check_cancelled).run()

    def _hash(self, inspector: Inspector, paths: Iterable[str]) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for path in paths:
            trio.from_thread.check_cancelled()
            found[path] = self._hash_now(path) if inspector.verdict(path).eligible else None
        return found

    def _hash_now(self, path: str) -> str | None:
        read = read_regular(self._settings.root, path)
        if isinstance(read, FileProblem):
            return None
        text = decode(read.data, self._settings.types.profile)
        return None if text is None else file_hash(text)
