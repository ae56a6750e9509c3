"""The chunker against the reference engine, file by file; the summary of the run shows a table (see conftest.py)."""

import hashlib
from pathlib import Path

import pytest

from semindex.model.ids import file_hash
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.chunker import chunk_text
from tests.parsing.parity import KIT, Agreement, agreement, figures, goldens

DOCUMENT = Path(__file__).parents[2] / "docs" / "parity.md"

KNOWN_DIFFERENT = {
    "edge/broken.cs": "syntax errors, from which the two grammars recover differently",
    "edge/huge.rdl": "no published Python package holds a SystemRDL grammar",
    "edge/unterminated.lua": "a syntax error, from which the two grammars recover differently",
    "samples/c_sharp/Program.cs": "a file-local class, newer than the reference's grammar",
    "samples/c_sharp/Shipments.cs": "primary constructors, newer than the reference's grammar",
    "samples/systemrdl/gpio.rdl": "no published Python package holds a SystemRDL grammar",
    "samples/systemrdl/timer_block.rdl": "no published Python package holds a SystemRDL grammar",
    "samples/systemrdl/uart.rdl": "no published Python package holds a SystemRDL grammar",
}

RECORDED = {
    "c": (12, 0, 0),
    "c_sharp": (3, 2, 3),
    "cpp": (9, 0, 0),
    "css": (8, 0, 0),
    "elisp": (4, 0, 0),
    "elixir": (4, 0, 0),
    "go": (9, 0, 0),
    "html": (7, 0, 0),
    "java": (8, 0, 0),
    "javascript": (26, 0, 0),
    "kotlin": (7, 0, 0),
    "lines": (53, 0, 0),
    "lua": (0, 5, 1),
    "markdown": (23, 0, 0),
    "none": (9, 0, 0),
    "ocaml": (5, 0, 0),
    "php": (6, 0, 0),
    "python": (33, 0, 0),
    "ruby": (7, 0, 0),
    "rust": (8, 0, 0),
    "solidity": (4, 0, 0),
    "systemrdl": (0, 0, 4),
    "tlaplus": (4, 0, 0),
    "toml": (4, 0, 0),
    "tsx": (5, 0, 0),
    "typescript": (13, 0, 0),
    "vue": (4, 1, 0),
    "zig": (4, 0, 0),
}
"""Files of each handling that are identical, content-equal and different. A better figure is written down here and in
docs/parity.md; a worse one needs a very good reason."""


def test_the_kit_is_whole() -> None:
    assert len(goldens()) == 295
    stored = {str(file.relative_to(KIT)) for folder in ("edge", "samples") for file in (KIT / folder).rglob("*.*")}
    assert stored | {"edge/Makefile"} == set(goldens())


@pytest.mark.parametrize("path", goldens())
def test_chunks_agree_with_the_reference(path: str) -> None:
    golden = goldens()[path]
    assert file_hash(golden.text) == golden.file_hash, "the checkout changed the file's bytes"
    if path in KNOWN_DIFFERENT:
        assert agreement(path) is Agreement.DIFFERENT, "it agrees now: take it off the list, here and in docs/parity.md"
    else:
        assert agreement(path) is not Agreement.DIFFERENT


@pytest.mark.parametrize("handling", RECORDED)
def test_no_language_falls_below_its_recorded_figure(handling: str) -> None:
    counts = figures()[handling]
    assert tuple(counts[level] for level in Agreement) == RECORDED[handling]


def test_every_language_has_a_recorded_figure() -> None:
    assert figures().keys() == RECORDED.keys()


@pytest.mark.parametrize("path", KNOWN_DIFFERENT)
def test_the_documentation_names_every_known_difference(path: str) -> None:
    assert f"`{path}`" in DOCUMENT.read_text(encoding="utf-8")


def test_a_file_of_more_than_a_mebibyte_gives_the_chunks_of_the_reference() -> None:
    parts: list[str] = []
    size = number = 0
    while size < 1_060_000:
        parts.append(
            f"def generated_function_{number:05d}(first, second):\n    total = first * {number} + second\n"
            f"    for step in range({number % 17}):\n        total += step\n    return total\n\n\n"
        )
        size += len(parts[-1])
        number += 1
    text = "".join(parts)
    assert file_hash(text) == "5229079cd5d51d0de00a8633f6f15c06182c9b4749e4a64d0a6fcf033c6d7292"
    chunks = chunk_text(text, "edge/big_over_1mib.py", ChunkingProfile.KILO).chunks
    assert len(chunks) == 7248
    joined = "\n".join(chunk.segment_hash for chunk in chunks)
    assert hashlib.sha256(joined.encode()).hexdigest() == (
        "e56f4ab9cf329cfcdeb676c827de8a672fd8db84aaeb0088e1923ce4ca80a6a6"
    )
