"""The chunker pool's twin: chunks the files of trees in memory, in this process and at once.

Files are chunked by lines or by headings; no grammar is loaded, so that an example costs microseconds.
"""

from collections.abc import Mapping, Sequence

import trio

from semindex.files.reading import decode
from semindex.model.chunks import ChunkedFile, FileProblem, ProblemKind, UnchangedFile
from semindex.model.ids import file_hash
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.chunker import chunk_text
from semindex.testing.tree import MemoryTree


class MemoryChunkerPool:
    """Implements :class:`semindex.ports.ChunkerPool` over trees by their root."""

    def __init__(self, trees: Mapping[str, MemoryTree]) -> None:
        """Chunk the files of these trees, also of those that are added later."""
        self._trees = trees

    async def chunk(
        self, root: str, paths: Sequence[str], profile: ChunkingProfile, known: Mapping[str, str]
    ) -> list[ChunkedFile | UnchangedFile | FileProblem]:
        """Return one result per path, in order."""
        await trio.lowlevel.checkpoint()
        return [self._chunk(root, path, profile, known.get(path)) for path in paths]

    def _chunk(
        self, root: str, path: str, profile: ChunkingProfile, known_hash: str | None
    ) -> ChunkedFile | UnchangedFile | FileProblem:
        read = self._trees[root].read(path)
        if isinstance(read, FileProblem):
            return read
        text = decode(read.data, profile)
        if text is None:
            return FileProblem(
                path, ProblemKind.SKIPPED, "The file is binary.", read.signature if read.trusted else None
            )
        digest = file_hash(text)
        if digest == known_hash:
            return UnchangedFile(path, digest, read.signature, read.trusted)
        cut = chunk_text(text, f"{root}/{path}", profile, parse=False)
        return ChunkedFile(path, digest, read.signature, read.trusted, cut.handling, cut.chunks, cut.warning)
