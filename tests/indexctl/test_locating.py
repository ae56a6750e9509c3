"""Which service and which token are taken: the environment first, then the file that a running cell leaves."""

import os
import subprocess
from pathlib import Path

import pytest

from indexctl.client import Client, route
from indexctl.errors import Misused, Unavailable
from indexctl.locating import Service, locate
from semindex.discovery import Discovery, announce
from semindex.testing.serving import ServedCell

TOKEN = {"SEMANTIC_INDEX_CONTROL_TOKEN": "token-of-the-environment"}


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment whose state directory holds nothing yet."""
    (tmp_path / "semindex").mkdir()
    return {"XDG_STATE_HOME": str(tmp_path)}


@pytest.fixture
def running(home: dict[str, str]) -> dict[str, str]:
    """The same, with the traces of a running cell."""
    state = Path(home["XDG_STATE_HOME"]) / "semindex"
    token = state / "control.token"
    token.touch(0o600)
    token.write_text("token-of-the-cell\n")
    announce(state, Discovery("http://127.0.0.1:4711", os.getpid(), token, token))
    return home


def found(environ: dict[str, str]) -> tuple[str, str]:
    service = locate(environ)
    return service.url, service.token


def test_a_running_cell_is_found_without_any_variable(running: dict[str, str]) -> None:
    assert found(running) == ("http://127.0.0.1:4711", "token-of-the-cell")


def test_variables_win_over_a_running_cell(running: dict[str, str]) -> None:
    url = {"SEMANTIC_INDEX_URL": "unix:/a path/with spaces"}

    assert found(running | TOKEN | url) == ("unix:/a path/with spaces", "token-of-the-environment")
    assert found(running | TOKEN) == ("http://127.0.0.1:4711", "token-of-the-environment")


def test_the_token_of_a_cell_is_shown_to_no_other_service(running: dict[str, str]) -> None:
    assert found(running | {"SEMANTIC_INDEX_URL": "http://127.0.0.1:4711"})[1] == "token-of-the-cell"
    with pytest.raises(Misused, match=r"is required for the service at http://127\.0\.0\.1:4712"):
        locate(running | {"SEMANTIC_INDEX_URL": "http://127.0.0.1:4712"})


def test_the_token_of_a_cell_that_was_killed_is_shown_to_nobody(running: dict[str, str]) -> None:
    state = Path(running["XDG_STATE_HOME"]) / "semindex"
    with subprocess.Popen(["true"]) as process:
        process.wait()
    announce(state, Discovery("http://127.0.0.1:4711", process.pid, state / "control.token", state / "control.token"))

    with pytest.raises(Unavailable, match="No running service"):
        locate(running)


def test_with_a_token_alone_the_usual_port_is_taken(home: dict[str, str]) -> None:
    assert found(home | TOKEN)[0] == "http://127.0.0.1:7790"


def test_nothing_to_be_found_is_said_with_how_to_start_a_service(home: dict[str, str]) -> None:
    with pytest.raises(Unavailable, match="semindex serve --root DIR"):
        locate(home)


def test_a_token_file_that_others_may_read_is_refused_with_the_remedy(home: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a token for everybody")
    file.chmod(0o644)

    with pytest.raises(Misused, match=r"chmod 600 .*/token"):
        locate(home | {"SEMANTIC_INDEX_CONTROL_TOKEN_FILE": str(file)})


@pytest.mark.parametrize("kind", ["missing", "empty", "directory"])
def test_a_token_file_that_holds_none_is_refused_by_name(home: dict[str, str], tmp_path: Path, kind: str) -> None:
    file = tmp_path / "token"
    if kind == "empty":
        file.touch(0o600)
    elif kind == "directory":
        file.mkdir(0o700)

    with pytest.raises(Misused, match=r"/token"):
        locate(home | {"SEMANTIC_INDEX_CONTROL_TOKEN_FILE": str(file)})


@pytest.mark.parametrize("token", ["two\nlines", "schlüssel-und-schloss", "a\x00b"])
def test_what_cannot_be_sent_as_a_token_is_refused_before_it_is_sent(home: dict[str, str], token: str) -> None:
    with pytest.raises(Misused, match="visible ASCII"):
        locate(home | {"SEMANTIC_INDEX_CONTROL_TOKEN": token})


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:7790",
        "https://127.0.0.1:7790",
        "http://",
        "http://127.0.0.1:port",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:0",
        "http://user@127.0.0.1:7790",
        "http://127.0.0.1:7790/v1",
        "http://127.0.0.1:7790/?x=1",
        "http://[::1",
        "unix:relative/path",
        "unix:",
    ],
)
def test_a_url_of_another_form_is_refused(home: dict[str, str], url: str) -> None:
    with pytest.raises(Misused, match="must be http://"):
        locate(home | TOKEN | {"SEMANTIC_INDEX_URL": url})


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("http://127.0.0.1:7791", "127.0.0.1", 7791),
        ("http://localhost/", "localhost", 80),
        ("http://[::1]:7790", "::1", 7790),
    ],
)
def test_host_and_port_are_those_of_the_url(home: dict[str, str], url: str, host: str, port: int) -> None:
    connection = locate(home | TOKEN | {"SEMANTIC_INDEX_URL": url}).connection(1.0)

    assert (connection.host, connection.port) == (host, port)


def test_a_service_does_not_show_its_token() -> None:
    assert "secret" not in repr(Service("http://127.0.0.1:1", "secret", "x"))


def test_a_cell_on_a_unix_socket_is_found_and_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    root = tmp_path / "root"
    root.mkdir()
    with ServedCell(tmp_path / "home", ["--root", str(root), "--socket", str(tmp_path / "the socket")]) as cell:
        answer = Client(lambda: locate(cell.environment), 10.0).get(route("status"))

        assert cell.url == f"unix:{tmp_path}/the socket"
        assert answer["phase"] in ("starting", "ready")
        assert cell.stop() == 0
    with pytest.raises(Unavailable, match="No running service"):
        locate(cell.environment)
