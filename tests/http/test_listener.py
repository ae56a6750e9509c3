"""Sockets that are bound: what is replaced, what is refused."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path, PosixPath

import pytest

from semindex.config import ListenConfig
from semindex.http.listener import bind_tcp, bind_unix, bound
from semindex.model.errors import ConfigurationError


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """Bind a Unix socket, and give the socket itself."""
    with bound(ListenConfig(socket=path)) as endpoint:
        assert endpoint.url == f"unix:{path}"
        with closing(socket.socket(fileno=endpoint.descriptor)) as bound_socket:
            yield bound_socket


def test_a_socket_is_private_whatever_the_umask_and_goes_in_the_end(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with listening(tmp_path / "cell.socket"):
            assert stat.S_IMODE((tmp_path / "cell.socket").stat().st_mode) == 0o600
        assert os.umask(0) == 0
    finally:
        os.umask(before)

    assert list(tmp_path.iterdir()) == []


def test_a_socket_that_nobody_listens_on_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "cell.socket"
    with closing(socket.socket(socket.AF_UNIX)) as left_behind:
        left_behind.bind(str(path))

    with listening(path), closing(socket.socket(socket.AF_UNIX)) as client:
        client.connect(str(path))


def test_a_socket_that_somebody_listens_on_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "cell.socket"
    with listening(path), closing(socket.socket(socket.AF_UNIX)) as client:
        with pytest.raises(ConfigurationError, match="Another process listens on"), listening(path):
            pass
        client.connect(str(path))


def test_a_socket_whose_listener_takes_no_more_connections_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "cell.socket"
    with closing(socket.socket(socket.AF_UNIX)) as busy, ExitStack() as stack:
        busy.bind(str(path))
        busy.listen(0)
        with suppress(BlockingIOError):
            while True:
                client = stack.enter_context(socket.socket(socket.AF_UNIX))
                client.setblocking(False)
                client.connect(str(path))

        with pytest.raises(ConfigurationError, match="Another process listens on"), listening(path):
            pass

    assert path.is_socket()


def test_a_socket_of_another_kind_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cell.socket"
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as other:
        other.bind(str(path))

        with pytest.raises(ConfigurationError, match="cannot be replaced: Protocol wrong type"), listening(path):
            pass

    assert path.is_socket()


class Fleeting(PosixPath):
    """A path whose file goes as soon as it has been looked at."""

    def lstat(self) -> os.stat_result:
        found = super().lstat()
        self.unlink()
        return found


def test_a_socket_that_goes_while_it_is_looked_at_is_in_nobodys_way(tmp_path: Path) -> None:
    path = Fleeting(tmp_path / "cell.socket")
    with closing(socket.socket(socket.AF_UNIX)) as left_behind:
        left_behind.bind(str(path))

    with closing(socket.socket(fileno=bind_unix(path).descriptor)), closing(socket.socket(socket.AF_UNIX)) as client:
        client.connect(str(path))


@pytest.mark.parametrize(("name", "message"), [
    ("file", "is not a socket; choose another path"),
    ("directory", "is not a socket; choose another path"),
    ("file/cell.socket", "cannot be looked at: Not a directory"),
    ("missing/cell.socket", "cannot be listened on: No such file or directory"),
    ("long" * 40, "cannot be listened on: AF_UNIX path too long"),
])  # fmt: skip
def test_a_path_that_no_socket_can_have_is_refused_and_left_alone(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()

    with pytest.raises(ConfigurationError, match=message), listening(tmp_path / name):
        pass

    assert sorted(path.name for path in tmp_path.iterdir()) == ["directory", "file"]


def test_any_free_port_can_be_taken_and_one_that_is_taken_is_named() -> None:
    endpoint = bind_tcp(0)
    with closing(socket.socket(fileno=endpoint.descriptor)) as bound_socket:
        host, port = bound_socket.getsockname()
        assert (host, endpoint.url) == ("127.0.0.1", f"http://127.0.0.1:{port}")
        with pytest.raises(ConfigurationError, match=f"Port {port} cannot be listened on: Address already in use"):
            bind_tcp(port)
