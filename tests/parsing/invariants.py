"""What holds for the chunks of any text whatsoever."""

from semindex.core.collector import MAX_UNITS, MIN_UNITS
from semindex.core.filetypes import handling
from semindex.core.gaps import uncovered_runs
from semindex.core.utf16 import to_units
from semindex.files.reading import decode
from semindex.model.chunks import Chunk
from semindex.model.ids import well_formed
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.chunker import Cut, chunk_text


def check(text: str, path: str) -> Cut:
    """Chunk a text under both profiles, assert what always holds, and return what the extended profile gives."""
    kilo = chunk_text(text, path, ChunkingProfile.KILO)
    extended = chunk_text(text, path, ChunkingProfile.EXTENDED)
    assert extended.handling == (handling(path, ChunkingProfile.EXTENDED) or "none")
    lines = text.split("\n")
    for cut in (kilo, extended):
        hashes = [chunk.segment_hash for chunk in cut.chunks]
        assert len(hashes) == len(set(hashes))
        for chunk in cut.chunks:
            assert 1 <= chunk.start_line <= chunk.end_line <= len(lines)
            assert chunk.length == len(to_units(chunk.text))
            assert chunk.length <= MAX_UNITS
            assert chunk.length >= MIN_UNITS - 1 or chunk.type.endswith("_segment")
            well_formed(chunk.text).encode()
    if extended.handling != "none":
        _check_extended(lines, kilo.chunks, extended.chunks)
    return extended


def _check_extended(lines: list[str], kilo: tuple[Chunk, ...], extended: tuple[Chunk, ...]) -> None:
    """Assert the extended profile's promise (docs/parity.md)."""
    assert [(chunk.segment_hash, chunk.text) for chunk in kilo] == [
        (chunk.segment_hash, chunk.text) for chunk in extended[: len(kilo)]
    ]
    for chunk in extended:
        # In units, since the cut of an over-long line may fall between the halves of a character.
        named = to_units("\n".join(lines[chunk.start_line - 1 : chunk.end_line]) + "\n")
        assert to_units(chunk.text) in named, chunk
    for first, end in uncovered_runs(lines, extended):
        assert len(to_units("\n".join(lines[first:end]).strip())) < MIN_UNITS, (first, end)


def decoded(data: bytes) -> str:
    """Return the text of a file's bytes under the extended profile; binary data as if it were text."""
    text = decode(data, ChunkingProfile.EXTENDED)
    return data.decode("utf-8", "replace") if text is None else text
