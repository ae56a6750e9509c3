"""Names, file types and the allowlist of extensions."""

import pytest

from semindex.core.eligibility import FileTypes, Standing, name_exclusion, parse_extensions, shown_name
from semindex.model.errors import InvalidInput
from semindex.model.profiles import ChunkingProfile

KILO = FileTypes(ChunkingProfile.KILO)
EXTENDED = FileTypes(ChunkingProfile.EXTENDED)


@pytest.mark.parametrize("name", ["node_modules", "tmp", "coverage", ".git", "obj"])
def test_excluded_directory_names_do_not_exclude_files_of_that_name(name: str) -> None:
    as_directory, as_file = name_exclusion(name, directory=True), name_exclusion(name, directory=False)

    assert as_directory is not None
    assert as_directory[0] is Standing.EXCLUDED_NAME
    assert as_file is None or as_file[0] is Standing.DOT_NAME


@pytest.mark.parametrize("name", ["a.log", "a.b.swp", ".DS_Store", "Thumbs.db"])
def test_excluded_file_names_do_not_exclude_directories_of_that_name(name: str) -> None:
    as_file, as_directory = name_exclusion(name, directory=False), name_exclusion(name, directory=True)

    assert as_file is not None
    assert as_file[0] is Standing.EXCLUDED_NAME
    assert as_directory is None or as_directory[0] is Standing.DOT_NAME


@pytest.mark.parametrize("name", ["Build", "node_modules2", "log", "a.log.ts", "Thumbs.db.md", "a", "src."])
def test_names_that_only_resemble_excluded_ones_are_no_obstacle(name: str) -> None:
    assert name_exclusion(name, directory=True) is None
    assert name_exclusion(name, directory=False) is None


def test_the_extended_profile_has_more_file_types() -> None:
    assert not KILO.includes("a.mjs")
    assert EXTENDED.includes("a.mjs")
    assert EXTENDED.includes("Makefile")
    assert not EXTENDED.includes("makefile.am")
    assert KILO.includes("A.PY")
    assert not KILO.includes("py")


def test_an_allowlist_narrows_the_types_and_cannot_widen_them() -> None:
    types = FileTypes(ChunkingProfile.EXTENDED, frozenset(parse_extensions(["PY", ".svg"])))

    assert types.includes("a.py")
    assert types.includes("a.Py")
    assert not types.includes("a.ts")
    assert not types.includes("a.svg")
    assert not types.includes("Makefile")


def test_extensions_are_normalised() -> None:
    assert parse_extensions([" .TS ", "py", "PY", "c"]) == (".c", ".py", ".ts")


@pytest.mark.parametrize("token", ["*.js", "src/php", ".d.ts", "", ".", " ", "a b", "..js"])
def test_what_is_not_a_single_extension_is_refused(token: str) -> None:
    with pytest.raises(InvalidInput, match="is not a file extension"):
        parse_extensions(["py", token])


def test_a_name_is_shown_as_it_is_unless_it_cannot_be() -> None:
    assert shown_name("src/ünï 文件.py") == "src/ünï 文件.py"
    assert shown_name("src/\udcff.py") == "src/\\xff.py"
