"""All collections of the embedded store, in the worker process: which are open, and what cannot be opened.

Owns the limit of open collections, the checks of a directory before the engine sees it, and the line between trouble
that may pass and damage. Damage is set aside under another name and reported, and never repaired here: an index can be
built again. It is deleted when the collection is.
"""

import contextlib
import re
import sys
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from semindex.stores import edge_files
from semindex.stores.edge_engine import Shard
from semindex.stores.edge_files import LAYOUT, Record
from semindex.stores.edge_protocol import ErrorKind, Settings

OPEN_SHARDS = 40
"""Collections held open.

Each takes two threads and some 40 MB of page cache, nearly all of it for holes, which the system takes back when
it needs it. To open one takes 0.1 s and to close the one that gives way 0.2 s, in which nobody is served: with more
worktrees at work than this, every search and every edit pays that.
"""

_PASSING_OS_ERRORS = {1, 5, 11, 12, 13, 23, 24, 28, 30, 122}
"""EPERM, EIO, EAGAIN, ENOMEM, EACCES, ENFILE, EMFILE, ENOSPC, EROFS, EDQUOT: they say nothing about the files."""


class Refused(Exception):
    """An operation that was not done."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        """Say why in one sentence."""
        super().__init__(message)
        self.kind = kind


class Translated:
    """A block in which whatever the engine raises becomes :class:`Refused`; a panic of it is no ``Exception``."""

    def __init__(self, translate: Callable[[BaseException], Refused]) -> None:
        """Use this translation for all but what is Refused already."""
        self._translate = translate

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Raise the translation of an error."""
        if error is not None and not isinstance(error, Refused):
            raise self._translate(error) from error


class Shards:
    """All collections below one directory, of which the most recently used are open."""

    def __init__(self, settings: Settings) -> None:
        """Open nothing yet."""
        self.root = Path(settings.directory)
        self._settings = settings
        self._open: OrderedDict[str, Shard] = OrderedDict()

    def get(self, name: str) -> Shard:
        """Return an open collection, loading it if need be. Raises Refused."""
        shard = self._open.get(name)
        if shard is None:
            record = self._inspect(name)
            if record is None:
                raise Refused(ErrorKind.MISSING, f"The collection {name} does not exist.")
            with Translated(partial(self._unloadable, name)):
                shard = Shard.load(self.root / name, record, self._settings)
            self._keep(name, shard)
        self._open.move_to_end(name)
        return shard

    def create(self, name: str, dimension: int, token: str) -> None:
        """Create a collection; a repetition with the same token, after a reply that was lost, does nothing."""
        existing = self._inspect(name)
        if existing is not None:
            if existing.token == token:
                return
            raise Refused(ErrorKind.REJECTED, f"The collection {name} exists already.")
        directory = self.root / name
        record = Record(self._settings.engine, dimension, token)
        edge_files.begin(directory, record)
        self._keep(name, self._copied(directory, record) or self._created(directory, record))

    def _copied(self, directory: Path, record: Record) -> Shard | None:
        """Make an empty collection from the copy of one; None if there is none to copy."""
        blank = self._blank(record.dimension)
        known = edge_files.read_record(blank)
        if known is None or not known.ready or (known.engine, known.layout) != (record.engine, record.layout):
            return None
        edge_files.copy(blank, directory)
        edge_files.make_durable(directory)
        with contextlib.suppress(BaseException):  # a panic of the engine is no Exception
            shard = Shard.load(directory, record, self._settings)
            shard.keep_record(record._replace(ready=True))
            return shard
        edge_files.discard(blank)
        edge_files.begin(directory, record)
        return None

    def _created(self, directory: Path, record: Record) -> Shard:
        """Have the engine make an empty collection, which takes it a second, and keep a copy for the next one."""
        shard = Shard.create(directory, record, self._settings)
        blank = self._blank(record.dimension)
        with contextlib.suppress(OSError):  # without it the next creation takes a second, too
            edge_files.begin(blank, record)
            edge_files.copy(directory, blank)
            edge_files.make_durable(blank)
            edge_files.write_record(blank, record._replace(ready=True))
        return shard

    def _blank(self, dimension: int) -> Path:
        """Return where the copy of an empty collection lies; the dot keeps it from being one."""
        return self.root / f"blank.{dimension}-{self._settings.hnsw_m}-{self._settings.hnsw_ef_construct}"

    def close(self, name: str) -> None:
        """Close a collection if it is open."""
        shard = self._open.pop(name, None)
        if shard is not None:
            shard.close()

    def close_all(self) -> None:
        """Close every open collection."""
        for name in list(self._open):
            self.close(name)

    def drop(self, name: str) -> bool:
        """Delete a collection, also what was set aside of it as damaged; return whether there was one."""
        with contextlib.suppress(Exception):  # what cannot be flushed, on a full disk say, can still be deleted
            self.close(name)
        edge_files.discard_set_aside(self.root / name)
        return edge_files.discard(self.root / name)

    def replace(self, name: str) -> None:
        """Let the optimised copy of a collection take its place."""
        self.close(name)
        edge_files.replace(self.root / name)

    def abandon(self, name: str) -> None:
        """Delete what there is of the copy of a collection."""
        edge_files.abandon(self.root / name)

    def names(self) -> list[str]:
        """Return the names of all collections, sorted."""
        return edge_files.names(self.root)

    def _inspect(self, name: str) -> Record | None:
        """Return the record of a collection; None if there is no collection, or its creation was cut short."""
        directory = self.root / name
        if not edge_files.exists(directory):
            return None
        record = edge_files.read_record(directory)
        if record is None:
            raise self._set_aside(directory, "its record is missing or unreadable")
        if not record.ready:
            edge_files.discard(directory)
            return None
        if (record.engine, record.layout) != (self._settings.engine, LAYOUT):
            made, own = f"{record.engine}/{record.layout}", f"{self._settings.engine}/{LAYOUT}"
            raise self._set_aside(directory, f"engine {made} made it, and this is {own}")
        return record

    def _unloadable(self, name: str, error: BaseException) -> Refused:
        if "WouldBlock" in str(error):
            message = f"The store in {self.root} is in use by another process; stop that one first."
            return Refused(ErrorKind.UNAVAILABLE, message)
        if may_pass(error):
            return Refused(ErrorKind.UNAVAILABLE, f"The collection {name} cannot be opened now: {error}")
        return self._set_aside(self.root / name, str(error))

    def _set_aside(self, directory: Path, why: str) -> Refused:
        aside = edge_files.set_aside(directory)
        message = f"The collection {directory.name} could not be used ({why}) and was set aside as {aside}."
        sys.stderr.write(message + "\n")
        sys.stderr.flush()
        return Refused(ErrorKind.DAMAGED, message)

    def _keep(self, name: str, shard: Shard) -> None:
        self._open[name] = shard
        while len(self._open) > OPEN_SHARDS:
            self.close(next(iter(self._open)))


def may_pass(error: BaseException) -> bool:
    """Say whether an error is one of the operating system that says nothing about the files themselves."""
    if isinstance(error, OSError):
        return error.errno in _PASSING_OS_ERRORS
    named = re.search(r"\(os error (\d+)\)", str(error))
    return named is not None and int(named[1]) in _PASSING_OS_ERRORS
