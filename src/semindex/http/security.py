"""Who may come in: Host, Origin and credentials, decided on raw bytes before anything else looks at a request.

The rules (docs/operations.md, Security): Host must be loopback, Origin absent or loopback; on a Unix socket, Host means
nothing and any Origin is refused. Credentials are compared in constant time.
"""

import hmac
import re
from enum import Enum, auto
from typing import Protocol

from attrs import frozen
from starlette.types import Scope

from semindex.model.registrations import TokenRecord
from semindex.secrets import Tokens

_LOOPBACK = re.compile(rb"(?:127(?:\.\d{1,3}){3}|localhost|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_LOOPBACK_ORIGIN = re.compile(rb"https?://" + _LOOPBACK.pattern, re.IGNORECASE)


class Holder(Enum):
    """Whose credential a request carries."""

    NOBODY = auto()
    CONTROL = auto()
    """Automation: everything but MCP."""
    AGENT = auto()
    """The cell's MCP token: bound through the client's roots."""
    REGISTRATION = auto()
    """A search token: bound to one registration."""


@frozen
class Credential:
    """What a request has shown."""

    holder: Holder
    registration_id: str | None = None
    """Of a search token."""
    token_id: str | None = None
    """Of a search token: two tokens of one registration are two credentials."""


NOBODY = Credential(Holder.NOBODY)


def foreign(scope: Scope) -> str | None:
    """Return the header, Host or Origin, that says a request comes from a foreign page or through a foreign name."""
    is_unix = scope.get("client") is None
    for name, pattern in ((b"host", _LOOPBACK), (b"origin", _LOOPBACK_ORIGIN)):
        values = [value for key, value in scope["headers"] if key.lower() == name]
        if is_unix and (name == b"host" or not values):
            continue
        if is_unix or len(values) > 1 or any(not pattern.fullmatch(value) for value in values):
            return name.decode()
        if name == b"host" and not values and scope.get("http_version") != "1.0":
            return "host"
    return None


class BoundTokens(Protocol):
    """Tells which registration a search token is bound to."""

    def find(self, token: str) -> TokenRecord | None:
        """Return a token's record, or None if it opens nothing."""


class Gatekeeper:
    """Tells credentials apart."""

    def __init__(self, tokens: Tokens, search_tokens: BoundTokens) -> None:
        self._control = tokens.control.get_secret_value().encode()
        self._agent = tokens.mcp.get_secret_value().encode()
        self._search_tokens = search_tokens

    def credential(self, scope: Scope) -> Credential:
        """Return whose credential the Authorization header carries, as ``Bearer <token>`` or as the bare token."""
        values = [value for key, value in scope["headers"] if key.lower() == b"authorization"]
        if len(values) != 1:
            return NOBODY
        token = values[0].strip()
        if token[:7].lower() == b"bearer ":
            token = token[7:].strip()
        # Both are always compared, so that the time taken does not tell which was nearer.
        is_control = hmac.compare_digest(token, self._control)
        is_agent = hmac.compare_digest(token, self._agent)
        if is_control or is_agent:
            return Credential(Holder.CONTROL if is_control else Holder.AGENT)
        record = self._search_tokens.find(token.decode("utf-8", "replace")) if token else None
        return NOBODY if record is None else Credential(Holder.REGISTRATION, record.registration_id, record.id)
