"""One file in, its chunks out: chooses the route and runs it.

This is the work of a chunker process, but neither knows nor needs one.
"""

import os
from collections.abc import Sequence

from attrs import frozen

from semindex.core.collector import ChunkCollector, TooMuchText
from semindex.core.filetypes import LINES, MARKDOWN, NONE, handling
from semindex.core.gaps import chunk_gaps
from semindex.core.lines import FALLBACK, chunk_lines
from semindex.core.markdown import chunk_markdown
from semindex.core.nodequeue import chunk_nodes
from semindex.core.utf16 import encode, to_units
from semindex.files.reading import decode, read_regular
from semindex.model.chunks import Chunk, ChunkedFile, FileProblem, ProblemKind, UnchangedFile
from semindex.model.ids import file_hash
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.adaptations import adaptation
from semindex.parsing.grammars import GrammarUnavailable, load


@frozen
class Cut:
    """What a text was cut into."""

    handling: str
    chunks: tuple[Chunk, ...]
    warning: str | None = None
    """Why it was chunked in a lesser way than its type allows."""


def chunk_file(
    root: str, path: str, profile: ChunkingProfile, known_hash: str | None = None, *, parse: bool = True
) -> ChunkedFile | UnchangedFile | FileProblem:
    """Read the file at ``path`` below ``root`` and chunk it, unless its hash is ``known_hash``; blocks.

    ``root`` is a canonical absolute path. For ``parse`` see :func:`chunk_text`.
    """
    read = read_regular(root, path)
    if isinstance(read, FileProblem):
        return read
    text = decode(read.data, profile)
    if text is None:
        return FileProblem(path, ProblemKind.SKIPPED, "The file is binary.", read.signature if read.trusted else None)
    digest = file_hash(text)
    if digest == known_hash:
        return UnchangedFile(path, digest, read.signature, read.trusted)
    cut = chunk_text(text, os.path.join(root, path), profile, parse=parse)
    return ChunkedFile(path, digest, read.signature, read.trusted, cut.handling, cut.chunks, cut.warning)


def chunk_text(text: str, hash_path: str, profile: ChunkingProfile, *, parse: bool = True) -> Cut:
    """Chunk a text by the route that the name at the end of ``hash_path`` asks for.

    ``hash_path`` enters the chunks' identities: the file's absolute path wherever an index is shared with the
    reference. Without ``parse`` a file with a grammar is chunked by its lines.
    """
    route = handling(hash_path, profile)
    if route is None:
        return Cut(NONE, ())
    units = to_units(text)
    lines = units.split("\n")
    chunks = ChunkCollector(hash_path, profile)
    warning = None
    if route == MARKDOWN:
        chunk_markdown(lines, chunks)
    elif route == LINES or not parse:
        chunk_lines(lines, 1, FALLBACK, None, chunks)
    else:
        warning = _chunk_by_syntax(route, units, lines, chunks)
    if profile is ChunkingProfile.EXTENDED:
        chunk_gaps(lines, chunks)
    return Cut(route, tuple(chunks.chunks), warning)


def _chunk_by_syntax(grammar: str, units: str, lines: Sequence[str], chunks: ChunkCollector) -> str | None:
    """Chunk by the selection of a grammar, or by lines where that is not possible; return why not."""
    adapted = adaptation(grammar)
    warning = None
    try:
        selected = adapted.select(load(grammar).select(encode(units)))
        if selected:
            chunk_nodes(units, selected, adapted.children, chunks)
            return None
    except GrammarUnavailable as error:
        warning = f"{error} The file was chunked by its lines."
    except TooMuchText:
        warning = "The syntax nests too deeply for chunks; the file was chunked by its lines."
        chunks.clear()
    chunk_lines(lines, 1, FALLBACK, None, chunks)
    return warning
