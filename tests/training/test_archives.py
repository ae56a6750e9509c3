from pathlib import Path

import pytest

from tests.training.archives import CODE, COPYRIGHT, deb, debian_source, needs_dpkg, npm, wheel
from training.archives import Contents, read, wanted
from training.licences import Verdict
from training.packages import Ecosystem

GO = "// Open opens the named file and reads it to its end.\nfunc Open(name string) ([]byte, error) {\n\treturn read(name)\n}\n"


def test_a_wheel_gives_its_version_licence_and_sources(tmp_path: Path) -> None:
    wheel(tmp_path / "w", "MIT", {"demo/core.py": CODE, "demo/tests/test_core.py": CODE, "demo/data.txt": CODE})

    assert read(Ecosystem.PYPI, tmp_path / "w") == Contents(
        "1.2", Verdict("MIT", True), {"demo/core.py": CODE.encode()}
    )


def test_an_npm_package_is_judged_by_its_own_manifest_not_by_an_inner_one(tmp_path: Path) -> None:
    npm(tmp_path / "n", "ISC", {"lib/core.js": CODE, "dist/core.min.js": CODE, "node_modules/x/core.js": CODE})

    assert read(Ecosystem.NPM, tmp_path / "n") == Contents(
        "2.0.1", Verdict("ISC", True), {"lib/core.js": CODE.encode()}
    )


@needs_dpkg
def test_a_debian_package_gives_its_sources_below_their_import_path(tmp_path: Path) -> None:
    deb(
        tmp_path / "d",
        "ISC",
        {"usr/share/gocode/src/example.org/demo/open.go": GO, "usr/share/doc/demo/examples/open.go": GO},
    )

    found = read(Ecosystem.DEB, tmp_path / "d")

    assert found == Contents("1.0-1", Verdict("Expat; ISC", True), {"example.org/demo/open.go": GO.encode()})


@needs_dpkg
def test_a_debian_package_with_one_stanza_refused_gives_nothing(tmp_path: Path) -> None:
    deb(tmp_path / "d", "GPL-2+", {"usr/share/gocode/src/example.org/demo/open.go": GO})

    assert read(Ecosystem.DEB, tmp_path / "d") == Contents("1.0-1", Verdict("Expat; GPL-2+", False), {})


@pytest.mark.parametrize(("native", "version"), [(False, "1.0-3"), (True, "1.0")])
def test_a_debian_source_is_screened_file_by_file(tmp_path: Path, native: bool, version: str) -> None:
    debian_source(tmp_path / "s", {"src/free.c": CODE, "gpl/copyleft.c": CODE, "docs/a.c": CODE}, native=native)

    found = read(Ecosystem.DEBSRC, tmp_path / "s")

    assert found == Contents(version, Verdict("Expat", True), {"src/free.c": CODE.encode()})


def test_a_debian_source_whose_main_licence_is_refused_gives_nothing(tmp_path: Path) -> None:
    debian_source(tmp_path / "s", {"src/free.c": CODE}, COPYRIGHT.replace("Expat", "LGPL-2.1"))

    assert read(Ecosystem.DEBSRC, tmp_path / "s") == Contents("1.0-3", Verdict("LGPL-2.1", False), {})


@pytest.mark.parametrize("make", [wheel, npm])
def test_nothing_of_a_refused_package_is_read(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "p", "GPL-3.0-only", {"lib/core.py": CODE, "lib/core.js": CODE})

    found = read(Ecosystem.PYPI if make is wheel else Ecosystem.NPM, tmp_path / "p")

    assert found is not None
    assert found.licence == Verdict("GPL-3.0-only", False)
    assert found.sources == {}


def test_a_package_that_was_not_downloaded_is_none(tmp_path: Path) -> None:
    assert read(Ecosystem.PYPI, tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("src/core.py", True),
        ("core.go", True),
        ("src/contest/core.py", True),
        ("src/core.txt", False),
        ("tests/core.py", False),
        ("a/vendor/core.go", False),
        ("a/third_party/core.c", False),
        ("a/test_core.py", False),
        ("a/core_test.go", False),
        ("a/core.min.js", False),
        ("a/core_pb2.py", False),
        ("a/core.spec.ts", False),
    ],
)
def test_only_source_that_people_wrote_is_wanted(path: str, expected: bool) -> None:
    assert wanted(path, 1000) == expected


def test_tiny_and_huge_files_are_not_wanted() -> None:
    assert not wanted("core.py", 100)
    assert not wanted("core.py", 600_000)
