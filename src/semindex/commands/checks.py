"""The checks of ``semindex doctor``: each looks at one thing that a cell needs, changes nothing, and never raises.

A message says how things are, and where they are not right, what to do.
"""

import os
import platform
import shutil
import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from enum import StrEnum
from inspect import isawaitable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import trio
from attrs import frozen

from semindex.commands.configured import Configured
from semindex.config import CellConfig
from semindex.core.eligibility import EXCLUDED_DIRECTORIES
from semindex.core.filetypes import GRAMMARS
from semindex.embedders.factory import open_embedder
from semindex.http.listener import bind_tcp, bind_unix
from semindex.model.errors import SemindexError, first_of
from semindex.model.ids import point_id, sha256_hex
from semindex.model.points import Payload
from semindex.model.profiles import Role
from semindex.parsing import grammars
from semindex.ports import VectorStore
from semindex.secret_files import read_private
from semindex.secrets import EMBEDDER_API_KEY, QDRANT_API_KEY, read_secret, token_files
from semindex.shielding import shielded
from semindex.state.cell_directory import holder_of, require_ours
from semindex.stores.factory import open_vector_store

OLDEST_PYTHON = (3, 11)
LITTLE_SPACE, NO_SPACE = 2 << 30, 200 << 20
"""Free bytes below which one is warned, and below which an index cannot be built."""
COUNTED_DIRECTORIES = 500_000
"""Directories after which counting ends."""
PATIENCE = 30.0
"""Seconds for one check."""


class Verdict(StrEnum):
    """What a check says."""

    OK = "ok"
    WARN = "warn"
    """It works, but not as well as it should."""
    FAIL = "FAIL"


@frozen
class Finding:
    """The result of one check."""

    name: str
    verdict: Verdict
    message: str


Result = tuple[Verdict, str]
Check = Callable[[Configured], Result | Awaitable[Result]]
"""Checks one thing; may raise SemindexError or OSError, whose message is then what is found."""


async def examine(chosen: Configured) -> list[Finding]:
    """Run all checks, one after the other."""
    return [await _carry_out(name, check, chosen) for name, check in CHECKS.items()]


async def _carry_out(name: str, check: Check, chosen: Configured) -> Finding:
    verdict, message = Verdict.FAIL, f"There was no answer within {PATIENCE:.0f} seconds."
    with trio.move_on_after(PATIENCE):
        # The starred form: errors come alone, or in the groups that nurseries raise.
        try:
            result = check(chosen)
            verdict, message = await result if isawaitable(result) else result
        except* (SemindexError, OSError) as group:
            message = str(first_of(group))
    return Finding(name, verdict, message)


def _python(_: Configured) -> Result:
    version = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
    if sys.version_info < OLDEST_PYTHON:
        return Verdict.FAIL, f"{version} is too old; use 3.11 or newer."
    if sys.platform != "linux":
        return Verdict.WARN, f"{version}: supported as well as is possible without Linux."
    return Verdict.OK, version


def _configuration(chosen: Configured) -> Result:
    missing = [str(root) for root in chosen.config.allowed_roots if not root.is_dir()]
    if missing:
        return (
            Verdict.FAIL,
            f"These roots are missing: {', '.join(missing)}. Create them, or correct the configuration.",
        )
    source = "The configuration file is valid" if chosen.has_file else "No configuration file: defaults are used"
    return Verdict.OK, f"{source}; {len(chosen.config.allowed_roots)} roots."


def _secrets(chosen: Configured) -> Result:
    for variable in (QDRANT_API_KEY, EMBEDDER_API_KEY):
        read_secret(variable, os.environ)
    if chosen.tokens() is not None:
        return Verdict.OK, "The tokens of the environment are usable."
    files = [path for path in token_files(chosen.config.state_directory) if path.exists()]
    for path in files:
        read_private(path)
    return Verdict.OK, "The cell's own token files are private." if files else "Tokens will be made at the first start."


def _state_directory(chosen: Configured) -> Result:
    directory = chosen.config.state_directory
    if directory.exists():
        require_ours(directory)
    return _usable(directory)


def _cache_directory(chosen: Configured) -> Result:
    return _usable(chosen.config.cache_directory)


def _usable(directory: Path) -> Result:
    """Check a directory, or that it can be made: is it writable, and how much space is there?"""
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return Verdict.FAIL, f"{existing} cannot be written; choose another directory, or allow it."
    free = shutil.disk_usage(existing).free
    message = f"{directory}: {free / 2**30:.1f} GiB are free."
    if free < NO_SPACE:
        return Verdict.FAIL, f"{message} Make room, or choose another disk."
    return Verdict.WARN if free < LITTLE_SPACE else Verdict.OK, message


async def _grammars(_: Configured) -> Result:
    problems = await trio.to_thread.run_sync(grammars.probe, limiter=trio.CapacityLimiter(1))
    if problems:
        return Verdict.FAIL, f"{next(iter(problems.values()))} Install semindex again. Missing: {', '.join(problems)}."
    return Verdict.OK, f"All {len(GRAMMARS)} grammars load."


async def _store(chosen: Configured) -> Result:
    """Write a point into a collection of its own, find it again, and delete the collection."""
    # A name of its own, so that what a check which was killed leaves behind is in the way of no other.
    name, path = f"ws-doctor-{uuid.uuid4().hex[:8]}", "doctor.txt"
    digest = sha256_hex(path)
    payload: Payload = {
        "filePath": path,
        "fileHash": digest,
        "codeChunk": path,
        "startLine": 1,
        "endLine": 1,
        "segmentHash": digest,
        "pathSegments": {"0": path},
    }
    vector = np.eye(1, 8, dtype=np.float32)
    with TemporaryDirectory() as scratch:
        async with open_vector_store(chosen.config.indexing, Path(scratch)) as store:
            await store.collections()
            began = trio.current_time()  # after an embedded one has started
            async with AsyncExitStack() as afterwards:
                afterwards.push_async_callback(_delete, store, name)
                await store.create(name, 8)
                await store.upsert(name, [point_id(digest)], vector, [payload])
                hits = await store.search(name, vector[0], limit=1, min_score=0.5)
    if [hit.file_path for hit in hits] != [path]:
        return Verdict.FAIL, "The vector store does not find what it was given; install semindex again."
    kind = "Qdrant server" if chosen.config.indexing.uses_qdrant else "embedded"
    return Verdict.OK, f"The vector store ({kind}) stores and finds in {_ms(began)}."


async def _delete(store: VectorStore, name: str) -> None:
    with shielded(PATIENCE, f"deleting the collection {name}"):
        await store.drop(name)


async def _embedder(chosen: Configured) -> Result:
    async with open_embedder(chosen.config.indexing) as embedder:
        began = trio.current_time()
        vectors = await embedder.embed(["where is the configuration read?"], Role.QUERY)
        profile = embedder.profile
    if vectors.shape != (1, profile.dimension):
        return Verdict.FAIL, f"The embedder answers with {vectors.shape[-1]} components, not {profile.dimension}."
    return Verdict.OK, f"{profile.model} answers in {_ms(began)} with {profile.dimension} components."


async def _watching(chosen: Configured) -> Result:
    """Compare the kernel's limits with the number of directories; each needs a watch."""
    watches, instances = _inotify_limit("max_user_watches"), _inotify_limit("max_user_instances")
    if watches is None or instances is None:
        return Verdict.WARN, "There is no inotify here: changes are found by looking at the trees from time to time."
    count = await trio.to_thread.run_sync(
        _count_directories, chosen.config, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1)
    )
    message = f"{count:,} directories; the limit is {watches:,} watches and {instances:,} instances of inotify."
    if count > watches:
        wanted = 2 ** (count * 2).bit_length()
        return Verdict.WARN, f"{message} Raise it: sysctl fs.inotify.max_user_watches={wanted}"
    return Verdict.OK, message


def _inotify_limit(name: str) -> int | None:
    try:
        return int(Path("/proc/sys/fs/inotify", name).read_text())
    except (OSError, ValueError):
        return None


def _count_directories(config: CellConfig) -> int:
    count = 0
    for root in config.allowed_roots:
        for _ in _directories(root):
            count += 1
            if count == COUNTED_DIRECTORIES:
                return count
    return count


def _directories(root: Path) -> Iterator[str]:
    for directory, names, _ in os.walk(root):
        trio.from_thread.check_cancelled()
        yield directory
        names[:] = [name for name in names if name not in EXCLUDED_DIRECTORIES]


def _listening(chosen: Configured) -> Result:
    listen, holder = chosen.config.listen, holder_of(chosen.config.state_directory)
    if holder is not None:
        return Verdict.OK, f"The cell is running: {holder}."
    if listen.socket is None:
        os.close(bind_tcp(listen.port).descriptor)
        return Verdict.OK, f"Port {listen.port} is free." if listen.port else "Any free port will be used."
    os.close(bind_unix(listen.socket).descriptor)
    listen.socket.unlink()
    return Verdict.OK, f"The socket {listen.socket} can be made."


def _ms(began: float) -> str:
    return f"{1000 * (trio.current_time() - began):.0f} ms"


CHECKS: dict[str, Check] = {
    "python": _python,
    "configuration": _configuration,
    "secrets": _secrets,
    "state directory": _state_directory,
    "cache directory": _cache_directory,
    "grammars": _grammars,
    "vector store": _store,
    "embedder": _embedder,
    "watching": _watching,
    "listening": _listening,
}
"""Name → check, in the order in which they are carried out."""
