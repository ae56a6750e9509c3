"""What people are shown of each kind of answer."""

from typing import Any

import pytest

from indexctl.commands import Result
from indexctl.views import show

REGISTRATION = {
    "id": "shop",
    "kind": "worktree",
    "state": "Indexing",
    "message": "Indexed 5 / 1200 files (0%).",
    "path": "/src/shop",
    "baselinePath": "/src/base",
    "processedItems": 5,
    "totalItems": 1200,
    "filesIndexed": 7,
    "skippedFiles": 2,
    "failedFiles": {"count": 1, "first": [{"path": "odd.py", "reason": "It is odd."}]},
    "totalChunks": 3456,
}
SEARCH: dict[str, Any] = {"state": "Indexed", "results": [], "fresh": True, "withheld": 0}
HIT = {"filePath": "a.py", "startLine": 3, "endLine": 9, "score": 0.8765, "codeChunk": "def a():\n\n    return [red]"}


@pytest.mark.parametrize(
    ("view", "value", "shown"),
    [
        (
            "registration",
            REGISTRATION,
            [
                "shop  Indexing  5/1,200 files, 3,456 chunks",
                "worktree /src/shop, on /src/base",
                "Indexed 5 / 1200 files (0%).",
                "2 files skipped: indexctl files --id shop --state skipped",
                "failed: odd.py: It is odd.",
            ],
        ),
        ("registrations", [REGISTRATION], ["shop  worktree  Indexing  5/1,200  /src/shop"]),
        ("registrations", [], ["indexctl register --id NAME"]),
        (
            "receipt",
            {"released": "shop", "purged": True, "points": 5, "bytes": 2048},
            ["its index is deleted (5 chunks, 2 KiB)"],
        ),
        ("receipt", {"released": "shop", "purged": False}, ["shop is released; its index stays"]),
        ("receipt", {"released": "shop", "worktrees": ["a", "b"]}, ["shop is released", "Released before it: a, b."]),
        ("files", [{"path": "a.py", "state": "indexed", "chunks": 0, "inherited": True}], ["as in the primary"]),
        (
            "operation",
            {"id": "0-1", "registrationId": "shop", "kind": "reindex", "state": "running"},
            ["reindex of shop  running  0-1"],
        ),
        ("search", SEARCH | {"results": [HIT]}, ["a.py:3-9  0.88", "    def a():", "return [red]"]),
        ("search", SEARCH | {"reason": "no_match"}, ["Nothing is close enough"]),
        ("search", SEARCH | {"reason": "filtered_out"}, ["something elsewhere is"]),
        ("search", SEARCH | {"results": [HIT], "fresh": False, "pendingCount": 3}, ["Not taken in yet: 3 files"]),
        ("search", SEARCH | {"results": [HIT], "withheld": 2}, ["changes on disk: 2 hits"]),
        (
            "service",
            {
                "phase": "degraded",
                "version": "0.1.0",
                "startedAt": "today",
                "message": "The embedder does not answer.",
                "registrations": [REGISTRATION],
                "cache": {"bytes": 5 * 1024**3},
                "dependencies": {
                    "embedder": {"reachable": False, "lastError": "No route."},
                    "store": {"reachable": True},
                },
            },
            ["degraded  semindex 0.1.0  since today", "registrations: 1", "embedder: No route.", "cache: 5.0 GiB"],
        ),
        (
            "files",
            [
                {"path": "a.py", "state": "indexed", "chunks": 1},
                {"path": "b.bin", "state": "skipped", "reason": "The file is binary."},
            ],
            ["indexed  a.py  1 chunk\n", "skipped  b.bin  The file is binary."],
        ),
        (
            "explanation",
            {
                "path": "a.py",
                "searchable": False,
                "reason": "It is ignored.",
                "rule": "*.py",
                "source": ".gitignore:3",
                "chunks": [{"startLine": 20, "endLine": 30}, {"startLine": 1, "endLine": 9}],
            },
            ["a.py  not searchable", "It is ignored.", "rule: *.py  (.gitignore:3)", "chunks: 1-9, 20-30"],
        ),
        ("new_token", {"id": "7", "token": "T0ken", "label": ""}, ["T0ken\n", "only this once. Its id is 7."]),
        ("tokens", [{"id": "7", "label": "agent", "createdAt": "today"}], ["7   today    agent"]),
        ("tokens", [], ["There are none."]),
        ("revocation", {"revoked": "7"}, ["The token 7 is worthless"]),
        ("orphans", [], ["There are none."]),
        ("purged", [{"kind": "ledger", "points": 3, "name": "/gone"}], ["ledger  3       /gone", "Deleted."]),
    ],
)
def test_people_are_shown_what_matters(
    view: str, value: Any, shown: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    show(Result(view, value))
    out = capsys.readouterr().out

    for text in shown:
        assert text in out


def test_a_long_path_is_one_line_that_can_be_copied(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = "/".join(["directory"] * 20)
    show(Result("files", [{"path": path, "state": "indexed", "chunks": 3}]))

    assert path in capsys.readouterr().out
