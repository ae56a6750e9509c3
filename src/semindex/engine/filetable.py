"""The ledger of one workspace in memory: every discovered file with its state, and the sums over them.

Owns no storage. All methods are synchronous, so that what they tell is true until the next checkpoint.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from semindex.engine.pacing import paced
from semindex.model.status import FileRecord, FileState

FILES_PER_STEP = 1000
"""Files that a loop over a table may handle between two checkpoints: a few milliseconds, whatever is done with each."""


class FileTable:
    """Records by path."""

    def __init__(self, records: Iterable[FileRecord] = ()) -> None:
        self._records: dict[str, FileRecord] = {}
        self._failed: dict[str, str] = {}
        self.states: Counter[FileState] = Counter()
        """How many records have each state."""
        self.chunks = 0
        """Points that the records say are stored."""
        self.text_bytes = 0
        """Bytes of text that they hold, about: the sizes of their files."""
        for record in records:
            self.put(record)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, path: str) -> bool:
        return path in self._records

    def __iter__(self) -> Iterator[FileRecord]:
        return iter(self._records.values())

    def paths(self) -> list[str]:
        """Return all paths as they are now."""
        return list(self._records)

    def get(self, path: str) -> FileRecord | None:
        """Return the record of a path."""
        return self._records.get(path)

    def put(self, record: FileRecord) -> None:
        """Set or replace a record."""
        self.forget(record.path)
        self._records[record.path] = record
        self.states[record.state] += 1
        self.chunks += record.chunks
        self.text_bytes += _text_bytes(record)
        if record.state is FileState.FAILED:
            self._failed[record.path] = record.reason or "unknown"

    def forget(self, path: str) -> None:
        """Remove a record, if there is one."""
        record = self._records.pop(path, None)
        if record is None:
            return
        self.states[record.state] -= 1
        self.chunks -= record.chunks
        self.text_bytes -= _text_bytes(record)
        self._failed.pop(path, None)

    def failures(self, limit: int) -> tuple[tuple[str, str], ...]:
        """Return the first failed files with their reasons."""
        return tuple(islice(self._failed.items(), limit))


def _text_bytes(record: FileRecord) -> int:
    return record.signature.size if record.chunks and record.signature else 0


async def table_of(records: Iterable[FileRecord]) -> FileTable:
    """Return a table of these records; a hundred thousand are put into it in steps."""
    table = FileTable()
    await put_all(table, records)
    return table


async def put_all(table: FileTable, records: Iterable[FileRecord]) -> None:
    """Put records into a table that nobody looks into meanwhile, in steps."""
    async for record in paced(records, FILES_PER_STEP):
        table.put(record)
