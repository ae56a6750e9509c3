import csv
import re
from pathlib import Path

import pytest

from semindex.core.filetypes import GRAMMARS, LINES, MARKDOWN, extension, extensions, handling
from semindex.model.profiles import ChunkingProfile

KILO, EXTENDED = ChunkingProfile.KILO, ChunkingProfile.EXTENDED

TABLE = Path(__file__).parent.parent / "fixtures" / "parity" / "extensions.tsv"
ROWS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines(), delimiter="\t"))
SYNTAX = {
    row["extension"]: row["grammar"] for row in ROWS if row["handling"] == "syntax" and row["extension"] != ".rdl"
}

ADDED = {
    ".mjs": "javascript", ".cjs": "javascript", ".mts": "typescript", ".cts": "typescript", ".pyi": "python",
    ".cc": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hxx": "cpp",
    **dict.fromkeys(
        [".scss", ".less", ".svelte", ".proto", ".graphql", ".tf", ".ps1", ".hs", ".clj", ".jl", ".pl", ".pm", ".phtml", ".rake", ".astro", ".cmake", ".xml", "Makefile", "Dockerfile", "CMakeLists.txt"],
        LINES,
    ),
}  # fmt: skip
"""What the extended profile adds (docs/parity.md)."""


def expected(row: dict[str, str]) -> str | None:
    if row["handling"] == "not indexed":
        return None
    return SYNTAX.get(row["extension"], MARKDOWN if row["handling"] == "markdown" else LINES)


@pytest.mark.parametrize("row", [row for row in ROWS if row["extension"] != "(none)"], ids=lambda row: row["extension"])
def test_every_extension_is_handled_as_by_the_reference(row: dict[str, str]) -> None:
    name = f"a.b{row['extension']}"
    assert handling(name, KILO) == expected(row)
    assert handling(name, EXTENDED) == (expected(row) or ADDED.get(row["extension"]))


def test_the_kilo_profile_has_the_references_sixty_extensions() -> None:
    assert set(extensions(KILO)) == {row["extension"] for row in ROWS if row["handling"] != "not indexed"}
    assert len(extensions(KILO)) == 60


def test_the_extended_profile_adds_what_it_promises_and_nothing_else() -> None:
    added = set(extensions(EXTENDED)) - set(extensions(KILO))
    assert added == set(ADDED)
    for name, wanted in ADDED.items():
        assert handling(f"a{name}" if name.startswith(".") else name, EXTENDED) == wanted


def test_every_grammar_is_one_of_the_table() -> None:
    assert set(GRAMMARS) == set(SYNTAX.values())


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("src/deep/A.PY", "python"),
        ("a.tar.Md", "markdown"),
        ("folder.py/README", None),
        ("folder.py/", None),
        ("sub/Makefile", LINES),
        ("makefile", None),
        ("Makefile.am", None),
        ("trailing.", None),
        ("", None),
    ],
)
def test_only_the_last_part_of_the_name_counts(path: str, wanted: str | None) -> None:
    assert handling(path, EXTENDED) == wanted


def test_whole_names_are_of_the_extended_profile_only() -> None:
    assert handling("Makefile", KILO) is None


def test_an_extension_is_the_last_dot_and_what_follows_in_lower_case() -> None:
    assert [extension(name) for name in ("a.PY", "b/c.tar.GZ", "d.e/f", "g.")] == [".py", ".gz", "", "."]


def test_the_configuration_page_lists_every_type_and_marks_those_of_the_extended_profile() -> None:
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")
    section = page.partition("## What is indexed")[2].partition("\n## ")[0]
    shown = re.findall(r"(\*?)`([^`]+)`", "".join(re.findall(r"^\| by .*$", section, re.MULTILINE)))

    assert sorted(name for _, name in shown) == list(extensions(EXTENDED))
    assert sorted(name for star, name in shown if not star) == list(extensions(KILO))
