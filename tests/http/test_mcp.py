"""The MCP door, asked by the real client of the Python SDK in both protocol eras."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
import trio
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client

from semindex.http import tools
from semindex.testing.cells import config_below, indexed
from semindex.testing.served import Served, served_cell

ERAS = ["legacy", "2026-07-28"]

# The client leaves streams of its HTTP library to the garbage collector when it closes.
pytestmark = pytest.mark.filterwarnings(r"ignore:Async generator 'http(x2|core2)[._]:ResourceWarning")

AUTH = '''"""Heliotrope authentication."""

def authenticate(request):
    """Heliotrope authentication validates bearer credentials before a request is dispatched."""
    return request.headers["authorization"].startswith("Bearer ")
'''
PAYMENTS = '''def settle(invoices):
    """The vermillion settlement ledger reconciles completed invoices at the end of the day."""
    return sum(invoice.amount for invoice in invoices if invoice.completed)
'''


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    for name, text in (
        ("one/src/auth.py", AUTH),
        ("one/docs/readme.md", "# Readme\n" + "Nothing to see here. " * 9),
        ("two/pay.py", PAYMENTS),
    ):
        file = tmp_path / "trees" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    async with served_cell(config_below(tmp_path, tmp_path / "trees")) as served:
        await indexed(served.cell, "one", tmp_path / "trees" / "one")
        await indexed(served.cell, "two", tmp_path / "trees" / "two")
        yield served


@asynccontextmanager
async def client(
    served: Served, era: str, roots: Sequence[Path] | None = None, *, token: str | None = None
) -> AsyncIterator[Client]:
    """A client of an era that tells these roots, or that cannot tell any."""

    async def list_roots(context: ClientRequestContext) -> types.ListRootsResult:
        await trio.lowlevel.checkpoint()
        return types.ListRootsResult(roots=[types.Root.model_validate({"uri": root.as_uri()}) for root in roots or ()])

    headers = {"authorization": f"Bearer {token or served.mcp_token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{served.url}/mcp", http_client=http)
        async with Client(transport, mode=era, list_roots_callback=None if roots is None else list_roots) as connected:
            yield connected


async def call(client: Client, name: str, **arguments: Any) -> types.CallToolResult:
    with trio.fail_after(30):
        return await client.call_tool(name, arguments)


def text_of(result: types.CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_finds_two_tools_that_only_read(served: Served, era: str) -> None:
    async with client(served, era) as connected:
        found = {tool.name: tool for tool in (await connected.list_tools()).tools}
    assert found.keys() == {"semantic_search", "index_status"}
    for tool in found.values():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True
        assert tool.annotations.destructive_hint is False


@pytest.mark.parametrize("era", ERAS)
async def test_the_roots_of_a_client_decide_what_it_sees(served: Served, era: str, tmp_path: Path) -> None:
    async with client(served, era, [tmp_path / "trees" / "one"]) as connected:
        result = await call(connected, "semantic_search", query="heliotrope authentication")
        assert not result.is_error, text_of(result)
        assert result.structured_content == json.loads(text_of(result))
        assert {hit["filePath"] for hit in result.structured_content["results"]} == {"src/auth.py"}
        assert result.structured_content["fresh"] is True
        other = await call(connected, "semantic_search", query="vermillion settlement ledger")
        assert "pay.py" not in text_of(other)


@pytest.mark.parametrize("era", ERAS)
async def test_a_root_below_a_workspace_narrows_the_search_to_itself(served: Served, era: str, tmp_path: Path) -> None:
    async with client(served, era, [tmp_path / "trees" / "one" / "docs"]) as connected:
        result = await call(connected, "semantic_search", query="heliotrope authentication")
        assert result.structured_content["results"] == []
        assert result.structured_content["reason"] == "filtered_out"
        wider = await call(connected, "semantic_search", query="heliotrope authentication", path="src")
        assert [hit["filePath"] for hit in wider.structured_content["results"]] == ["src/auth.py"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_whose_workspace_is_not_known_is_told_what_to_do(served: Served, era: str) -> None:
    unknown: list[list[Path] | None] = [None, [], [Path("/nowhere/at/all")], [Path("/")]]
    for roots in unknown:
        async with client(served, era, roots) as connected:
            for tool, arguments in (("semantic_search", {"query": "anything"}), ("index_status", {})):
                result = await call(connected, tool, **arguments)
                assert result.is_error, roots
                assert "root" in text_of(result), roots


async def test_a_root_may_have_any_name(served: Served, tmp_path: Path) -> None:
    root = tmp_path / "trees" / "ein Baum 100% größer#1"
    root.mkdir()
    (root / "pay.py").write_text(PAYMENTS)
    await indexed(served.cell, "three", root)
    async with client(served, "2026-07-28", [root]) as connected:
        result = await call(connected, "semantic_search", query="vermillion settlement ledger")
    assert result.structured_content["root"] == root.name


@pytest.mark.parametrize("era", ERAS)
async def test_roots_that_lead_to_two_workspaces_are_refused(served: Served, era: str, tmp_path: Path) -> None:
    async with client(served, era, [tmp_path / "trees" / "one", tmp_path / "trees" / "two"]) as connected:
        result = await call(connected, "index_status")
    assert result.is_error
    assert "Exactly one" in text_of(result)


@pytest.mark.parametrize("era", ERAS)
async def test_a_search_token_binds_to_its_registration_whatever_the_roots_say(
    served: Served, era: str, tmp_path: Path
) -> None:
    token, _ = await served.cell.search_tokens.create("two")
    async with client(served, era, [tmp_path / "trees" / "one"], token=token) as connected:
        result = await call(connected, "semantic_search", query="vermillion settlement ledger")
    assert [hit["filePath"] for hit in result.structured_content["results"]] == ["pay.py"]


@pytest.mark.parametrize("era", ERAS)
async def test_the_status_tells_progress_and_nothing_of_ids_or_paths(served: Served, era: str, tmp_path: Path) -> None:
    async with client(served, era, [tmp_path / "trees" / "one"]) as connected:
        result = await call(connected, "index_status")
    status = result.structured_content
    assert status["state"] == "Indexed"
    assert status["filesIndexed"] == 2
    assert not {"id", "path", "baselinePath", "references", "createdAt"} & status.keys()


BAD_CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("semantic_search", {}, "query"),
    ("semantic_search", {"query": ""}, "query"),
    ("semantic_search", {"query": "x" * 2001}, "query"),
    ("semantic_search", {"query": "x", "maxResults": 0}, "maxResults"),
    ("semantic_search", {"query": "x", "maxResults": "5"}, "maxResults"),
    ("semantic_search", {"query": "x", "workspace": "/etc"}, "workspace"),
    ("semantic_search", {"query": "x", "path": "../.."}, "path"),
    ("semantic_search", {"query": "x", "path": "/etc"}, "path"),
    ("index_status", {"path": "/etc"}, "path"),
    ("reindex", {}, "not found"),
]


async def test_bad_arguments_give_a_sentence_and_leave_the_connection_working(served: Served, tmp_path: Path) -> None:
    async with client(served, "2026-07-28", [tmp_path / "trees" / "one"]) as connected:
        for tool, arguments, said in BAD_CALLS:
            result = await call(connected, tool, **arguments)
            assert result.is_error, arguments
            assert said in text_of(result), arguments
            assert not (await call(connected, "index_status")).is_error


async def test_a_session_belongs_to_the_credential_that_opened_it(served: Served, tmp_path: Path) -> None:
    token, _ = await served.cell.search_tokens.create("one")
    opening = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    accept = {"accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(base_url=served.url, timeout=30) as http:
        mine = {"authorization": f"Bearer {served.mcp_token}", **accept}
        opened = await http.post("/mcp", json=opening, headers=mine)
        session = {"mcp-session-id": opened.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert (await http.post("/mcp", json=ping, headers=mine | session)).status_code == 200
        stolen = {"authorization": f"Bearer {token}", **accept}
        assert (await http.post("/mcp", json=ping, headers=stolen | session)).status_code == 404
        assert (await http.delete("/mcp", headers=stolen | session)).status_code == 404
        assert served.cell.mcp_sessions() == 1


async def test_each_of_twenty_clients_at_once_sees_its_own_workspace(served: Served, tmp_path: Path) -> None:
    seen: dict[int, str] = {}

    async def ask(number: int) -> None:
        name, query = (("one", "heliotrope authentication"), ("two", "vermillion settlement"))[number % 2]
        async with client(served, ERAS[number // 2 % 2], [tmp_path / "trees" / name]) as connected:
            result = await call(connected, "semantic_search", query=query)
            seen[number] = result.structured_content["root"]

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(ask, number)
    assert seen == {number: ("one", "two")[number % 2] for number in range(20)}


def test_an_answer_that_is_too_large_is_cut_and_says_so() -> None:
    hit = {"filePath": "a.py", "startLine": 1, "endLine": 9, "score": 0.5, "codeChunk": "ein Wört\n" * 400}
    answer = {"workspace": "/w", "state": "Indexed", "results": [hit | {"score": 1 - n / 50} for n in range(50)]}
    fitted = tools.fitted(answer)
    assert len(tools.text_of(fitted).encode()) <= tools.MAX_ANSWER
    assert fitted["results"][0]["score"] == 1
    assert fitted["cut"]["snippets"] == len(fitted["results"])
    assert "left out" in fitted["results"][0]["codeChunk"]


def test_the_first_hit_is_never_dropped() -> None:
    hit = {"filePath": "päth/" * 800, "startLine": 1, "endLine": 9, "score": 0.5, "codeChunk": "x" * 60_000}
    fitted = tools.fitted({"workspace": "/w", "state": "Indexed", "results": [hit] * 40})
    assert fitted["results"]
    assert fitted["cut"]["results"] == 40 - len(fitted["results"])
    assert len(tools.text_of(fitted).encode()) <= tools.MAX_ANSWER


def test_an_answer_that_fits_is_left_as_it_is() -> None:
    answer = {"workspace": "/w", "state": "Indexed", "results": [], "reason": "no_match"}
    assert tools.fitted(answer) == answer
