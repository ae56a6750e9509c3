"""Calls of the control API, one connection each, and what their answers mean.

It is plain, blocking HTTP from the standard library: a command makes one call at a time, starts at once, and is ended
by Ctrl-C wherever it waits.
"""

import http.client
import json
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from indexctl.errors import CommandError, Conflict, Misused, NotFound, Unavailable
from indexctl.locating import Service
from semindex import __version__

Json = dict[str, Any]

CONNECT_TIMEOUT = 5.0
"""Seconds within which a service of this machine accepts a connection."""
ANSWER_TIMEOUT = 60.0
"""Seconds without a sign after which a service is taken for one that does not answer."""

_BY_STATUS: dict[int, type[CommandError]] = {
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    503: Unavailable,
    504: Unavailable,
}


class Client:
    """Calls a service on behalf of one command."""

    def __init__(self, locate: Callable[[], Service], timeout: float) -> None:
        """``timeout`` is what the whole command may take, in seconds."""
        self._locate = locate
        self._deadline = time.monotonic() + timeout

    def remaining(self) -> float:
        """Return the seconds that are left to the command; never less than 0."""
        return max(0.0, self._deadline - time.monotonic())

    def get(
        self,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        needs: Collection[str] = (),
        timeout: float = ANSWER_TIMEOUT,
    ) -> Json:
        """Return what a route answers; see :meth:`call`."""
        return self.call("GET", path, query, needs=needs, timeout=timeout)

    def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        *,
        needs: Collection[str] = (),
        timeout: float = ANSWER_TIMEOUT,
    ) -> Json:
        """Make a call and return its answer, which has the fields that are needed.

        ``timeout`` bounds the time without a sign of the service, in seconds. Raises CommandError and its kinds.
        """
        service = self._locate()
        target = f"{path}?{urlencode(query)}" if query else path
        # Never 0, which a socket takes for "do not wait at all".
        status, data = self._exchange(service, method, target, body, max(0.001, min(timeout, self.remaining())))
        return _understood(service, status, data, needs)

    def _exchange(
        self, service: Service, method: str, target: str, body: Json | None, timeout: float
    ) -> tuple[int, bytes]:
        headers = {
            "Authorization": f"Bearer {service.token}",
            "Accept": "application/json",
            "Connection": "close",
            "User-Agent": f"indexctl/{__version__}",
        }
        content = None
        if body is not None:
            content, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        connection = service.connection(min(CONNECT_TIMEOUT, timeout))
        try:
            connection.connect()
            connection.sock.settimeout(timeout)
            connection.request(method, target, content, headers)
            response = connection.getresponse()
            return response.status, response.read()
        except (http.client.RemoteDisconnected, http.client.IncompleteRead) as error:
            raise Unavailable(
                f"The service at {service.url} has broken off the connection; it may be ending."
            ) from error
        except http.client.HTTPException as error:
            raise _foreign(service) from error
        except (ConnectionRefusedError, FileNotFoundError) as error:
            raise Unavailable(
                f"No service answers at {service.url}; start one with: semindex serve --root DIR."
            ) from error
        except TimeoutError as error:
            raise Unavailable(f"The service at {service.url} has not answered within {timeout:.3g} seconds.") from error
        except OSError as error:
            reason = error.strerror or error
            raise Unavailable(f"The service at {service.url} cannot be reached: {reason}.") from error
        finally:
            connection.close()


def route(*segments: str) -> str:
    """Return the path of a route, its segments quoted."""
    return "".join(f"/{quote(segment, safe='')}" for segment in ("v1", *segments))


def _understood(service: Service, status: int, data: bytes, needs: Collection[str]) -> Json:
    """Return an answer that makes sense, raise what a refusal means."""
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        raise _foreign(service)
    if 200 <= status < 300 and all(name in answer for name in needs):
        return answer
    if status >= 400 and isinstance(sentence := answer.get("error"), str):
        raise _refusal(service, status, sentence, answer.get("code"))
    raise _foreign(service)


def _refusal(service: Service, status: int, sentence: str, code: object) -> CommandError:
    if status == 401:
        return CommandError(f"The service at {service.url} does not accept the token from {service.token_source}.")
    if status in (404, 405) and code in (None, "not_found", "method_not_allowed"):
        return CommandError(f"The service at {service.url} does not know this command: it is older than indexctl.")
    if code == "invalid":
        return Misused(sentence)
    return _BY_STATUS.get(status, CommandError)(sentence)


def _foreign(service: Service) -> CommandError:
    return CommandError(
        f"What answers at {service.url} is not semindex, or of another version than indexctl {__version__}."
    )
