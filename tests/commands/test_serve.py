"""``semindex serve`` as a process: how a life begins, how it ends, and what the next one finds."""

import fcntl
import json
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from semindex import discovery
from semindex.testing.serving import TIMEOUT, ServedCell

SOURCE = "# Heliotrope authentication validates bearer credentials before it dispatches the request.\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with a source tree in it."""
    home = tmp_path.resolve() / "home"
    tree = home / "a project"
    tree.mkdir(parents=True)
    (tree / "auth.py").write_text(SOURCE)
    return home


def own_cell(home: Path, *arguments: str) -> ServedCell:
    """A cell without configuration, whose root is the source tree."""
    return ServedCell(home, ["--root", str(home / "a project"), "--port", "0", *arguments])


def configured_cell(home: Path, **settings: Any) -> ServedCell:
    """A cell with a configuration file, and tokens in its environment."""
    file = home / "config.json"
    file.write_text(
        json.dumps(
            {
                "stateDirectory": str(home / "state"),
                "cacheDirectory": str(home / "cache"),
                "allowedRoots": [str(home)],
                "workers": 1,
                **settings,
            }
        )
    )
    tokens = {"SEMANTIC_INDEX_CONTROL_TOKEN": "control-token-of-the-tests"}
    return ServedCell(home, ["--config", str(file)], {**tokens, "SEMANTIC_INDEX_MCP_TOKEN": "mcp-token-of-the-tests"})


def state_directory(home: Path) -> Path:
    return home / ".local" / "state" / "semindex"


def client(cell: ServedCell, token: str = "control-token-of-the-tests") -> httpx2.Client:
    """A client with a token."""
    return httpx2.Client(base_url=cell.url, headers={"Authorization": f"Bearer {token}"}, timeout=TIMEOUT)


def own_client(cell: ServedCell, home: Path) -> httpx2.Client:
    """A client with the control token that the cell has made for itself."""
    return client(cell, (state_directory(home) / "control.token").read_text().strip())


def request(target: str, method: str = "GET", *headers: str) -> bytes:
    """Return the head of a request with the configured control token."""
    head = [f"{method} {target} HTTP/1.1", "Host: localhost", "Authorization: control-token-of-the-tests", *headers]
    return "\r\n".join([*head, "", ""]).encode()


def until(condition: Callable[[], bool]) -> None:
    """Wait until something outside of this process and of the cell's interfaces has come about."""
    for _ in range(100 * TIMEOUT):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it never came about")


def indexed(cell: httpx2.Client, registration: str) -> dict[str, Any]:
    """Wait until a registration is indexed, as clients do, and return its status."""
    status = cell.get(f"/v1/registrations/{registration}").json()
    while status["state"] != "Indexed":
        assert status["state"] == "Indexing", status
        since = {"wait": "25", "since": status["revision"]}
        status = cell.get(f"/v1/registrations/{registration}", params=since).json()
    return dict(status)


def refused(cell: ServedCell) -> str:
    """Start a cell that cannot start, and return what it says; its exit code is 2."""
    done = subprocess.run(
        [sys.executable, "-m", "semindex", "serve", *cell.arguments],
        env=cell.environment, cwd=cell.home, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, ""), done
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


# How a life begins


def test_a_cell_without_configuration_indexes_its_roots_and_can_be_found(home: Path) -> None:
    with own_cell(home) as cell:
        found = discovery.find(state_directory(home))
        assert found == discovery.Discovery(
            cell.url, cell.pid, state_directory(home) / "control.token", state_directory(home) / "mcp.token"
        )
        files = [discovery.FILE_NAME, "control.token", "mcp.token"]
        assert [stat.S_IMODE((state_directory(home) / name).stat().st_mode) for name in files] == [0o600] * 3
        with own_client(cell, home) as http:
            assert indexed(http, "a-project")["path"] == str(home / "a project")
            answer = http.post("/v1/search", json={"registrationId": "a-project", "query": "bearer credentials"}).json()
            assert [hit["filePath"] for hit in answer["results"]] == ["auth.py"]

        assert "is in use by process" in (message := refused(own_cell(home)))
        assert str(cell.pid) in message
        assert cell.url in message
        assert cell.stop() == 0

    assert discovery.find(state_directory(home)) is None
    with own_cell(home) as cell, own_client(cell, home) as http:
        assert [each["id"] for each in http.get("/v1/registrations").json()["registrations"]] == ["a-project"]
        assert indexed(http, "a-project")["embeddedChunks"] == 0


def test_the_greeting_is_a_ready_entry_for_mcp_clients_and_holds_no_token(home: Path) -> None:
    with own_cell(home, "--exit-on-stdin-eof") as cell:
        tokens = [(state_directory(home) / name).read_text().strip() for name in ("control.token", "mcp.token")]
        assert cell.process.stdin is not None
        assert cell.process.stdout is not None
        cell.process.stdin.write("what is said before the end does not matter")
        cell.process.stdin.close()
        greeting = cell.process.stdout.read()
        assert cell.wait() == 0

    entry = json.loads(greeting[greeting.index("{") :])["mcpServers"]["semindex"]
    export = next(line for line in greeting.splitlines() if line.startswith("  export "))
    command = f'{export}; printf %s "{entry["headers"]["Authorization"]}"'
    said = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert entry["url"] == f"{cell.url}/mcp"
    assert said == f"Bearer {tokens[1]}"
    assert not any(token in greeting + cell.log.read_text() for token in tokens)


def test_a_root_that_is_missing_is_refused_at_first_and_waited_for_later(home: Path) -> None:
    tree, elsewhere = home / "a project", home / "unmounted"
    cell = own_cell(home)
    tree.rename(elsewhere)
    assert f"There is no directory {tree}" in refused(cell)
    assert not state_directory(home).exists()

    elsewhere.rename(tree)
    with cell, own_client(cell, home) as http:
        indexed(http, "a-project")
        assert cell.stop() == 0
    tree.rename(elsewhere)
    with cell, own_client(cell, home) as http:
        until(lambda: http.get("/healthz").json()["status"] == "ready")
        assert http.get("/v1/registrations/a-project").json()["path"] == str(tree)
        assert cell.stop() == 0

    cell.arguments = [*cell.arguments, "--root", str(home / "a typo")]
    with cell:
        assert cell.wait() == 2
    assert f"semindex: --root: There is no directory {home / 'a typo'}" in cell.log.read_text()


@pytest.mark.parametrize(("arguments", "message"), [
    ([], "name a directory with --root, or a configuration file with --config"),
    (["--config", "no such file"], "no such file cannot be read"),
    (["--root", "/", "--port", "0"], "/ is the whole file system"),
])  # fmt: skip
def test_a_cell_that_cannot_start_says_why(home: Path, arguments: list[str], message: str) -> None:
    assert message in refused(ServedCell(home, arguments))


def test_a_configured_cell_needs_two_different_tokens(home: Path) -> None:
    cell = configured_cell(home, listen={"port": 0})
    cell.variables["SEMANTIC_INDEX_MCP_TOKEN"] = cell.variables["SEMANTIC_INDEX_CONTROL_TOKEN"]

    assert "use two different tokens" in refused(cell)


def test_a_port_that_is_taken_is_named(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        assert f"Port {port} cannot be listened on" in refused(configured_cell(home, listen={"port": port}))


def test_a_unix_socket_is_for_its_owner_alone_and_goes_with_the_cell(home: Path) -> None:
    path = home / "cell.socket"
    with configured_cell(home, listen={"socket": str(path)}) as cell:
        assert cell.url == f"unix:{path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path)), base_url="http://anything") as http:
            assert http.get("/healthz").status_code == 200
            assert http.get("/healthz", headers={"Origin": "http://localhost"}).status_code == 403
        cell.signal(signal.SIGINT)
        assert cell.wait() == 0

    assert not path.exists()


# How it ends


def test_an_end_waits_for_no_one_who_holds_it_up(home: Path) -> None:
    cell = configured_cell(home, listen={"port": 0}, shutdown={"requestGraceMs": 500, "drainGraceMs": 500})
    with cell, client(cell) as http, ExitStack() as stack:
        port = int(cell.url.rpartition(":")[2])
        idle, half_sent, stalled, waiting = (
            stack.enter_context(socket.create_connection(("127.0.0.1", port), TIMEOUT)) for _ in range(4)
        )
        idle.sendall(request("/healthz"))
        assert idle.recv(1 << 16)
        half_sent.sendall(request("/v1/search", "POST", "Content-Length: 100") + b"{")
        stalled.settimeout(1)
        with suppress(TimeoutError):
            stalled.sendall(request("/metrics") * 3000)  # answers of some 30 MB, none of which is read
        revision = http.get("/v1/status").json()["revision"]
        waiting.sendall(
            request(f"/v1/status?wait=25&since={revision}", "GET", "Expect: 100-continue", "Content-Length: 1")
        )
        assert waiting.recv(1 << 16).startswith(b"HTTP/1.1 100 ")  # it has arrived
        waiting.sendall(b" ")

        assert cell.stop() == 0  # it would be 1 if it had been cut

        answer = b"".join(iter(lambda: waiting.recv(1 << 16), b""))
        assert b'"phase":"stopping"' in answer
        assert "no more calls" in cell.log.read_text()


def test_a_second_signal_ends_a_cell_at_once(home: Path) -> None:
    cell = configured_cell(home, listen={"port": 0}, shutdown={"requestGraceMs": 1000 * 2 * TIMEOUT})
    with cell, socket.create_connection(("127.0.0.1", int(cell.url.rpartition(":")[2]))) as half_sent:
        half_sent.sendall(request("/v1/search", "POST", "Content-Length: 100") + b"{")
        cell.signal(signal.SIGINT)
        until(lambda: "ending in order because of SIGINT" in cell.log.read_text())
        cell.signal(signal.SIGINT)

        assert cell.wait() == -signal.SIGINT


def test_a_successor_waits_for_a_cell_that_is_ending_and_takes_its_port(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    first = configured_cell(home, listen={"port": port}, shutdown={"requestGraceMs": 1500})
    second = ServedCell(home, first.arguments, first.variables)
    with first, socket.create_connection(("127.0.0.1", port)) as half_sent:
        half_sent.sendall(request("/v1/search", "POST", "Content-Length: 100") + b"{")
        first.signal(signal.SIGTERM)
        until(lambda: first.log.read_text().count("ending in order") == 1)
        with second, client(second) as http:
            assert http.get("/v1/status").json()["phase"] in ("starting", "ready")
            assert first.wait() == 0
            assert second.stop() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="handlers are found by /proc")
def test_a_cell_that_waits_for_another_to_end_can_be_ended(home: Path) -> None:
    cell = configured_cell(home, listen={"port": 0}, shutdown={"drainGraceMs": 1000 * 2 * TIMEOUT})
    (home / "state").mkdir(mode=0o700)
    with (home / "state" / "cell.lock").open("w") as lock:
        json.dump({"pid": 1, "phase": "stopping", "url": None}, lock)
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen(
            [sys.executable, "-m", "semindex", "serve", *cell.arguments], env=cell.environment, cwd=home
        ) as process:
            until(lambda: handles(process.pid, signal.SIGTERM))
            process.send_signal(signal.SIGTERM)

            assert process.wait(TIMEOUT) == 0


def handles(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal."""
    caught = Path(f"/proc/{pid}/status").read_text().partition("SigCgt:")[2].split()[0]
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_a_kill_leaves_no_process_behind_and_loses_nothing(home: Path) -> None:
    for number in range(300):
        (home / "a project" / f"module{number}.py").write_text(f"# Module number {number} of many.\n{SOURCE}" * 3)
    with own_cell(home) as cell, own_client(cell, home) as http:
        until(lambda: http.get("/v1/registrations/a-project").json().get("totalChunks", 0) > 0)
        started = psutil.Process(cell.pid).children(recursive=True)
        assert len(started) >= 2  # a chunker's worker, the store's worker
        cell.kill()
        assert psutil.wait_procs(started, timeout=TIMEOUT)[1] == []

    with own_cell(home) as cell, own_client(cell, home) as http:
        status = indexed(http, "a-project")
        assert status["filesIndexed"] == 301
        assert status["totalChunks"] > 300
        assert cell.stop() == 0
