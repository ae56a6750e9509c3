"""One walk through a working tree, and what is remembered of it for the next.

Owns the way through the tree and the look at each file: one ``stat``, also of files that are known. What a directory
holds is :mod:`semindex.files.listing`'s. All of it blocks; it runs in a thread.
"""

import errno
import os
import stat
from collections.abc import Callable, Collection

from attrs import define, field

from semindex.core.eligibility import REASONS, Standing
from semindex.core.ignore import IgnoreStack
from semindex.core.judge import Unreadable
from semindex.files.listing import Folder, Lister
from semindex.files.reading import MAX_FILE_BYTES, signature_of
from semindex.files.roots import root_identity
from semindex.files.sight import FORBIDDEN
from semindex.model.chunks import Signature
from semindex.model.errors import TooManyFiles, WorkspaceUnavailable
from semindex.ports import TreeScan

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""Errors that say that a directory, or a file, is not there any more."""


@define
class Memory:
    """What a walk leaves to the next one."""

    folders: dict[str, Folder] = field(factory=dict)
    """By path below the root, with a slash at the end; the root's is empty."""
    files: dict[str, Signature] = field(factory=dict)


class Walk:
    """A walk from the root; used once."""

    def __init__(
        self,
        lister: Lister,
        memory: Memory,
        *,
        boundaries: Collection[str],
        max_files: int,
        checkpoint: Callable[[], object],
    ) -> None:
        """``boundaries`` are absolute paths that are not entered; ``checkpoint`` is called once per directory."""
        self._lister = lister
        self._before = memory
        self._after = Memory()
        self._boundaries = {path.removeprefix(lister.root) + "/" for path in boundaries if path.startswith(lister.root)}
        self._max_files = max_files
        self._checkpoint = checkpoint
        self._directories: list[str] = []
        self._skipped: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}

    def run(self) -> tuple[TreeScan, Memory]:
        """Walk, and return what was found together with the memory for the next walk.

        Raises WorkspaceUnavailable, TooManyFiles, and what the checkpoint raises.
        """
        root = self._lister.root.rstrip("/") or "/"
        identity = root_identity(root)
        try:
            self._walk(self._lister.rules.base())
        except Unreadable as error:
            raise WorkspaceUnavailable(f"{root} cannot be scanned: {error}") from error
        if "" in self._unreadable:
            raise WorkspaceUnavailable(f"{root} cannot be scanned: {self._unreadable['']}")
        # A root that was removed or unmounted meanwhile must not be taken for a tree whose files were all deleted.
        if root_identity(root) != identity:
            raise WorkspaceUnavailable(f"{root} was replaced while it was scanned; it will be scanned again.")
        files = self._after.files
        skipped = {path: reason for path, reason in self._skipped.items() if path not in files}
        return TreeScan(files, skipped, self._unreadable, self._directories), self._after

    def _walk(self, base: IgnoreStack) -> None:
        waiting = [("", base)]
        while waiting:
            self._checkpoint()
            prefix, above = waiting.pop()
            if prefix in self._boundaries:
                continue
            folder = self._visit(prefix, above)
            if folder is not None:
                self._directories.append(prefix[:-1])
                waiting.extend((f"{prefix}{name}/", folder.rules) for name in folder.folders)

    def _visit(self, prefix: str, above: IgnoreStack) -> Folder | None:
        """Return a directory's entries; None if it is a boundary, or gone, or cannot be read."""
        try:
            folder = self._lister.current(prefix, above, self._before.folders.get(prefix))
            self._after.folders[prefix] = folder
            if folder.boundary:
                return None
            self._look_at_files(prefix, folder)
        except Unreadable as error:
            self._unreadable[prefix[:-1]] = str(error)
            return None
        except OSError as error:
            if error.errno not in _GONE:
                self._unreadable[prefix[:-1]] = f"{os.strerror(error.errno or errno.EIO)}."
            return None
        return folder

    def _look_at_files(self, prefix: str, folder: Folder) -> None:
        """Take the signatures of a directory's files: of all, or of none if the directory forbids it."""
        base, before = self._lister.root + prefix, self._before.files
        room = self._max_files - len(self._after.files)
        files: dict[str, Signature] = {}
        skipped: dict[str, str] = {}
        for name in folder.files:
            path = prefix + name
            try:
                status = os.lstat(base + name)
            except OSError as error:
                if error.errno in FORBIDDEN:
                    raise
                if error.errno not in _GONE:
                    skipped[path] = REASONS[Standing.BROKEN]
                continue
            if not stat.S_ISREG(status.st_mode):
                continue
            if status.st_size > MAX_FILE_BYTES:
                skipped[path] = REASONS[Standing.SIZE]
                continue
            known = before.get(path)
            files[path] = known if known is not None and _same(known, status) else signature_of(status)
            if len(files) > room:
                raise TooManyFiles(
                    f"{self._lister.root} holds more than {self._max_files:,} files for the index; exclude some with"
                    " ignore files, choose a smaller directory, or raise limits.maxFiles."
                )
        self._after.files.update(files)
        self._skipped.update(folder.skipped)
        self._skipped.update(skipped)
        self._unreadable.update(folder.unreadable)


def _same(known: Signature, status: os.stat_result) -> bool:
    return (
        known.mtime_ns == status.st_mtime_ns
        and known.ctime_ns == status.st_ctime_ns
        and known.size == status.st_size
        and known.inode == status.st_ino
    )
