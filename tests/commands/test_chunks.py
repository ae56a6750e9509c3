import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from semindex.commands import chunks
from semindex.model.profiles import ChunkingProfile
from semindex.parsing.chunker import chunk_text
from tests.parsing.parity import KIT, goldens

FUNCTION = "def function():\n    return 'long enough for a chunk of its own'\n"
GAP = "SETTING = 'a statement that no selection of the reference covers'\n"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    parser = argparse.ArgumentParser()
    chunks.add_parser(parser.add_subparsers())
    chosen = parser.parse_args(["chunks", *arguments])
    code = chosen.run(chosen)
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_file_is_described_with_the_chunks_that_the_engine_would_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text(GAP + FUNCTION)
    code, (described,) = run(capsys, str(tmp_path / "a.py"))
    expected = chunk_text(GAP + FUNCTION, f"{tmp_path.resolve()}/a.py", ChunkingProfile.EXTENDED).chunks
    assert code == 0
    assert list(described) == ["path", "handling", "fileHash", "chunks"]
    assert described["path"] == str(tmp_path / "a.py")
    assert described["handling"] == "python"
    assert [(row["startLine"], row["endLine"], row["type"], row["identifier"]) for row in described["chunks"]] == [
        (2, 3, "function_definition", "function"),
        (1, 1, "gap", None),
    ]
    assert [row["segmentHash"] for row in described["chunks"]] == [chunk.segment_hash for chunk in expected]


def test_the_whole_kit_can_be_compared_through_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(KIT)
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(goldens()) + "\n\n"))
    code, described = run(capsys, "--profile", "kilo", "--relative-to", ".")
    assert code == 0
    assert [row["path"] for row in described] == list(goldens())
    keys = ("startLine", "endLine", "contentSha256", "segmentHash")
    different = []
    for row, golden in zip(described, goldens().values(), strict=True):
        assert row["fileHash"] == golden.file_hash
        result = sorted(tuple(chunk[key] for key in keys) for chunk in row["chunks"])
        if result not in [sorted((r[0], r[1], r[3], r[4]) for r in rows) for rows in golden.results]:
            different.append(row["path"])
    assert len(different) == 8
    binary = {"edge/garbage.py", "edge/nul_bytes.py", "edge/nul_bytes.yaml", "edge/utf16le.ts"}
    assert {row["path"]: row["skipped"] for row in described if "skipped" in row} == dict.fromkeys(
        binary, "The file is binary."
    )


def test_the_path_in_the_hashes_is_relative_to_any_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.py").write_text(FUNCTION)
    monkeypatch.chdir(tmp_path / "sub")
    _, (described,) = run(capsys, "a.py", "--relative-to", "..")
    assert described["path"] == "a.py"
    expected = chunk_text(FUNCTION, "sub/a.py", ChunkingProfile.EXTENDED).chunks[0].segment_hash
    assert described["chunks"][0]["segmentHash"] == expected


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_described(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text(FUNCTION)
    code, (missing, described) = run(capsys, str(tmp_path / "none.py"), str(tmp_path / "a.py"))
    assert code == 1
    assert missing == {
        "path": str(tmp_path / "none.py"),
        "problem": "gone",
        "reason": "There is no regular file at this path.",
    }
    assert len(described["chunks"]) == 1


def test_a_file_that_is_not_for_the_index_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "large.yaml").write_text("a: b\n" * 220_000)
    (tmp_path / "unknown.xyz").write_text(FUNCTION)
    code, (large, unknown) = run(capsys, str(tmp_path / "large.yaml"), str(tmp_path / "unknown.xyz"))
    assert code == 0
    assert large["skipped"] == "The file is larger than 1 MiB."
    assert large["chunks"]
    assert (unknown["handling"], unknown["chunks"]) == ("none", [])


def test_what_is_printed_holds_no_half_of_a_character(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.md").write_text("# " + "\U0001f600" * 30 + "\n" + "\U0001d552" * 1200)
    _, (described,) = run(capsys, str(tmp_path / "a.md"))
    assert len(described["chunks"]) == 4  # one of the heading's line, three of the line below
    for row in described["chunks"]:
        assert row["identifier"] == "\U0001f600" * 30
        json.dumps(row, ensure_ascii=False).encode()


def test_an_unknown_profile_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(capsys, "a.py", "--profile", "other")
    assert caught.value.code == 2
