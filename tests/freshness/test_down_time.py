"""Edits made while no service runs are in the first answer that calls itself fresh."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from semindex.testing.serving import ServedCell
from tests.freshness.moves import Repository
from tests.freshness.oracle import Oracle

TIMEOUT = 120.0
TOKEN = "control-token-of-the-tests"


@contextmanager
def client_of(cell: ServedCell) -> Iterator[httpx2.Client]:
    """Provide a client of the control API."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx2.Client(base_url=cell.url, headers=headers, timeout=TIMEOUT, verify=False) as client:
        yield client


def register(cell: ServedCell, trees: Repository) -> None:
    """Register the primary and a worktree, and wait until both are indexed."""
    with client_of(cell) as client:
        for tree in (trees.primary, trees.linked):
            client.put(f"/v1/registrations/{tree.name}", json={"path": str(tree)}).raise_for_status()
            while client.get(f"/v1/registrations/{tree.name}").raise_for_status().json()["state"] != "Indexed":
                client.get(f"/v1/registrations/{tree.name}", params={"wait": "1"})


def first_fresh_answer(client: httpx2.Client, tree: Path) -> dict[str, Any]:
    """Ask from the first moment on, and return the first answer that calls itself fresh."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        asked = {"registrationId": tree.name, "query": "worthwhile everywhere", "maxResults": 50}
        response = client.post("/v1/search", json=asked)
        if response.status_code == 200 and response.json()["fresh"]:
            return dict(response.json())
        assert response.status_code in (200, 404, 409, 503), response.text
    raise AssertionError("no answer was fresh")


def texts(answer: dict[str, Any]) -> dict[str, set[str]]:
    """Return path → texts of the hits."""
    found: dict[str, set[str]] = {}
    for hit in answer["results"]:
        found.setdefault(hit["filePath"], set()).add(hit["codeChunk"].strip())
    return found


@pytest.fixture
def service(home: Path, tmp_path: Path) -> Iterator[ServedCell]:
    """A service that may index below the test's directory."""
    config = {
        "stateDirectory": str(home / "state"),
        "cacheDirectory": str(home / "cache"),
        "allowedRoots": [str(tmp_path)],
        "listen": {"port": 0},
        "indexing": {"searchMinScore": 0.05},
        "workers": 1,
    }
    (home / "config.json").write_text(json.dumps(config))
    tokens = {"SEMANTIC_INDEX_CONTROL_TOKEN": TOKEN, "SEMANTIC_INDEX_MCP_TOKEN": "mcp-token-of-the-tests"}
    with ServedCell(home, ["--config", str(home / "config.json")], tokens) as cell:
        yield cell


def edit_everything(trees: Repository) -> None:
    """Edit, delete, rename, ignore, and switch branches."""
    trees.write(trees.primary / "first0.py")
    (trees.primary / "alpha/first1.py").unlink()
    trees.write(trees.primary / "beta/added.py")
    (trees.primary / "first3.py").rename(trees.primary / "renamed.py")
    trees.git(trees.linked, "checkout", "--quiet", "linked-other")
    trees.write(trees.linked / "alpha/first4.py")
    (trees.linked / "beta").rename(trees.linked / "moved")
    (trees.linked / "moved/.gitignore").write_text("first5.py\n")


def take_it_back(trees: Repository) -> None:
    """Go back to what was committed, where it is another text than what is indexed."""
    for tree in (trees.primary, trees.linked):
        trees.git(tree, "reset", "--quiet", "--hard", "main")
        trees.git(tree, "clean", "-fdxq")


def test_edits_made_while_the_service_was_down_are_in_the_first_fresh_answer(
    service: ServedCell, tmp_path: Path
) -> None:
    trees = Repository(tmp_path / "project")
    trees.make()
    oracle = Oracle(trees.trees, trees.excludes, tmp_path / "oracle")
    register(service, trees)
    rounds: list[tuple[Callable[[], object], Callable[[Repository], None]]] = [
        (service.kill, edit_everything),
        (service.stop, take_it_back),
    ]
    for end, change in rounds:
        end()
        change(trees)
        service.start()
        with client_of(service) as client:
            for tree in (trees.linked, trees.primary):
                assert texts(first_fresh_answer(client, tree)) == {
                    path: {text.strip()} for path, text in oracle.texts(tree).items() if len(text) >= 50
                }
