"""Reading one file below a workspace: safely, whole, and as text.

Owns the rules by which a file counts as readable: no link is followed at any depth, nothing
but a regular file is ever opened, and what was read was the file's content at one instant. Used by the chunker
workers and by the source tree alike, so that both mean the same by a file's hash. Knows no grammar and no index.
"""

import errno
import os
import stat
import time
from contextlib import ExitStack

from attrs import frozen

from semindex.model.chunks import FileProblem, ProblemKind, Signature
from semindex.model.profiles import ChunkingProfile

MAX_FILE_BYTES = 1_048_576
"""Largest file that is indexed; the reference's limit, so that both skip the same files."""

BINARY_PROBE_BYTES = 8_000
"""A NUL among so many leading bytes makes a file binary: git's rule, and the reference's."""

READ_ATTEMPTS = 4
"""A file that is being written is read again; whoever writes it for longer will cause another event anyway."""

_UTF16_CODECS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG})
"""Errors that say there is no regular file of that name; any other is a failure to read one."""

_DIRECTORY_FLAGS = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@frozen
class FileRead:
    """The content of a regular file at one instant during the call that returned it."""

    data: bytes
    signature: Signature
    trusted: bool
    """Whether ``signature`` may be recorded as standing for ``data`` (see :meth:`Signature.trusted_at`)."""


def signature_of(status: os.stat_result) -> Signature:
    """Return the signature that a ``stat`` gives."""
    return Signature(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def read_regular(root: str, path: str, *, limit: int = MAX_FILE_BYTES) -> FileRead | FileProblem:
    """Read the file at ``path`` (relative, POSIX separators) below the directory ``root``; blocks.

    ``limit`` is in bytes. Every trouble is a value: GONE where there is no regular file of that name, or a link on
    the way to it; SKIPPED where it is larger than the limit, or the path leaves the root; FAILED for the rest, a
    root that cannot be opened included, since that says nothing about the file.
    """
    parts = path.split("/")
    if not all(parts) or "." in parts or ".." in parts:
        return FileProblem(path, ProblemKind.SKIPPED, "The path is not a plain path below the workspace.")
    with ExitStack() as opened:
        try:
            directory = _open(opened, root, _DIRECTORY_FLAGS, None)
        except OSError as error:
            return _failed(path, "The workspace's root cannot be opened", error)
        try:
            for part in parts[:-1]:
                directory = _open(opened, part, _DIRECTORY_FLAGS | os.O_NOFOLLOW, directory)
            return _read_stable(directory, parts[-1], path, limit)
        except OSError as error:
            if error.errno in _ABSENT:
                return FileProblem(path, ProblemKind.GONE, "There is no regular file at this path.")
            return _failed(path, "The file cannot be read", error)
        except ValueError:
            return FileProblem(path, ProblemKind.GONE, "No file can have this name.")


def decode(data: bytes, profile: ChunkingProfile) -> str | None:
    """Return the text of a file's bytes, or None if they are binary.

    Each maximal invalid part of UTF-8 becomes one U+FFFD, and a byte order mark stays as U+FEFF, so that hashes agree
    with the reference's. Only the extended profile reads UTF-16, which begins with such a mark.
    """
    if b"\0" not in data[:BINARY_PROBE_BYTES]:
        return data.decode("utf-8", "replace")
    codec = _UTF16_CODECS.get(data[:2])
    if codec is None or profile is not ChunkingProfile.EXTENDED:
        return None
    text = data.decode(codec, "replace")
    return None if "\0" in text[:BINARY_PROBE_BYTES] else text


def _open(opened: ExitStack, name: str, flags: int, directory: int | None) -> int:
    descriptor = os.open(name, flags, dir_fd=directory)
    opened.callback(os.close, descriptor)
    return descriptor


def _read_stable(directory: int, name: str, path: str, limit: int) -> FileRead | FileProblem:
    """Read until the file's signature is the same before and after; it is opened anew for each attempt."""
    for _ in range(READ_ATTEMPTS):
        # A device or a FIFO must not even be opened: that alone can block or have effects.
        if not stat.S_ISREG(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            break
        began_ns = time.time_ns()
        with open(name, "rb", buffering=0, opener=lambda name, _: os.open(name, _FILE_FLAGS, dir_fd=directory)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                break
            before = signature_of(status)
            if before.size > limit:
                reason = f"The file is larger than {_human(limit)}."
                return FileProblem(path, ProblemKind.SKIPPED, reason, before)
            trusted = before.trusted_at(began_ns)
            data = file.read(before.size + 1)
            # Writes within one tick of the file system's clock leave the same signature: a young file is read twice.
            steady = len(data) == before.size and (trusted or os.pread(file.fileno(), before.size + 1, 0) == data)
            if steady and signature_of(os.fstat(file.fileno())) == before:
                return FileRead(data, before, trusted)
    else:
        return FileProblem(path, ProblemKind.FAILED, "The file kept changing while it was read.")
    return FileProblem(path, ProblemKind.GONE, "There is no regular file at this path.")


def _failed(path: str, what: str, error: OSError) -> FileProblem:
    return FileProblem(path, ProblemKind.FAILED, f"{what}: {os.strerror(error.errno or errno.EIO)}.")


def _human(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size:,} bytes"
