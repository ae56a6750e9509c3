"""``semindex chunks``: how files are chunked, one JSON object a line.

For people who wonder why something is not found, and for tools that compare engines. A file that is not for the index
(binary, too large) says so and is chunked all the same.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable
from typing import Any

from semindex.model.chunks import Chunk, FileProblem
from semindex.model.ids import file_hash, sha256_hex
from semindex.model.profiles import ChunkingProfile

CONTENT_DIGITS = 16
"""Hex digits of the hash of a chunk's text: as in the parity kit, enough to compare by."""

READ_LIMIT = 64 << 20
"""Bytes above which even this command does not read a file."""


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "chunks",
        help="show how files are chunked",
        description="Print one JSON object per file: how it is handled, its hash, and its chunks. "
        "Exits with 1 if a file could not be read.",
    )
    parser.add_argument(
        "paths", metavar="PATH", nargs="*", help="a file (default: one path per line of standard input)"
    )
    parser.add_argument(
        "--profile",
        type=ChunkingProfile,
        choices=list(ChunkingProfile),
        default=ChunkingProfile.EXTENDED,
        help="chunking profile (default: %(default)s)",
    )
    parser.add_argument(
        "--relative-to",
        metavar="DIR",
        help="let the path relative to this directory enter the segment hashes (default: the absolute path)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command and return its exit code."""
    paths: Iterable[str] = arguments.paths or (line.rstrip("\n") for line in sys.stdin)
    code = 0
    for path in filter(None, paths):
        described = describe(path, arguments.profile, arguments.relative_to)
        sys.stdout.write(json.dumps(described) + "\n")
        sys.stdout.flush()
        if "problem" in described:
            code = 1
    return code


def describe(path: str, profile: ChunkingProfile, relative_to: str | None) -> dict[str, Any]:
    """Return what is printed of one file: its chunks, or the problem that there is with it."""
    from semindex.files.reading import MAX_FILE_BYTES, decode, read_regular
    from semindex.parsing.chunker import chunk_text

    directory, name = os.path.realpath(os.path.dirname(path)), os.path.basename(path)
    read = read_regular(directory, name, limit=READ_LIMIT)
    if isinstance(read, FileProblem):
        return {"path": path, "problem": read.kind.value, "reason": read.reason}
    text = decode(read.data, profile)
    skipped = "The file is larger than 1 MiB." if len(read.data) > MAX_FILE_BYTES else None
    if text is None:
        text, skipped = read.data.decode("utf-8", "replace"), "The file is binary."
    hash_path = os.path.join(directory, name)
    if relative_to is not None:
        hash_path = os.path.relpath(hash_path, os.path.realpath(relative_to))
    cut = chunk_text(text, hash_path, profile)
    remarks = {"skipped": skipped, "warning": cut.warning}
    return {
        "path": path,
        "handling": cut.handling,
        "fileHash": file_hash(text),
        **{key: remark for key, remark in remarks.items() if remark is not None},
        "chunks": [_chunk(chunk) for chunk in cut.chunks],
    }


def _chunk(chunk: Chunk) -> dict[str, Any]:
    return {
        "startLine": chunk.start_line,
        "endLine": chunk.end_line,
        "length": chunk.length,
        "contentSha256": sha256_hex(chunk.text)[:CONTENT_DIGITS],
        "segmentHash": chunk.segment_hash,
        "type": chunk.type,
        "identifier": chunk.identifier,
    }
