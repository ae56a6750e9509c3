"""A working tree in memory: the twin of :class:`semindex.files.tree.WorkingTree`, without threads.

It applies the same rules for names, sizes and ignore files, on a clock that a test sets. What only a disk has (links,
names that are not UTF-8, repositories) it does not know, but a test can declare directories unreadable.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import trio
from attrs import evolve

from semindex.core.eligibility import REASONS, FileTypes, Standing, Verdict
from semindex.core.ignore import IGNORE_FILES, IgnoreStack, RuleSet
from semindex.core.judge import Entry, Judge, Kind, Unreadable
from semindex.files.reading import MAX_FILE_BYTES, FileRead, decode
from semindex.files.tree import told
from semindex.model.chunks import FileProblem, ProblemKind, Signature
from semindex.model.errors import TooManyFiles, WorkspaceUnavailable
from semindex.model.ids import file_hash
from semindex.ports import TreeScan

START_NS = 1_700_000_000_000_000_000
"""Where a tree's clock begins, in nanoseconds since the epoch."""


class MemoryTree:
    """A source tree over a dict; every write gives the file the tree's present time."""

    def __init__(
        self, files: Mapping[str, bytes] | None = None, *, types: FileTypes | None = None, max_files: int = 200_000
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
        self._directories: Counter[str] = Counter()
        """Directory → number of files below it."""
        self._inode = 0
        for path, data in (files or {}).items():
            self.write(path, data)
        self.advance(3600)

    def advance(self, seconds: float) -> None:
        """Move the clock."""
        self.now_ns += int(seconds * 1e9)

    def write(self, path: str, data: bytes | str) -> None:
        """Create a file, or replace its content in place."""
        content = data.encode() if isinstance(data, str) else data
        known = self._files.get(path)
        if known is None:
            self._inode += 1
        inode = self._inode if known is None else known[1].inode
        self._put(path, content, Signature(len(content), self.now_ns, self.now_ns, inode))

    def delete(self, path: str) -> None:
        """Delete a file, or a directory with all that is in it."""
        doomed = [each for each in self._files if each == path or each.startswith(path + "/")]
        if not doomed:
            raise FileNotFoundError(path)
        for each in doomed:
            self._take(each)

    def rename(self, old: str, new: str) -> None:
        """Rename a file; it keeps its content and its times but for the change time."""
        data, signature = self._take(old)
        self._put(new, data, evolve(signature, ctime_ns=self.now_ns))

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
        judge = self._judge()
        found = self._told(judge, self._files)
        if len(found.files) > self.max_files:
            raise TooManyFiles(f"The tree in memory holds more than {self.max_files} files; raise its limit.")
        entered = [each for each in self._directories if judge.verdict(each).standing is Standing.DIRECTORY]
        return evolve(found, unreadable=dict(self.unreadable), directories=["", *entered])

    async def look(self, paths: Sequence[str]) -> TreeScan:
        """Tell of these paths alone what a scan would tell of them."""
        await trio.lowlevel.checkpoint()
        return self._told(self._judge(), paths)

    async def explain(self, path: str) -> Verdict:
        """Return why a path below the root is, or is not, for the index."""
        await trio.lowlevel.checkpoint()
        return self._judge().verdict(path)

    async def hashes(self, paths: Sequence[str]) -> dict[str, str | None]:
        """Read each file now and return path → file hash; None where there is no such eligible file."""
        await trio.lowlevel.checkpoint()
        judge = self._judge()
        return {path: self._hash(path) if judge.verdict(path).eligible else None for path in paths}

    def entry(self, path: str) -> Entry | None:
        """Return what lies at a path, for :class:`semindex.core.judge.Judge`."""
        if self.missing:
            return None
        if path in self._files:
            return Entry(Kind.FILE, self._files[path][1])
        if path == "" or path in self._directories:
            return Entry(Kind.DIRECTORY, Signature(0, START_NS, START_NS, 0))
        return None

    def rules_above(self) -> IgnoreStack:
        """Return the ignore rules from outside of the tree: none."""
        return IgnoreStack()

    def rules_in(self, directory: str) -> list[RuleSet]:
        """Return the ignore files of a directory, weakest first."""
        if directory in self.unreadable:
            raise Unreadable(self.unreadable[directory])
        places = [f"{directory}/{name}" if directory else name for name in IGNORE_FILES]
        return [RuleSet(self._files[place][0], place) for place in places if place in self._files]

    def boundary(self, directory: str) -> str | None:
        """Return why a directory is no part of the tree: there is no other tree in here."""
        return None

    def _put(self, path: str, data: bytes, signature: Signature) -> None:
        if path in self._directories:
            raise IsADirectoryError(path)
        for parent in _parents(path):
            if parent in self._files:
                raise NotADirectoryError(parent)
        if path not in self._files:
            self._directories.update(_parents(path))
        self._files[path] = data, signature
        self._tell(path)

    def _take(self, path: str) -> tuple[bytes, Signature]:
        taken = self._files.pop(path)
        self._directories.subtract(_parents(path))
        self._directories = +self._directories
        self._tell(path)
        return taken

    def _tell(self, path: str) -> None:
        for observer in self.observers:
            observer(path)

    def _judge(self) -> Judge:
        return Judge(self, self.types, MAX_FILE_BYTES)

    def _told(self, judge: Judge, paths: Iterable[str]) -> TreeScan:
        if self.missing:
            raise WorkspaceUnavailable("The root of the tree in memory is missing.")
        if "" in self.unreadable:
            raise WorkspaceUnavailable(f"The tree in memory cannot be read: {self.unreadable['']}")
        return told(judge, paths, lambda: None)

    def _hash(self, path: str) -> str | None:
        read = self.read(path)
        if isinstance(read, FileProblem):
            return None
        text = decode(read.data, self.types.profile)
        return None if text is None else file_hash(text)


def _parents(path: str) -> Iterator[str]:
    return (path[:end] for end, character in enumerate(path) if character == "/")
