"""The directories of the embedded store: one per collection, each with a record of what made it.

Owns their names, the record file, setting a damaged one aside, and deleting one so that it stays deleted. Knows nothing
of the engine, which keeps its own files in the same directory. Used by the worker, and by the service before
there is one; imports the standard library only.
"""

import errno
import json
import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

RECORD_NAME = "semindex.json"

REPLACEMENT, DOOMED = ".optimised", ".dropped"

SPARE = 64 * 1024 * 1024
"""Bytes of the disk that a copy leaves to others."""

SYNCS_AT_ONCE = 4

LAYOUT = 1
"""Version of what we make of the engine: vector and index parameters, and this record."""


class Record(NamedTuple):
    """What the record file of a collection says."""

    engine: str
    """Version of the engine that wrote the directory."""
    dimension: int
    token: str
    """Names the call that created the collection, so that its repetition is told from a second creation."""
    ready: bool = False
    """False from the start of a creation to its end: nothing was ever stored."""
    removed: int = 0
    """Points deleted or replaced since the last optimisation."""
    layout: int = LAYOUT


def read_record(directory: Path) -> Record | None:
    """Read the record of a directory; None if there is none that can be understood."""
    try:
        return Record(**json.loads((directory / RECORD_NAME).read_bytes()))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None


def write_record(directory: Path, record: Record) -> None:
    """Replace the record of a directory at once, and durably."""
    temporary = directory / (RECORD_NAME + ".new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(record._asdict(), file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(directory / RECORD_NAME)
    _sync(directory)


def exists(directory: Path) -> bool:
    """Say whether a directory is there. Raises OSError if that cannot be known."""
    try:
        directory.stat()
    except FileNotFoundError:
        return False
    return True


def begin(directory: Path, record: Record) -> None:
    """Make the directory of a collection that is about to be created."""
    discard(directory)
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.mkdir(mode=0o700)
    _sync(directory.parent)
    write_record(directory, record)


def copy(source: Path, target: Path) -> None:
    """Copy what a directory holds, all but its record, into one that has been begun."""
    try:
        shutil.copytree(
            source, target, ignore=lambda _, __: [RECORD_NAME], copy_function=_copy_file, dirs_exist_ok=True
        )
    except shutil.Error as error:
        # It tells of every file, in words; the first says what is wrong.
        _, _, reason = error.args[0][0]
        number = int(found[1]) if (found := re.match(r"\[Errno (\d+)\]", reason)) else errno.EIO
        raise OSError(number, os.strerror(number), str(source)) from None


def make_durable(directory: Path) -> None:
    """Make a directory with all that is in it durable against a power failure."""
    # Side by side the calls share one commit of the file system's journal.
    with ThreadPoolExecutor(SYNCS_AT_ONCE) as threads:
        for _ in threads.map(_sync, _all_below(directory)):
            pass


def _copy_file(source: str, target: str) -> None:
    """Copy a file without its holes: of the engine's 150 MB of an empty collection they are nearly all."""
    with open(source, "rb") as old, open(target, "xb") as new:
        new.truncate(os.fstat(old.fileno()).st_size)
        end = 0
        while True:
            try:
                begin = old.seek(end, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:  # only a hole is left
                    return
                raise
            end = old.seek(begin, os.SEEK_HOLE)
            old.seek(begin)
            new.seek(begin)
            new.write(old.read(end - begin))


def _all_below(directory: Path) -> Iterator[Path]:
    for below, _, files in os.walk(directory):
        yield Path(below)
        yield from (Path(below, file) for file in files)


def set_aside(directory: Path) -> Path:
    """Rename a directory to the first free ``<name>.bad-<n>``, for people to look at; return the new path."""
    number = 1
    while (aside := directory.with_name(f"{directory.name}.bad-{number}")).exists():
        number += 1
    directory.rename(aside)
    _sync(directory.parent)
    return aside


def replacement(directory: Path) -> Path:
    """Return where the copy of a collection lies that is to take its place; its record is ready once it may."""
    return directory.with_name(directory.name + REPLACEMENT)


def replace(directory: Path) -> None:
    """Let the copy of a collection take its place. Repeated, also after it was cut short, it does what is left."""
    doomed = _doomed(directory)
    if exists(replacement(directory)):
        if exists(directory):
            if exists(doomed):
                shutil.rmtree(doomed)
            directory.rename(doomed)
        replacement(directory).rename(directory)
        _sync(directory.parent)
    if exists(doomed):
        shutil.rmtree(doomed)


def abandon(directory: Path) -> None:
    """Delete the copy of a collection, unless it was just taking its place: then it does."""
    record = read_record(replacement(directory))
    if record is not None and record.ready and not exists(directory) and exists(_doomed(directory)):
        replace(directory)
    else:
        discard(replacement(directory))


def recover(root: Path) -> None:
    """Settle what an earlier service left: copies, and remains of deletions. Nobody may be at work below ``root``."""
    for copied in root.glob("*" + REPLACEMENT):
        abandon(copied.with_name(copied.name.removesuffix(REPLACEMENT)))
    for doomed in root.glob("*" + DOOMED):
        shutil.rmtree(doomed)


def require_room_for_copy(directory: Path) -> None:
    """Raise OSError unless there is room for a copy of a directory twice over, which is what optimising it may need."""
    taken = sum(path.lstat().st_blocks * 512 for path in _all_below(directory))
    if shutil.disk_usage(directory).free < 2 * taken + SPARE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def discard(directory: Path) -> bool:
    """Delete a directory; return whether there was one, or what a deletion that was cut short left of one.

    It loses its name first, so that no later start takes the rest of it for a collection.
    """
    doomed = _doomed(directory)
    existed = exists(doomed)
    if existed:
        shutil.rmtree(doomed)
    if exists(directory):
        existed = True
        directory.rename(doomed)
        _sync(directory.parent)
        shutil.rmtree(doomed)
    return existed


def discard_set_aside(directory: Path) -> None:
    """Delete what was set aside under a name."""
    for aside in directory.parent.glob(f"{directory.name}.bad-*"):
        discard(aside)


def _doomed(directory: Path) -> Path:
    return directory.with_name(directory.name + DOOMED)


def names(root: Path) -> list[str]:
    """Return the names of all collections, sorted; a name with a dot in it is no collection's."""
    if not exists(root):
        return []
    return sorted(entry.name for entry in os.scandir(root) if entry.is_dir() and "." not in entry.name)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
