"""An attacker's round against a real cell: nothing gets in, nothing leaks, and others are served meanwhile."""

import json
import random
import resource
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from semindex.http.hypercorn_fixes import MAX_CONNECTIONS
from semindex.testing.serving import TIMEOUT, ServedCell
from tests.http.conftest import CONTROL_TOKEN, MAX_SESSIONS, MCP_TOKEN, connected
from tests.http.websocket import UPGRADE

ROUTES = [
    ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/v1/status"), ("GET", "/v1/registrations"),
    ("PUT", "/v1/registrations/x"), ("DELETE", "/v1/registrations/x"), ("POST", "/v1/search"), ("GET", "/v1/nothing"),
    ("POST", "/v1/registrations/x/tokens"), ("GET", "/v1/rpc"), ("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/elsewhere"),
]  # fmt: skip
PUBLIC = {"/healthz", "/readyz", "/elsewhere"}
MOST_MEMORY = 100 << 20
"""Bytes by which nothing here may make the cell grow."""


@pytest.fixture(autouse=True)
def unharmed(service: ServedCell, api: httpx2.Client) -> Iterator[None]:
    """Whatever a test does, the same process goes on, is ready, and has not grown much."""
    before = memory(service.pid)
    yield
    assert api.get("/healthz").json()["status"] == "ready"
    assert memory(service.pid) - before < MOST_MEMORY


def memory(pid: int) -> int:
    """Bytes that a process has in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.fixture
def dial(service: ServedCell) -> Iterator[Callable[[], socket.socket]]:
    """Opens connections, which are closed in the end."""
    with ExitStack() as stack:
        address = ("127.0.0.1", int(service.url.rpartition(":")[2]))
        yield lambda: stack.enter_context(socket.create_connection(address, TIMEOUT))


def head(
    target: str, method: str = "GET", *headers: str, host: str = "localhost", token: str | None = CONTROL_TOKEN
) -> bytes:
    authorization = [] if token is None else [f"Authorization: Bearer {token}"]
    return "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {host}", *authorization, *headers, "", ""]).encode()


def answer(connection: socket.socket) -> tuple[int, bytes]:
    """Read one answer: its status, and its body."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += _more(connection)
    first, _, body = received.partition(b"\r\n\r\n")
    length = int(first.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or b"0")
    while len(body) < length:
        body += _more(connection)
    return int(first.split()[1]), body


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(1 << 16)
    assert data, "the cell has closed the connection"
    return data


def until_closed(connection: socket.socket) -> bytes:
    """Read until the cell closes the connection."""
    received = b""
    with suppress(ConnectionResetError):
        while data := connection.recv(1 << 16):
            received += data
    return received


# Getting in


@pytest.mark.parametrize("header", [
    {"Host": "example.com"}, {"Host": "localhost.example.com:7790"}, {"Origin": "http://example.com"}, {"Origin": "null"},
], ids=str)  # fmt: skip
def test_a_foreign_page_gets_nothing_on_any_route_whatever_it_knows(
    service: ServedCell, header: dict[str, str]
) -> None:
    with connected(service, None) as client:
        for method, route in ROUTES:
            for token in (None, CONTROL_TOKEN, MCP_TOKEN):
                known = {} if token is None else {"Authorization": f"Bearer {token}"}
                response = client.request(method, route, headers={**header, **known})
                assert (response.status_code, response.json()["code"]) == (403, "foreign_request"), (method, route)
                assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize("authorization", [
    None, "", "Bearer", "Bearer wrong-token-of-the-tests", f"Bearer {CONTROL_TOKEN}x", f"Bearer {CONTROL_TOKEN[:-1]}",
    f"Bearer {CONTROL_TOKEN.upper()}", f"Basic {CONTROL_TOKEN}", f"Bearer {CONTROL_TOKEN} {MCP_TOKEN}", "x" * 8000,
], ids=lambda value: str(value)[:45])  # fmt: skip
def test_no_route_that_needs_a_token_opens_without_one(service: ServedCell, authorization: str | None) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    with connected(service, None) as client:
        for method, route in ROUTES:
            if route not in PUBLIC:
                response = client.request(method, f"{route}?token={CONTROL_TOKEN}", headers=headers)
                assert (response.status_code, response.json()["code"]) == (401, "unauthorized"), (method, route)
                assert response.headers["www-authenticate"] == "Bearer"


def test_a_token_given_twice_opens_nothing(dial: Callable[[], socket.socket]) -> None:
    connection = dial()
    connection.sendall(head("/v1/status", "GET", f"Authorization: Bearer {CONTROL_TOKEN}"))

    assert answer(connection)[0] == 401


@pytest.mark.parametrize("target", [
    "/v1/../healthz", "/healthz/../v1/status", "/healthz/%2e%2e/v1/status", "//v1/status", "/%76%31/status", "/v1%2fstatus",
    "/V1/status", "/healthz/", "/healthz%00", "/healthz;/v1/status", "/readyz%2f..%2fv1%2fstatus", "/mcp/", "/mcp%2f",
    "http://example.com/v1/status", "http://localhost/healthz", "*", "/./v1/status", "/metrics/", "/%2e/metrics",
])  # fmt: skip
def test_no_spelling_of_a_path_gets_around_the_token(dial: Callable[[], socket.socket], target: str) -> None:
    connection = dial()
    connection.sendall(head(target, token=None))

    status, body = answer(connection)

    assert status in (400, 401, 404), body
    assert b'"phase"' not in body


@pytest.mark.parametrize(
    "target", ["/v1/status%", "/v1/status%4", "/v1/%zz", "/healthz?a=%", "/v1/status?wait=%f", "/%ff"]
)
def test_a_broken_escape_is_malformed(dial: Callable[[], socket.socket], target: str) -> None:
    connection = dial()
    connection.sendall(head(target))

    status, body = answer(connection)

    assert (status, json.loads(body)["code"]) == (400, "bad_escape")


@pytest.mark.parametrize(("headers", "token", "target", "expected"), [
    (["Origin: http://example.com"], CONTROL_TOKEN, "/v1/rpc", (403, "foreign_request")),
    (["Origin: null"], None, "/healthz", (403, "foreign_request")),
    ([], None, "/v1/rpc", (401, "unauthorized")),
    ([], MCP_TOKEN, "/v1/rpc", (401, "unauthorized")),
    ([], CONTROL_TOKEN[:-1], "/v1/rpc", (401, "unauthorized")),
    ([], None, f"/v1/rpc?token={CONTROL_TOKEN}", (401, "unauthorized")),
    (["Sec-WebSocket-Protocol: bearer, " + CONTROL_TOKEN], None, "/v1/rpc", (401, "unauthorized")),
    ([f"Authorization: Bearer {CONTROL_TOKEN}"], CONTROL_TOKEN, "/v1/rpc", (401, "unauthorized")),
    ([], None, "/healthz", (401, "unauthorized")),
    ([], MCP_TOKEN, "/mcp", (401, "unauthorized")),
    ([], CONTROL_TOKEN, "/mcp", (404, "not_found")),
    ([], CONTROL_TOKEN, "/v1/rpc/", (404, "not_found")),
    ([], CONTROL_TOKEN, "/v1/status", (404, "not_found")),
    ([], CONTROL_TOKEN, "/v1/rp%", (400, "bad_escape")),
])  # fmt: skip
def test_a_web_socket_is_refused_before_it_opens(
    dial: Callable[[], socket.socket], headers: list[str], token: str | None, target: str, expected: tuple[int, str]
) -> None:
    connection = dial()
    connection.sendall(head(target, "GET", *UPGRADE, *headers, token=token))

    status, body = answer(connection)

    assert (status, json.loads(body)["code"]) == expected
    assert until_closed(connection) == b""


@pytest.mark.parametrize("headers", [
    (*UPGRADE, "Sec-WebSocket-Protocol: gr\u00fcn"),
    ("Connection: Upgrade, gr\u00fcn", *UPGRADE[1:]),
], ids=["protocol", "connection"])  # fmt: skip
def test_a_handshake_that_is_not_ascii_is_malformed_and_ends_nothing_else(
    dial: Callable[[], socket.socket], headers: tuple[str, ...]
) -> None:
    connection, other = dial(), dial()
    other.sendall(head("/v1/status")[:20])
    connection.sendall(head("/v1/rpc", "GET", *headers, token=None))

    assert answer(connection)[0] == 400
    assert until_closed(connection) == b""
    other.sendall(head("/v1/status")[20:])
    assert answer(other)[0] == 200


def test_data_right_behind_a_handshake_that_is_refused_end_nothing(
    service: ServedCell, dial: Callable[[], socket.socket]
) -> None:
    for number in range(200):
        connection = dial()
        connection.sendall(head("/v1/rpc", "GET", *UPGRADE, token=None) + b"\x81\x80abcd" * (number % 2))
        with suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(b"\x81\x80abcd")
        assert until_closed(connection)[:13] in (b"HTTP/1.1 401 ", b"HTTP/1.1 400 ", b"")
        connection.close()

    assert "a connection failed" not in service.log.read_text()


# Wearing out


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("target", "token", "expected"), [
    ("/v1/search", CONTROL_TOKEN, 413), ("/v1/search", None, 401), ("/elsewhere", None, 404), ("/mcp", MCP_TOKEN, 413),
])  # fmt: skip
def test_a_body_of_ten_megabytes_is_refused_and_the_connection_lives_on(
    dial: Callable[[], socket.socket], target: str, token: str | None, expected: int, chunked: bool
) -> None:
    connection = dial()
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {10 << 20}"
    types = ["Content-Type: application/json", "Accept: application/json, text/event-stream"]
    connection.sendall(head(target, "POST", framing, *types, token=token))
    piece = b" " * (1 << 16)
    for _ in range((10 << 20) // len(piece)):
        connection.sendall(b"10000\r\n" + piece + b"\r\n" if chunked else piece)
    if chunked:
        connection.sendall(b"0\r\n\r\n")

    assert answer(connection)[0] == expected
    connection.sendall(head("/v1/status"))
    assert answer(connection)[0] == 200


NOT_HTTP = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    "another version": b"GET / HTTP/9.9\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "wide spaces": b"GET  /  HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.com\r\n\r\n",
    "a folded line": b"GET / HTTP/1.1\r\n folded\r\nHost: localhost\r\n\r\n",
    "a NUL in a name": b"GET / HTTP/1.1\r\nHost: localhost\r\nA\0: b\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "a negative length": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    "an unknown coding": b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n",
    "a long target": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long header": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    "bare newlines": b"GET / HTTP/1.1\nHost: localhost\n" * 3,
    "empty lines": b"\r\n" * 5_000,
    "nothing": bytes(5_000),
}


@pytest.mark.parametrize("data", NOT_HTTP.values(), ids=NOT_HTTP.keys())
def test_what_is_not_http_is_refused_and_the_connection_closed(dial: Callable[[], socket.socket], data: bytes) -> None:
    connection = dial()
    with suppress(OSError):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)

    received = until_closed(connection)

    assert not received or int(received.split()[1]) in range(400, 506)


def test_noise_of_many_kinds_ends_nothing(dial: Callable[[], socket.socket]) -> None:
    chance = random.Random(7)
    pieces = [
        b"GET ",
        b"/v1/status",
        b" HTTP/1.1",
        b"\r\n",
        b"Host: localhost",
        b"Content-Length: 3",
        b"\0",
        b"\xff",
        b"{}",
    ]
    for _ in range(150):
        connection = dial()
        with suppress(ConnectionError):
            connection.sendall(b"".join(chance.choices(pieces, k=chance.randrange(1, 30))))
        connection.close()


def test_many_connections_that_say_nothing_keep_nobody_out(
    service: ServedCell, dial: Callable[[], socket.socket]
) -> None:
    silent = [dial() for _ in range(MAX_CONNECTIONS + 100)]

    with connected(service, CONTROL_TOKEN) as client:
        assert client.get("/v1/status").status_code == 200
    assert silent


def test_clients_that_send_half_a_request_or_read_no_answer_keep_nobody_waiting(
    service: ServedCell, dial: Callable[[], socket.socket]
) -> None:
    for _ in range(50):
        dial().sendall(head("/v1/search", "POST", "Content-Length: 1000") + b"{")
        dial().sendall(head("/v1/status")[:20])
    for _ in range(3):
        stalled = dial()
        stalled.settimeout(0.5)
        with suppress(TimeoutError):
            stalled.sendall(head("/metrics") * 2000)

    with connected(service, CONTROL_TOKEN) as client:
        assert client.get("/v1/status").status_code == 200


def test_a_client_that_waits_and_leaves_a_thousand_times_leaves_nothing_behind(
    service: ServedCell, dial: Callable[[], socket.socket]
) -> None:
    for _ in range(1000):
        connection = dial()
        connection.sendall(head("/v1/status?wait=25"))
        connection.close()

    with connected(service, CONTROL_TOKEN) as client:
        assert client.get("/v1/status").status_code == 200


def test_a_flood_of_sessions_ends_at_the_limit_and_holds_up_nobody_else(
    service: ServedCell, api: httpx2.Client
) -> None:
    initialize = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "flood", "version": "1"}},
    }  # fmt: skip
    accept = {"Accept": "application/json, text/event-stream"}
    sessions: list[str] = []
    with connected(service, MCP_TOKEN) as agent:
        try:
            statuses = []
            for _ in range(MAX_SESSIONS + 5):
                response = agent.post("/mcp", json=initialize, headers=accept)
                statuses.append(response.status_code)
                sessions += [response.headers[name] for name in ("mcp-session-id",) if name in response.headers]
            assert statuses == [200] * MAX_SESSIONS + [503] * 5
            assert api.get("/v1/status").json()["mcpSessions"] == MAX_SESSIONS
        finally:
            for session in sessions:
                agent.delete("/mcp", headers={"mcp-session-id": session})
        assert api.get("/v1/status").json()["mcpSessions"] == 0


# Leaking


def test_no_log_line_holds_a_query_a_token_or_a_files_text(
    service: ServedCell, api: httpx2.Client, make_tree: Callable[..., Path], shared: str
) -> None:
    secrets = {
        name: f"{name} marker {number}" for number, name in enumerate(["text", "query", "label", "path", "key"], 7000)
    }
    tree = make_tree(secret=f"# This file holds the {secrets['text']} which no log line may show to anybody at all.\n")
    (tree / "broken.py").write_bytes(b"\xff\xfe" + secrets["text"].encode() * 50)
    api.put("/v1/registrations/leaks", json={"path": str(tree)})
    searches: list[dict[str, Any]] = [
        {"query": secrets["query"]}, {"query": secrets["query"], "path": f"../{secrets['path']}"},
        {"query": secrets["query"], secrets["key"]: 1}, {"query": secrets["query"] * 200}, {"query": [secrets["query"]]},
    ]  # fmt: skip
    for registration in ("leaks", shared, "nobody"):
        for fields in searches:
            api.post("/v1/search", json={"registrationId": registration, **fields})
    api.post("/v1/search", content=f'{{"query": "{secrets["query"]}"')
    token = api.post("/v1/registrations/leaks/tokens", json={"label": secrets["label"]}).json()["token"]
    with connected(service, token) as agent:
        agent.get("/v1/status")
        agent.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": secrets["query"]})
    with connected(service, None) as nobody:
        nobody.get("/v1/status", headers={"Authorization": f"Bearer {CONTROL_TOKEN}-nearly"})
    api.delete("/v1/registrations/leaks", params={"purge": "true"})

    log = service.log.read_text()

    assert "not_ready" in log or "unknown_registration" in log  # refusals are logged
    for secret in [*secrets.values(), token, CONTROL_TOKEN, MCP_TOKEN]:
        assert secret not in log


def test_no_answer_shows_a_token_or_where_a_secret_lies(service: ServedCell, api: httpx2.Client, shared: str) -> None:
    token = api.post(f"/v1/registrations/{shared}/tokens").json()
    routes = [
        "/v1/status",
        "/v1/registrations",
        f"/v1/registrations/{shared}",
        f"/v1/registrations/{shared}/tokens",
        "/metrics",
    ]

    shown = "".join(api.get(route).text for route in routes)

    api.delete(f"/v1/registrations/{shared}/tokens/{token['id']}")
    assert token["id"] in shown
    for secret in (token["token"], CONTROL_TOKEN, MCP_TOKEN, str(service.home / "CONTROL_TOKEN")):
        assert secret not in shown
