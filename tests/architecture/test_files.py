"""Rules for every file of the checkout."""

import ast
import re

import pytest

from tests.architecture.checkout import ROOT, files, is_text, modules

LONGEST_MODULE = 350
TEXTS = [path for path in files() if is_text(path)]
THIS = "tests/architecture/test_files.py"


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", modules("src", "indexctl"))
def test_a_module_says_what_it_owns_and_stays_small(path: str) -> None:
    source = read(path)
    length = source.count("\n")

    assert ast.get_docstring(ast.parse(source))
    assert length <= LONGEST_MODULE


@pytest.mark.parametrize("path", TEXTS)
def test_a_text_is_utf8_with_unix_line_ends_and_ends_its_last_line(path: str) -> None:
    content = (ROOT / path).read_bytes()

    content.decode()
    assert content.count(b"\r") == 0
    assert content[-1:] in (b"", b"\n")


def test_no_text_names_a_directory_of_the_machine_it_was_written_on() -> None:
    machine = re.compile(r"(?<![\w.-])/(?:work|root|tmp/w)/")
    found = [path for path in TEXTS if path != THIS and machine.search(read(path))]

    assert found == []


def test_no_module_refers_to_a_page_that_is_not_here() -> None:
    elsewhere = re.compile(
        r"\b(?:engine|service|wire|architecture|quality)\s+page\b|\brulings?\b|\bpage,\s+section", re.IGNORECASE
    )
    found = [
        (path, elsewhere.findall(read(path)))
        for path in modules("src", "indexctl", "qualification", "scripts", "tests", "training")
        if path != THIS and elsewhere.search(read(path))
    ]

    assert found == []


def test_each_page_and_section_that_a_module_refers_to_is_there() -> None:
    reference = re.compile(r"\b(docs/[\w./-]+\.md)(?:(?:,\s+|\s+\()([A-Z][^).]*)\))?")
    found = [
        (path, page, section)
        for path in modules("src", "indexctl", "qualification", "scripts", "training")
        for page, section in reference.findall(read(path))
        if not (ROOT / page).exists() or (section and not re.search(rf"^#+ {section}$", read(page), re.MULTILINE))
    ]

    assert found == []


def test_lock_files_hold_names_versions_and_hashes_and_no_address() -> None:
    for lock in (path for path in files() if path.startswith("requirements/")):
        assert not re.search(r"://|\.(?:org|com|net|io)\b|^\s*--(?!hash=)", read(lock), flags=re.MULTILINE), lock
    for lock in (path for path in files() if path.endswith("package-lock.json")):
        assert "://" not in read(lock), lock


def test_links_between_documents_lead_somewhere() -> None:
    link = re.compile(r"\]\((?!https?:|mailto:|#)([^)\s#]+)[^)]*\)")
    dead = [
        (document, target)
        for document in TEXTS
        if document.endswith(".md")
        for target in link.findall(read(document))
        if not (ROOT / document).parent.joinpath(target).exists()
    ]

    assert dead == []
