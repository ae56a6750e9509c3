"""Real MCP clients against a real service: the Python SDK on Trio and on the other event loop, the TypeScript SDKs.

python -m qualification.mcp_clients

Twenty clients at once of each kind and in both protocol eras list the tools, tell their roots and must find
what is theirs and nothing else. The TypeScript part needs Node 20 and installs its two packages from the
npm registry at first use.
"""

import json
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from semindex.testing.serving import ServedCell

CLIENTS = 20
TREES = {
    "heliotrope": "The heliotrope authentication validates bearer credentials before a request is dispatched.",
    "vermillion": "The vermillion settlement ledger reconciles completed invoices at the end of the day.",
}
TYPESCRIPT = Path(__file__).with_name("mcp_typescript")

PYTHON_CLIENTS = """
import json, sys
from pathlib import Path
import anyio, httpx2, mcp_types as types
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

url, token, clients, backend, *trees = sys.argv[1:]

async def ask(era, root, query, marker, other):
    async def roots(context):
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": Path(root).as_uri()})])
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=era, list_roots_callback=roots) as client:
            names = sorted(tool.name for tool in (await client.list_tools()).tools)
            if names != ["index_status", "semantic_search"]:
                return f"tools: {names}"
            found = await client.call_tool("semantic_search", {"query": query})
            if found.is_error or marker not in json.dumps(found.structured_content):
                return f"search: {found}"
            return "saw another workspace" if other in json.dumps(found.structured_content) else ""

async def main():
    faults = {}
    async def one(number):
        mine, other = (trees[:2], trees[2:]) if number % 2 else (trees[2:], trees[:2])
        era = ("legacy", "2026-07-28")[number // 2 % 2]
        try:
            faults[number] = (era, await ask(era, mine[0], mine[1], mine[1], other[1]))
        except Exception as error:
            faults[number] = (era, repr(error))
    async with anyio.create_task_group() as group:
        for number in range(int(clients)):
            group.start_soon(one, number)
    for era, fault in faults.values():
        print(json.dumps({"kind": f"python, {backend}, {era}", "fault": fault}))

anyio.run(main, backend=backend)
"""


def outcomes(command: list[str], cwd: Path) -> Iterator[tuple[str, str]]:
    """Run clients and yield what each of them is, and what went wrong."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if len(lines) != CLIENTS:
        yield command[0], f"{len(lines)} of {CLIENTS} clients answered: {done.stderr[-500:]}"
    for line in lines:
        yield line["kind"], line["fault"]


def main() -> int:
    """Run all kinds of clients and return 1 if one of them found a fault."""
    if not (TYPESCRIPT / "node_modules").exists():
        subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=TYPESCRIPT, check=True)
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch).resolve()
        for name, sentence in TREES.items():
            tree = directory / "trees" / name
            tree.mkdir(parents=True)
            (tree / "module.py").write_text(
                f'def {name}(value):\n    """{sentence}"""\n    return [value, value + 1]\n'
            )
        roots = [str(directory / "trees" / name) for name in TREES]
        with ServedCell(directory / "home", ["--root", roots[0], "--root", roots[1], "--port", "0"]) as cell:
            wait_until_indexed(cell)
            token = next(cell.home.rglob("mcp.token")).read_text().strip()
            url = f"{cell.url}/mcp"
            pairs = [part for root, name in zip(roots, TREES, strict=True) for part in (root, name)]
            triples = [part for root, name in zip(roots, TREES, strict=True) for part in (root, name, name)]
            found = [
                *outcomes([sys.executable, "-c", PYTHON_CLIENTS, url, token, str(CLIENTS), "trio", *pairs], directory),
                *outcomes(
                    [sys.executable, "-c", PYTHON_CLIENTS, url, token, str(CLIENTS), "asyncio", *pairs], directory
                ),
                *outcomes(["node", str(TYPESCRIPT / "clients.mjs"), url, token, *triples], TYPESCRIPT),
            ]
    for kind in dict.fromkeys(kind for kind, _ in found):
        faults = [fault for each, fault in found if each == kind and fault]
        print(
            f"{'FAIL' if faults else 'PASS'}  {kind}: {sum(each == kind for each, _ in found)} clients {faults[:1] or ''}"
        )
    return 1 if any(fault for _, fault in found) else 0


def wait_until_indexed(cell: ServedCell) -> None:
    """Wait until both trees are indexed."""
    token = next(cell.home.rglob("control.token")).read_text().strip()
    revision, states = "", list[str]()
    for _ in range(60):
        query = f"?wait=5&since={revision}" if revision else ""
        request = urllib.request.Request(f"{cell.url}/v1/status{query}", headers={"authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=60) as response:
            status = json.load(response)
        states = [registration["state"] for registration in status["registrations"]]
        if states == ["Indexed"] * len(TREES):
            return
        revision = status["revision"]
    raise RuntimeError(f"The trees were not indexed in time: {states}")


if __name__ == "__main__":
    sys.exit(main())
