"""The chunker's twin gives what the real one gives for the same files."""

from pathlib import Path

import pytest

from semindex.files.reading import MAX_FILE_BYTES
from semindex.model.chunks import ChunkedFile, FileProblem, ProblemKind, UnchangedFile
from semindex.model.ids import file_hash
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.chunker import chunk_file
from semindex.testing.chunker import MemoryChunkerPool
from semindex.testing.tree import MemoryTree

EXTENDED = ChunkingProfile.EXTENDED
FILES = {
    "a.py": b"def function():\n" + b"    call()\n" * 200,
    "docs/b.md": b"# Heading\n\n" + b"Some words of prose. " * 20,
    "short.py": b"x = 1\n",
    "empty.sh": b"",
    "binary.py": b"a\0b",
    "large.py": b"x" * (MAX_FILE_BYTES + 1),
    "invalid.sql": b"select '\xff\xfe' from table_with_a_long_name_so_that_there_is_a_chunk;\n",
}


def twin(root: str) -> MemoryChunkerPool:
    return MemoryChunkerPool({root: MemoryTree(FILES)})


@pytest.mark.parametrize("profile", ChunkingProfile)
@pytest.mark.parametrize("path", [*FILES, "gone.py"])
async def test_a_file_becomes_what_the_real_chunker_makes_of_it_without_a_grammar(
    tmp_path: Path, path: str, profile: ChunkingProfile
) -> None:
    if path in FILES:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(FILES[path])
    real = chunk_file(str(tmp_path), path, profile, parse=False)

    (result,) = await twin(str(tmp_path)).chunk(str(tmp_path), [path], profile, {})

    match real, result:
        case ChunkedFile(), ChunkedFile():
            assert (result.path, result.file_hash, result.handling) == (real.path, real.file_hash, real.handling)
            assert result.chunks == real.chunks
            assert result.trusted
        case FileProblem(), FileProblem():
            assert (result.path, result.kind, result.reason) == (real.path, real.kind, real.reason)
        case _:
            pytest.fail(f"{result} instead of {real}")


async def test_there_is_one_result_per_path_in_order() -> None:
    paths = ["short.py", "gone.py", "a.py", "binary.py", "a.py"]
    known = {"short.py": file_hash("x = 1\n"), "a.py": "another hash"}

    results = await twin("/r").chunk("/r", paths, EXTENDED, known)

    assert [result.path for result in results] == paths
    assert [type(result) for result in results] == [UnchangedFile, FileProblem, ChunkedFile, FileProblem, ChunkedFile]


async def test_what_was_written_just_now_is_not_trusted() -> None:
    tree = MemoryTree(FILES)
    pool = MemoryChunkerPool({"/r": tree})
    tree.write("short.py", "x = 2\n")
    tree.write("binary.py", b"\0")

    chunked, problem = await pool.chunk("/r", ["short.py", "binary.py"], EXTENDED, {})
    assert isinstance(chunked, ChunkedFile)
    assert not chunked.trusted
    assert problem == FileProblem("binary.py", ProblemKind.SKIPPED, "The file is binary.")

    tree.advance(3)
    chunked, problem = await pool.chunk("/r", ["short.py", "binary.py"], EXTENDED, {})
    assert isinstance(chunked, ChunkedFile)
    assert chunked.trusted
    assert isinstance(problem, FileProblem)
    assert problem.signature is not None


async def test_trees_may_be_added_later() -> None:
    trees: dict[str, MemoryTree] = {}
    pool = MemoryChunkerPool(trees)
    trees["/late"] = MemoryTree(FILES)

    (result,) = await pool.chunk("/late", ["a.py"], EXTENDED, {})
    assert isinstance(result, ChunkedFile)
