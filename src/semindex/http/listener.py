"""The listening socket of a cell, and Hypercorn serving an application on it until told to stop."""

import logging
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import trio
from attrs import frozen
from hypercorn.config import Config
from hypercorn.trio import serve
from hypercorn.typing import Framework
from starlette.types import ASGIApp

from semindex.config import ListenConfig
from semindex.http import hypercorn_fixes
from semindex.model.errors import ConfigurationError

MAX_HEADER = 16 * 1024
"""Bytes of a request's head."""
IDLE_TIMEOUT = 5.0
"""Seconds for which a connection may stay open without a request, a half-sent head included."""
MAX_MESSAGE = 64 * 1024
"""Characters of a WebSocket message."""
BACKLOG = 1024
PROBE_TIMEOUT = 1.0
"""Seconds within which a socket that is there already must tell whether somebody listens on it."""


@frozen
class Endpoint:
    """A bound socket, and how clients reach it."""

    descriptor: int
    url: str
    """``http://127.0.0.1:7790``, or ``unix:/path``."""


@contextmanager
def bound(listen: ListenConfig) -> Iterator[Endpoint]:
    """Bind what the configuration names, and remove the file of a Unix socket in the end. Raises ConfigurationError."""
    if listen.socket is None:
        yield bind_tcp(listen.port)
        return
    endpoint = bind_unix(listen.socket)
    try:
        yield endpoint
    finally:
        listen.socket.unlink(missing_ok=True)


def bind_tcp(port: int) -> Endpoint:
    """Bind a port of the loopback interface; 0 takes any. Raises ConfigurationError if it is taken."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listening.bind(("127.0.0.1", port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        raise ConfigurationError(
            f"Port {port} cannot be listened on: {error.strerror}. Choose another with listen.port or --port (0: any)."
        ) from error
    number = listening.getsockname()[1]
    return Endpoint(listening.detach(), f"http://127.0.0.1:{number}")


def bind_unix(path: Path) -> Endpoint:
    """Bind a Unix socket that only its owner may use, replacing one that nobody listens on any more.

    Raises ConfigurationError if somebody does, if that cannot be told, or if another kind of file lies there.
    """
    _remove_stale(path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    previous = os.umask(0o177)
    try:
        listening.bind(str(path))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        # A path that is too long has no error number.
        reason = error.strerror or str(error)
        raise ConfigurationError(f"The socket {path} cannot be listened on: {reason}.") from error
    finally:
        os.umask(previous)
    return Endpoint(listening.detach(), f"unix:{path}")


def _remove_stale(path: Path) -> None:
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigurationError(f"The socket {path} cannot be looked at: {error.strerror}.") from error
    if not is_socket:
        raise ConfigurationError(f"{path} is not a socket; choose another path for listen.socket.")
    try:
        is_stale = not _is_listened_on(path)
        if is_stale:
            path.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError(
            f"The socket {path} cannot be replaced: {reason}. Choose another path for listen.socket."
        ) from error
    if not is_stale:
        raise ConfigurationError(f"Another process listens on {path}.")


def _is_listened_on(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(PROBE_TIMEOUT)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except BlockingIOError:
            pass  # more clients wait than the listener takes
    return True


@frozen
class Listener:
    """Hypercorn, serving an application on an endpoint."""

    application: ASGIApp
    endpoint: Endpoint
    grace: float
    """Seconds that calls under way have to end once it stops."""
    stopping: trio.Event
    """Set to have it stop."""

    async def run(  # noqa: ASYNC128 - the server that it becomes tells that it has started
        self, *, task_status: trio.TaskStatus[list[str]] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Serve until told to stop."""
        hypercorn_fixes.install()
        config = Config()
        config.bind = [f"fd://{self.endpoint.descriptor}"]
        config.backlog = BACKLOG
        config.graceful_timeout = self.grace
        config.keep_alive_timeout = IDLE_TIMEOUT
        config.h11_max_incomplete_size = MAX_HEADER
        config.websocket_max_message_size = MAX_MESSAGE
        config.include_server_header = False
        config.errorlog = logging.getLogger("hypercorn.error")
        application = cast(Framework, self.application)
        await serve(application, config, shutdown_trigger=self.stopping.wait, task_status=task_status)
