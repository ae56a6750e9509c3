"""One real cell for all tests of the control API, as a process, and a client with each of its tokens."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from semindex.testing.serving import TIMEOUT, ServedCell

CONTROL_TOKEN = "control-token-of-the-tests"
MCP_TOKEN = "mcp-token-of-the-tests"
MAX_REGISTRATIONS = 30
MAX_SESSIONS = 10
SOURCE = "# Heliotrope authentication validates bearer credentials before it dispatches the request.\n"


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCell]:
    """A cell for workspaces below its home, with tokens in files."""
    home = tmp_path_factory.mktemp("service").resolve()
    settings = {
        "stateDirectory": str(home / "state"),
        "cacheDirectory": str(home / "cache"),
        "allowedRoots": [str(home / "trees")],
        "listen": {"port": 0},
        "limits": {"maxRegistrations": MAX_REGISTRATIONS, "maxSessions": MAX_SESSIONS},
        "workers": 1,
    }
    (home / "trees").mkdir()
    (home / "config.json").write_text(json.dumps(settings))
    variables = {}
    for variable, token in {"CONTROL_TOKEN": CONTROL_TOKEN, "MCP_TOKEN": MCP_TOKEN}.items():
        file = home / variable
        file.write_text(f"{token}\n")
        file.chmod(0o600)
        variables[f"SEMANTIC_INDEX_{variable}_FILE"] = str(file)
    with ServedCell(home, ["--config", str(home / "config.json")], variables) as cell:
        with connected(cell, CONTROL_TOKEN) as http:
            while http.get("/readyz").status_code != 200:
                http.get("/v1/status", params={"wait": "5"})
        yield cell


def connected(service: ServedCell, token: str | None) -> httpx2.Client:
    """A client with a token, or with none."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    # Without the set-up of TLS, which no test needs and which is slow.
    return httpx2.Client(base_url=service.url, headers=headers, timeout=TIMEOUT, verify=False)


@pytest.fixture(scope="session")
def api(service: ServedCell) -> Iterator[httpx2.Client]:
    """A client with the control token."""
    with connected(service, CONTROL_TOKEN) as client:
        yield client


@pytest.fixture(scope="session")
def shared(service: ServedCell) -> str:
    """A registration that is indexed, for tests that change nothing of it."""
    tree = service.home / "trees" / "shared"
    tree.mkdir()
    (tree / "auth.py").write_text(SOURCE)
    with connected(service, CONTROL_TOKEN) as client:
        client.put("/v1/registrations/shared", json={"path": str(tree)}).raise_for_status()
        settled(client, "/v1/registrations/shared", "Indexing")
    return "shared"


@pytest.fixture
def make_tree(service: ServedCell, request: pytest.FixtureRequest) -> Callable[..., Path]:
    """Makes directories that may be indexed and that no other test uses: ``make_tree("name", file=text)``."""
    place: Path = service.home / "trees" / request.node.name.replace("/", "-")[:100]

    def make(name: str = "project", **files: str) -> Path:
        tree = place / name
        tree.mkdir(parents=True)
        for file, text in (files or {"auth": SOURCE}).items():
            (tree / f"{file}.py").write_text(text)
        return tree

    return make


@pytest.fixture
def registered(
    api: httpx2.Client, make_tree: Callable[..., Path], request: pytest.FixtureRequest
) -> Iterator[tuple[str, Path]]:
    """A registration that is indexed, and its tree."""
    tree, id_ = make_tree(), f"registration-{abs(hash(request.node.name))}"
    assert api.put(f"/v1/registrations/{id_}", json={"path": str(tree)}).status_code == 200
    settled(api, f"/v1/registrations/{id_}", "Indexing")
    yield id_, tree
    api.delete(f"/v1/registrations/{id_}", params={"purge": "true"})


def settled(api: httpx2.Client, route: str, unsettled: str) -> dict[str, Any]:
    """Wait, as clients do, until a registration or an operation has left a state, and return its status."""
    status = api.get(route).raise_for_status().json()
    while status["state"] == unsettled:
        status = api.get(route, params={"wait": "25", "since": status["revision"]}).raise_for_status().json()
    return dict(status)
