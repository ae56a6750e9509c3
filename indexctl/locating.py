"""Which service is meant, and the token for it: from the environment, else from the file that a running cell leaves."""

import http.client
import os
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

from attrs import field, frozen

from indexctl.errors import Misused, Unavailable
from semindex import discovery
from semindex.model.errors import ConfigurationError
from semindex.secret_files import read_private, secret_text

URL_VARIABLE = "SEMANTIC_INDEX_URL"
TOKEN_VARIABLE = "SEMANTIC_INDEX_CONTROL_TOKEN"
DEFAULT_URL = "http://127.0.0.1:7790"
UNIX = "unix:"


@frozen
class Service:
    """Where a service listens, and what it is to be shown."""

    url: str
    """``http://host[:port]`` or ``unix:/path``."""
    token: str = field(repr=False)
    token_source: str
    """Where the token was found, for people."""

    def connection(self, timeout: float) -> http.client.HTTPConnection:
        """Return a connection that is not open yet; opening it takes at most ``timeout`` seconds.

        Proxies of the environment play no part: what is of this machine is spoken to directly.
        """
        if self.url.startswith(UNIX):
            return _UnixConnection(self.url.removeprefix(UNIX), timeout)
        place = urlsplit(self.url)
        return http.client.HTTPConnection(place.hostname or "", place.port or 80, timeout=timeout)


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def locate(environ: Mapping[str, str] = os.environ) -> Service:
    """Return the service to talk to; asked before every call, since a cell that was restarted may listen elsewhere.

    Raises Misused where the environment is wrong, Unavailable where nothing is to be found.
    """
    url = environ.get(URL_VARIABLE, "").strip()
    try:
        token = secret_text(TOKEN_VARIABLE, environ)
        if url and token is not None:
            return _checked(url, token, _source(environ))
        running = _running_cell(environ)
        if token is not None:
            return _checked(DEFAULT_URL if running is None else running.url, token, _source(environ))
        if running is not None and url in ("", running.url):
            return _checked(running.url, read_private(running.control_token_file), str(running.control_token_file))
    except ConfigurationError as error:
        raise Misused(str(error)) from error
    if url:
        raise Misused(f"{TOKEN_VARIABLE} or {TOKEN_VARIABLE}_FILE is required for the service at {url}.")
    raise Unavailable(
        f"No running service was found; start one with: semindex serve --root DIR. Or name one by {URL_VARIABLE} and "
        f"{TOKEN_VARIABLE}_FILE."
    )


def _running_cell(environ: Mapping[str, str]) -> discovery.Discovery | None:
    """Return what a cell without configuration says of itself, if its process is there.

    One that was killed leaves its file; whoever listens on its port by now is not to be shown its token.
    """
    found = discovery.find(discovery.state_home(environ))
    if found is None:
        return None
    try:
        os.kill(found.pid, 0)
    except (OSError, OverflowError):
        return None
    return found


def _source(environ: Mapping[str, str]) -> str:
    return TOKEN_VARIABLE if environ.get(TOKEN_VARIABLE, "").strip() else environ[f"{TOKEN_VARIABLE}_FILE"].strip()


def _checked(url: str, token: str, source: str) -> Service:
    if not (token and token.isascii() and token.isprintable()):
        raise Misused(f"The token from {source} is none: a token is made of visible ASCII characters.")
    if not (url.startswith(f"{UNIX}/") or _is_http(url)):
        raise Misused(f"{URL_VARIABLE} must be http://HOST[:PORT] or unix:/PATH, but is {url}.")
    return Service(url, token, source)


def _is_http(url: str) -> bool:
    try:
        place = urlsplit(url)
        is_sound = place.port != 0 and bool(place.hostname)  # looking at the port checks it
    except ValueError:
        return False
    return is_sound and "@" not in place.netloc and url in (f"http://{place.netloc}", f"http://{place.netloc}/")
