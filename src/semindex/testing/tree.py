"""A working tree in memory: the twin of :class:`semindex.files.tree.WorkingTree`, without threads.

It applies the same rules for names, sizes and ignore files, on a clock that a test sets. What only a disk has (links,
names that are not UTF-8, repositories) it does not know, but a test can declare directories unreadable.
"""

from collections.abc import Callable, Sequence

import trio

from semindex.core.eligibility import REASONS, FileTypes, Standing, name_exclusion
from semindex.core.ignore import IGNORE_FILES, IgnoreStack, RuleSet
from semindex.files.reading import MAX_FILE_BYTES, FileRead, decode
from semindex.model.chunks import FileProblem, ProblemKind, Signature
from semindex.model.errors import TooManyFiles, WorkspaceUnavailable
from semindex.model.ids import file_hash
from semindex.ports import TreeScan

START_NS = 1_700_000_000_000_000_000
"""Where a tree's clock begins, in nanoseconds since the epoch."""


class MemoryTree:
    """A source tree over a dict; every write gives the file the tree's present time."""

    def __init__(
        self, files: dict[str, bytes] | None = None, *, types: FileTypes | None = None, max_files: int = 200_000
    ) -> None:
        """``files`` are written at :data:`START_NS`; the clock then stands an hour later, so that all are trusted."""
        self.types = types or FileTypes()
        self.max_files = max_files
        self.now_ns = START_NS
        """The clock, of reads as well as of writes; a test moves it."""
        self.missing = False
        """Whether the root is gone."""
        self.unreadable: dict[str, str] = {}
        """Directory → why it cannot be listed; a test fills it."""
        self.scans = 0
        """How many scans were made."""
        self.observers: list[Callable[[str], None]] = []
        """Called with the path of each file that came, changed or went."""
        self._files: dict[str, tuple[bytes, Signature]] = {}
        self._inode = 0
        for path, data in (files or {}).items():
            self.write(path, data)
        self.advance(3600)

    def advance(self, seconds: float) -> None:
        """Move the clock."""
        self.now_ns += int(seconds * 1e9)

    def write(self, path: str, data: bytes | str) -> None:
        """Create a file, or replace its content in place."""
        known = self._files.get(path)
        if known is None:
            self._inode += 1
        inode = self._inode if known is None else known[1].inode
        content = data.encode() if isinstance(data, str) else data
        self._files[path] = content, Signature(len(content), self.now_ns, self.now_ns, inode)
        self._tell(path)

    def delete(self, path: str) -> None:
        """Delete a file, or a directory with all that is in it."""
        doomed = [each for each in self._files if each == path or each.startswith(path + "/")]
        if not doomed:
            raise FileNotFoundError(path)
        for each in doomed:
            del self._files[each]
            self._tell(each)

    def rename(self, old: str, new: str) -> None:
        """Rename a file; it keeps its content and its times but for the change time."""
        data, signature = self._files.pop(old)
        self._files[new] = data, Signature(signature.size, signature.mtime_ns, self.now_ns, signature.inode)
        self._tell(old)
        self._tell(new)

    def read(self, path: str) -> FileRead | FileProblem:
        """Return what :func:`semindex.files.reading.read_regular` returns for a file; for the chunker's twin."""
        if path not in self._files or self.missing:
            return FileProblem(path, ProblemKind.GONE, "There is no regular file at this path.")
        data, signature = self._files[path]
        if signature.size > MAX_FILE_BYTES:
            return FileProblem(path, ProblemKind.SKIPPED, REASONS[Standing.SIZE], signature)
        return FileRead(data, signature, signature.trusted_at(self.now_ns))

    async def scan(self) -> TreeScan:
        """Judge every file; the walk itself takes no time."""
        await trio.lowlevel.checkpoint()
        self.scans += 1
        if self.missing:
            raise WorkspaceUnavailable("The root of the tree in memory is missing.")
        files: dict[str, Signature] = {}
        skipped: dict[str, str] = {}
        for path, (_, signature) in self._files.items():
            if not self._wanted(path):
                continue
            if signature.size > MAX_FILE_BYTES:
                skipped[path] = REASONS[Standing.SIZE]
            else:
                files[path] = signature
        if len(files) > self.max_files:
            raise TooManyFiles(f"The tree in memory holds more than {self.max_files} files.")
        return TreeScan(files, skipped, dict(self.unreadable))

    async def hashes(self, paths: Sequence[str]) -> dict[str, str | None]:
        """Read each file now and return path → file hash; None where there is no such eligible file."""
        await trio.lowlevel.checkpoint()
        return {path: self._hash(path) for path in paths}

    def _hash(self, path: str) -> str | None:
        read = self.read(path)
        if isinstance(read, FileProblem) or not self._wanted(path):
            return None
        text = decode(read.data, self.types.profile)
        return None if text is None else file_hash(text)

    def _tell(self, path: str) -> None:
        for observer in self.observers:
            observer(path)

    def _wanted(self, path: str) -> bool:
        """Say whether a file is for the index but for its size, and can be reached."""
        stack, directory = self._inside(IgnoreStack(), ""), ""
        if "" in self.unreadable:
            return False
        *parents, name = path.split("/")
        for parent in parents:
            directory = f"{directory}/{parent}" if directory else parent
            if directory in self.unreadable or name_exclusion(parent, directory=True) is not None:
                return False
            if stack.ignores(directory.encode(), directory=True):
                return False
            stack = self._inside(stack, directory)
        if name_exclusion(name, directory=False) is not None or not self.types.includes(name):
            return False
        return not stack.ignores(path.encode(), directory=False)

    def _inside(self, above: IgnoreStack, directory: str) -> IgnoreStack:
        places = [f"{directory}/{name}" if directory else name for name in IGNORE_FILES]
        found = [RuleSet(self._files[place][0], place) for place in places if place in self._files]
        return above.inside(found, directory.encode())
