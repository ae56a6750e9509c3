"""Finding and reading the file in which the reference engine keeps a workspace's hashes."""

import logging
from pathlib import Path

import trio

from semindex.core.reference_cache import parse_reference_cache
from semindex.model.ids import reference_cache_file

logger = logging.getLogger(__name__)

LARGEST = 256 * 1024 * 1024
"""Bytes above which a file is not read: a million paths take about half of that."""


async def read_reference_cache(directory: Path, workspace: str, threads: trio.CapacityLimiter) -> dict[str, str]:
    """Return relative path → file hash of a canonical workspace; empty if its file is not there or makes no sense."""
    return await trio.to_thread.run_sync(_read, directory / reference_cache_file(workspace), workspace, limiter=threads)


def _read(file: Path, workspace: str) -> dict[str, str]:
    try:
        if file.stat().st_size > LARGEST:
            raise ValueError("it is too large")
        return parse_reference_cache(file.read_text(encoding="utf-8"), workspace)
    except FileNotFoundError:
        logger.info("there is no %s: every file is chunked anew", file)
    except (OSError, ValueError) as error:
        logger.warning("%s cannot be used (%s): every file is chunked anew", file, error)
    return {}
