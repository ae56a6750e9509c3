import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semindex.core.filetypes import GRAMMARS, LINES, MARKDOWN, extensions, handling
from semindex.model.chunks import ChunkedFile, FileProblem, ProblemKind, UnchangedFile
from semindex.model.ids import file_hash
from semindex.model.profiles import ChunkingProfile
from semindex.parsing import chunker
from semindex.parsing.chunker import chunk_file, chunk_text
from semindex.parsing.grammars import GrammarUnavailable
from tests.parsing.invariants import check
from tests.parsing.parity import Golden, goldens

KILO, EXTENDED = ChunkingProfile.KILO, ChunkingProfile.EXTENDED

FUNCTION = "def function():\n    return 'long enough for a chunk of its own'\n"
STATEMENT = "SETTING = 'a statement that no selection of the reference covers'\n"

NAMES = [f"file{name}" if name.startswith(".") else name for name in extensions(EXTENDED)]


@pytest.mark.parametrize("path", goldens())
def test_the_extended_profile_keeps_its_promise(path: str) -> None:
    check(goldens()[path].text, path)


def test_every_route_gives_chunks_of_the_extended_profile_for_the_kit() -> None:
    routes = {check(golden.text, path).handling for path, golden in goldens().items()}
    assert routes == {*GRAMMARS, LINES, MARKDOWN, "none"}


@pytest.mark.parametrize(
    ("name", "grammar"),
    [("a.mjs", "javascript"), ("a.cts", "typescript"), ("a.HH", "cpp"), ("a.pyi", "python"), ("Dockerfile", "lines")],
)
def test_the_extended_profile_chunks_files_that_the_reference_leaves_out(name: str, grammar: str) -> None:
    text = "// a comment of some length\nclass A { method() { return 'and so on'; } }\n" * 20
    assert chunk_text(text, f"/tree/{name}", KILO) == chunker.Cut("none", ())
    cut = chunk_text(text, f"/tree/{name}", EXTENDED)
    assert cut.handling == grammar
    assert cut.chunks


def test_lines_that_no_node_covers_become_gap_chunks() -> None:
    cut = chunk_text(STATEMENT + "\n\n" + FUNCTION + "\n" + STATEMENT * 2, "/tree/a.py", EXTENDED)
    assert [(chunk.type, chunk.start_line, chunk.end_line) for chunk in cut.chunks] == [
        ("function_definition", 4, 5),
        ("gap", 1, 1),
        ("gap", 7, 8),
    ]
    assert [chunk.text for chunk in cut.chunks[1:]] == [STATEMENT.rstrip(), (STATEMENT * 2).rstrip()]


def test_the_kilo_profile_has_no_gap_chunks() -> None:
    assert [chunk.type for chunk in chunk_text(STATEMENT + FUNCTION, "/tree/a.py", KILO).chunks] == [
        "function_definition"
    ]


def test_a_node_that_ends_with_its_line_does_not_cover_the_next_one() -> None:
    table = "[table]\nfirst = 'a value of some length'\nsecond = 'another value'\n"
    following = "\n# a comment that stands after the table and belongs to none\n"
    kilo = chunk_text(table, "/tree/a.toml", KILO).chunks
    extended = chunk_text(table, "/tree/a.toml", EXTENDED).chunks
    assert [(chunk.start_line, chunk.end_line) for chunk in (kilo[0], extended[0])] == [(1, 4), (1, 3)]
    assert kilo[0].segment_hash == extended[0].segment_hash
    check(table + following, "/tree/a.toml")


def test_a_grammar_that_cannot_be_loaded_costs_the_syntax_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise GrammarUnavailable(f"The grammar {name} cannot be loaded: it is not there.")

    monkeypatch.setattr(chunker, "load", fail)
    cut = chunk_text(FUNCTION, "/tree/a.py", KILO)
    assert [chunk.type for chunk in cut.chunks] == ["fallback_chunk"]
    assert cut.warning == "The grammar python cannot be loaded: it is not there. The file was chunked by its lines."
    assert chunk_text(FUNCTION, "/tree/a.yaml", KILO).warning is None


def test_syntax_that_nests_beyond_measure_is_chunked_by_lines() -> None:
    text = "\n".join(["[" * 575 + "]" * 576] * 60) + "\n"
    cut = chunk_text(text, "/tree/a.json", EXTENDED)
    assert cut.warning is not None
    assert "nests too deeply" in cut.warning
    assert {chunk.type for chunk in cut.chunks} == {"fallback_chunk_segment"}
    check(text, "/tree/a.json")


def test_the_absolute_path_enters_the_identity_of_every_chunk(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(FUNCTION)
    result = chunk_file(str(tmp_path), "a.py", EXTENDED)
    assert isinstance(result, ChunkedFile)
    assert result.path == "a.py"
    assert result.chunks == chunk_text(FUNCTION, f"{tmp_path}/a.py", EXTENDED).chunks
    assert result.chunks[0].segment_hash != chunk_text(FUNCTION, "a.py", EXTENDED).chunks[0].segment_hash


def test_a_file_that_still_has_the_known_hash_is_not_chunked(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(FUNCTION)
    unchanged = chunk_file(str(tmp_path), "a.py", EXTENDED, file_hash(FUNCTION))
    assert isinstance(unchanged, UnchangedFile)
    assert unchanged.file_hash == file_hash(FUNCTION)
    assert isinstance(chunk_file(str(tmp_path), "a.py", EXTENDED, file_hash(STATEMENT)), ChunkedFile)


@pytest.mark.parametrize(("seconds_later", "trusted"), [(0, False), (10, True)])
def test_a_binary_file_is_skipped_with_its_signature_if_that_can_be_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds_later: int, trusted: bool
) -> None:
    (tmp_path / "a.py").write_bytes(b"\0" + FUNCTION.encode())
    now = time.time_ns() + seconds_later * 10**9
    monkeypatch.setattr("time.time_ns", lambda: now)
    problem = chunk_file(str(tmp_path), "a.py", EXTENDED)
    assert isinstance(problem, FileProblem)
    assert (problem.kind, problem.reason) == (ProblemKind.SKIPPED, "The file is binary.")
    assert (problem.signature is not None) is trusted


def test_utf_16_with_a_byte_order_mark_is_chunked_by_its_syntax(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(("\ufeff" + STATEMENT + FUNCTION).encode("utf-16-be"))
    result = chunk_file(str(tmp_path), "a.py", EXTENDED)
    assert isinstance(result, ChunkedFile)
    assert result.file_hash == file_hash("\ufeff" + STATEMENT + FUNCTION)
    assert [chunk.type for chunk in result.chunks] == ["function_definition", "gap"]
    assert isinstance(chunk_file(str(tmp_path), "a.py", KILO), FileProblem)


texts = st.text(
    st.characters(max_codepoint=0x2FF) | st.sampled_from("\n\n\n  \t{}[]()<>\"'#=-*/\\;:,.\ufeff\u2028\U0001f600\ud800")
)


@settings(max_examples=150)
@given(st.sampled_from(NAMES), st.lists(texts, max_size=12), st.integers(1, 400))
def test_no_text_breaks_the_invariants(name: str, parts: list[str], repeats: int) -> None:
    check("\n".join(part * (repeats if index % 3 == 0 else 1) for index, part in enumerate(parts)), f"/tree/{name}")


kit_files = st.sampled_from([golden for golden in goldens().values() if handling(golden.path, EXTENDED) is not None])


@settings(max_examples=100)
@given(kit_files, st.data())
def test_no_mutation_of_a_sample_breaks_the_invariants(golden: Golden, data: st.DataObject) -> None:
    text = golden.text
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 200)))
        replacement = data.draw(
            st.sampled_from(["", "\n", "{", "}", "(", '"', "'", "/*", "*/", "\0", "\ufeff"]) | texts
        )
        text = text[:start] + replacement + text[end:]
    check(text, golden.path)
