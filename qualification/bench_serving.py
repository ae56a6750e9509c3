"""How fast a cell answers while it does nothing, and while it indexes a tree of 2,000 files.

python -m qualification.bench_serving [TREE] [--workers N]

A real ``semindex serve`` is asked for its health, its status, an MCP session and that session's tools, one after the
other over connections that stay open; then once more from the registration of the tree until it is indexed. Whatever
runs beside it on the machine shows in both columns: the idle one is there to be compared with.
"""

import argparse
import json
import statistics
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2

from qualification.bench_index import copy_sources
from semindex.testing.serving import ServedCell

CONTROL_TOKEN, MCP_TOKEN = "control-token-of-the-benchmark", "mcp-token-of-the-benchmark"
IDLE_ROUNDS = 200
PAUSE = 0.01
"""Seconds between two rounds."""
LIMIT, RATIO = 100.0, 10.0
"""Milliseconds within which 99 of 100 answers of MCP have to come; and how many times the idle
cell's figure they may take on a machine where that one is no better."""
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"roots": {}},
    "clientInfo": {"name": "bench", "version": "1"},
}

Times = dict[str, list[float]]
"""What was asked → milliseconds of each answer."""


class Clients:
    """Automation and an agent, over one connection each."""

    def __init__(self, url: str) -> None:
        self._control = httpx2.Client(base_url=url, headers={"Authorization": CONTROL_TOKEN}, timeout=60)
        accept = "application/json, text/event-stream"
        headers = {"Authorization": MCP_TOKEN, "Accept": accept}
        self._agent = httpx2.Client(base_url=url, headers=headers, timeout=60)

    def close(self) -> None:
        """Close both connections."""
        self._control.close()
        self._agent.close()

    def register(self, tree: Path) -> None:
        """Have a tree indexed."""
        self._control.put("/v1/registrations/tree", json={"path": str(tree)}).raise_for_status()

    def state(self) -> str:
        """Return the state of the tree's index."""
        return str(self._control.get("/v1/registrations/tree").raise_for_status().json()["state"])

    def round(self, times: Times) -> None:
        """Ask everything once and note how long each answer took."""
        with timed(times, "/healthz"):
            self._control.get("/healthz").raise_for_status()
        with timed(times, "/v1/status"):
            self._control.get("/v1/status").raise_for_status()
        with timed(times, "initialize"):
            session = self._call("initialize", INITIALIZE).headers["mcp-session-id"]
        with timed(times, "tools/list"):
            self._call("tools/list", {}, session)
        self._agent.delete("/mcp", headers={"mcp-session-id": session}).raise_for_status()

    def _call(self, method: str, params: object, session: str = "") -> httpx2.Response:
        headers = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"} if session else {}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = self._agent.post("/mcp", json=message, headers=headers).raise_for_status()
        assert '"result"' in response.text, response.text
        return response


@contextmanager
def timed(times: Times, name: str) -> Iterator[None]:
    """Note how long the block took."""
    began = time.perf_counter()
    yield
    times.setdefault(name, []).append(1000 * (time.perf_counter() - began))


def ask(clients: Clients, go_on: Callable[[int], bool]) -> Times:
    """Ask round after round for as long as ``go_on`` says so, given the number of the round."""
    times: Times = {}
    number = 0
    while go_on(number):
        clients.round(times)
        number += 1
        time.sleep(PAUSE)
    return times


def p99(times: Times, name: str) -> float:
    """Return the 99th percentile of what was asked."""
    return statistics.quantiles(times[name], n=100)[98]


def shown(times: Times, name: str) -> str:
    """Return median, 99th percentile and maximum of what was asked."""
    values = times[name]
    return f"{statistics.median(values):6.1f} {p99(times, name):6.1f} {max(values):6.1f}"


def main() -> int:
    """Run it, print the figures, and return 1 if MCP was too slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", nargs="?", type=Path, default=Path(sysconfig.get_path("purelib")))
    parser.add_argument("--workers", type=int, help="processes that chunk files (default: the cell's own)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch).resolve()
        files, size = copy_sources(arguments.tree, home / "tree")
        settings = {
            "stateDirectory": str(home / "state"),
            "cacheDirectory": str(home / "cache"),
            "allowedRoots": [str(home / "tree")],
            "listen": {"port": 0},
        } | ({} if arguments.workers is None else {"workers": arguments.workers})
        (home / "config.json").write_text(json.dumps(settings))
        tokens = {"SEMANTIC_INDEX_CONTROL_TOKEN": CONTROL_TOKEN, "SEMANTIC_INDEX_MCP_TOKEN": MCP_TOKEN}
        with ServedCell(home, ["--config", str(home / "config.json")], tokens) as cell:
            clients = Clients(cell.url)
            ask(clients, lambda number: number < 20)  # what is only slow once
            idle = ask(clients, lambda number: number < IDLE_ROUNDS)
            clients.register(home / "tree")
            began = time.perf_counter()
            busy = ask(clients, lambda _: clients.state() == "Indexing")
            seconds = time.perf_counter() - began
            clients.close()
            cell.stop()
    print(f"{files} files, {size / 1e6:.1f} MB, indexed in {seconds:.1f} s; {len(busy['/healthz'])} rounds meanwhile")
    print(f"{'milliseconds':12}  {'idle: p50    p99    max':>22}  {'busy: p50    p99    max':>22}")
    for name in idle:
        print(f"{name:12}  {shown(idle, name):>22}  {shown(busy, name):>22}")
    return int(any(p99(busy, name) > max(LIMIT, RATIO * p99(idle, name)) for name in ("initialize", "tools/list")))


if __name__ == "__main__":
    raise SystemExit(main())
