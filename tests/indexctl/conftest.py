"""One real cell for the tests of its client, the client in this process, and the workspaces that it registers."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from indexctl import cli
from semindex.testing.serving import ServedCell
from tests.indexctl.terminal import PROGRAM

CONTROL_TOKEN = "control-token-of-the-tests"
TOKENS = {"SEMANTIC_INDEX_CONTROL_TOKEN": CONTROL_TOKEN, "SEMANTIC_INDEX_MCP_TOKEN": "mcp-token-of-the-tests"}
MAX_FILES = 400
"""Files that a workspace of the tests may have."""


@frozen
class Done:
    """What came of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, read as JSON."""
        assert self.code == 0, self.err
        return json.loads(self.out)


Run = Callable[..., Done]


@pytest.fixture(scope="session")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCell]:
    """A cell with a configuration file and tokens in its environment, for workspaces below its home."""
    home = tmp_path_factory.mktemp("cell").resolve()
    config = home / "config.json"
    config.write_text(
        json.dumps(
            {
                "stateDirectory": str(home / "state"),
                "cacheDirectory": str(home / "cache"),
                "allowedRoots": [str(home)],
                "listen": {"port": 0},
                "limits": {"maxFiles": MAX_FILES},
                "workers": 1,
            }
        )
    )
    with ServedCell(home, ["--config", str(config)], TOKENS) as process:
        ready = [*PROGRAM, "service-status", "--wait"]
        subprocess.run(ready, env=process.client_environment, check=True, capture_output=True, timeout=60)
        yield process


@pytest.fixture
def workspace(cell: ServedCell, request: pytest.FixtureRequest) -> Path:
    """A directory with one source file, which no other test uses."""
    directory = cell.home / f"workspace of {request.node.name}"[:100].replace("/", "-")
    directory.mkdir()
    (directory / "auth.py").write_text("# Heliotrope authentication validates bearer credentials before dispatch.\n")
    return directory


@pytest.fixture
def indexctl(cell: ServedCell, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line in this process, against the cell."""
    monkeypatch.setenv("HOME", str(cell.home))
    monkeypatch.setenv("SEMANTIC_INDEX_URL", cell.url)
    monkeypatch.setenv("SEMANTIC_INDEX_CONTROL_TOKEN", CONTROL_TOKEN)

    def run(*arguments: str) -> Done:
        capfd.readouterr()
        try:
            code = cli.main(arguments)
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 1
        return Done(code, *capfd.readouterr())

    return run
