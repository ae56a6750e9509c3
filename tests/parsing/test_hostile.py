"""Files made to hurt: small ones in tests/fixtures/hostile, large ones made here."""

from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from semindex.core.gaps import uncovered_runs
from semindex.model.chunks import ChunkedFile, FileProblem
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.pool import open_chunker_pool
from tests.parsing.invariants import check, decoded

HOSTILE = Path(__file__).parent.parent / "fixtures" / "hostile"
SMALL = sorted(file.name for file in HOSTILE.iterdir() if file.name != ".gitattributes")

MEBIBYTE = 1_048_576

LARGE: dict[str, Callable[[], str]] = {
    "one_line.js": lambda: "var a=1;" * (MEBIBYTE // 8),
    "one_line.json": lambda: "[" + ",".join(["1234567"] * (MEBIBYTE // 8 - 1)) + "]",
    "one_line.md": lambda: "# " + "x" * (MEBIBYTE - 2),
    "one_line.yaml": lambda: "\U0001f600" * (MEBIBYTE // 4),
    "one_word.py": lambda: "a" * MEBIBYTE,
    "line_feeds.py": lambda: "\n" * MEBIBYTE,
    "line_feeds.yaml": lambda: "\n" * MEBIBYTE,
    "brackets.py": lambda: "[" * 100_000 + "]" * 100_000,
    "brackets.ts": lambda: "[" * 100_000,
    "brackets.json": lambda: "[" * 100_000 + "]" * 100_000,
    "nests.json": lambda: ("[" * 575 + "]" * 575 + "\n") * 900,
    "braces.c": lambda: "{" * 100_000,
    "calls.c": lambda: "f(" * (MEBIBYTE // 2),
    "parentheses.cs": lambda: "(" * (MEBIBYTE // 2),
    "quotes.css": lambda: '"' * MEBIBYTE,
    "operators.ex": lambda: "a+" * (MEBIBYTE // 2),
    "tags.html": lambda: "<div>" * 20_000,
    "indentation.py": lambda: "".join(" " * (depth % 400) + "if x:\n" for depth in range(4000)),
    "headings.md": lambda: "# a\n" * 200_000,
}
"""Some of these take a parser more time or memory than it is allowed; the rest are chunked by their syntax."""


def test_there_are_at_least_fifty_of_them() -> None:
    assert len(SMALL) >= 50


@pytest.mark.parametrize("name", SMALL)
def test_a_hostile_file_keeps_the_promises_of_both_profiles(name: str) -> None:
    check(decoded((HOSTILE / name).read_bytes()), f"/tree/{name}")


async def test_no_hostile_file_stops_its_neighbours_or_loses_its_own_text(tmp_path: Path) -> None:
    for name, make in LARGE.items():
        (tmp_path / name).write_text(make(), encoding="utf-8")
    (tmp_path / "neighbour.py").write_text("def neighbour():\n    return 'an ordinary function, chunked as ever'\n")
    paths = [path for name in LARGE for path in (name, "neighbour.py")]
    with trio.fail_after(240):
        async with open_chunker_pool(2, file_cpu_seconds=0.5) as pool:
            results = []
            for first in range(0, len(paths), 8):
                results += await pool.chunk(str(tmp_path), paths[first : first + 8], ChunkingProfile.EXTENDED, {})
    assert [result.path for result in results] == paths
    for result in results:
        assert isinstance(result, ChunkedFile), result
        lines = (tmp_path / result.path).read_text(encoding="utf-8").split("\n")
        for first, end in uncovered_runs(lines, result.chunks):
            assert len("\n".join(lines[first:end])) < 50
        if result.path == "neighbour.py":
            assert result.warning is None
            assert [chunk.type for chunk in result.chunks] == ["function_definition"]
    assert any("did not end in time" in (result.warning or "") for result in results if isinstance(result, ChunkedFile))


async def test_a_small_hostile_tree_leaves_no_file_out(tmp_path: Path) -> None:
    with trio.fail_after(60):
        async with open_chunker_pool(1) as pool:
            results = await pool.chunk(str(HOSTILE), SMALL, ChunkingProfile.EXTENDED, {})
    assert [result.path for result in results] == SMALL
    assert [result for result in results if isinstance(result, FileProblem)] == []
