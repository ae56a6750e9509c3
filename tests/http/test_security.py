"""Who may come in: the decision on raw headers, without a connection."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr

from semindex.http.security import NOBODY, Credential, Gatekeeper, Holder, foreign
from semindex.model.registrations import TokenRecord, token_digest
from semindex.secrets import Tokens

CONTROL, AGENT, BOUND = "control-token-of-the-tests", "mcp-token-of-the-tests", "search-token-of-the-tests"


class BoundTokens:
    """Knows one search token."""

    def find(self, token: str) -> TokenRecord | None:
        if token != BOUND:
            return None
        return TokenRecord("a-token", "a-registration", token_digest(token), "", datetime(2026, 1, 1, tzinfo=UTC))


def scope(*headers: tuple[str, str], unix: bool = False, version: str = "1.1") -> dict[str, Any]:
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return {"headers": raw, "http_version": version, "client": None if unix else ("127.0.0.1", 50000)}


@pytest.mark.parametrize("host", [
    "127.0.0.1", "127.0.0.1:7790", "localhost", "LOCALHOST:1", "[::1]:7790", "127.1.2.3:65535",
])  # fmt: skip
@pytest.mark.parametrize("origin", [None, "http://localhost", "https://127.0.0.1:3000", "http://[::1]:80"])
def test_a_local_request_is_not_foreign(host: str, origin: str | None) -> None:
    headers = [("host", host)] + ([] if origin is None else [("origin", origin)])

    assert foreign(scope(*headers)) is None


@pytest.mark.parametrize("host", [
    "example.com", "localhost.example.com", "127.0.0.1.example.com", "127.0.0.1@example.com", "example.com@127.0.0.1",
    "0.0.0.0", "10.0.0.1", "127.0.0", "127.0.0.1:7790:1", "localhost:", "localhost.", "[::2]", "", " ", "localhost\x00",
    "127.0.0.1, example.com", "\xfflocalhost",
])  # fmt: skip
def test_another_host_is_foreign(host: str) -> None:
    assert foreign(scope(("host", host))) == "host"


@pytest.mark.parametrize("origin", [
    "null", "", "http://example.com", "http://localhost.example.com", "http://localhost@example.com", "file://",
    "http://localhost/", "http://127.0.0.1:3000 http://example.com", "chrome-extension://abcdef", "//localhost",
])  # fmt: skip
@pytest.mark.parametrize("unix", [False, True])
def test_another_origin_is_foreign(origin: str, unix: bool) -> None:
    assert foreign(scope(("host", "localhost"), ("origin", origin), unix=unix)) == "origin"


def test_two_of_a_header_are_foreign_even_if_both_are_local() -> None:
    assert foreign(scope(("host", "localhost"), ("host", "localhost"))) == "host"
    assert (
        foreign(scope(("host", "localhost"), ("origin", "http://localhost"), ("Origin", "http://localhost")))
        == "origin"
    )


def test_only_http_1_0_may_come_without_a_host() -> None:
    assert foreign(scope()) == "host"
    assert foreign(scope(version="2")) == "host"
    assert foreign(scope(version="1.0")) is None


def test_on_a_unix_socket_the_host_means_nothing_and_no_origin_is_local() -> None:
    assert foreign(scope(("host", "anything at all"), unix=True)) is None
    assert foreign(scope(unix=True)) is None
    assert foreign(scope(("origin", "http://localhost"), unix=True)) == "origin"


@pytest.fixture
def gatekeeper() -> Gatekeeper:
    return Gatekeeper(Tokens(SecretStr(CONTROL), SecretStr(AGENT)), BoundTokens())


@pytest.mark.parametrize(("token", "expected"), [
    (CONTROL, Credential(Holder.CONTROL)),
    (AGENT, Credential(Holder.AGENT)),
    (BOUND, Credential(Holder.REGISTRATION, "a-registration", "a-token")),
])  # fmt: skip
@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "{}", "BEARER   {} "])
def test_a_token_is_accepted_with_and_without_its_scheme(
    gatekeeper: Gatekeeper, token: str, expected: Credential, form: str
) -> None:
    assert gatekeeper.credential(scope(("authorization", form.format(token)))) == expected


@pytest.mark.parametrize("value", [
    "", "Bearer", "Bearer ", "Basic " + CONTROL, f"Bearer {CONTROL}x", f"Bearer x{CONTROL}", f"Bearer {CONTROL[:-1]}",
    f"Bearer {CONTROL.upper()}", f"Bearer {CONTROL} {AGENT}", f"Bearer Bearer {CONTROL}", f"Bearer\t{CONTROL}",
    f"Bearer {CONTROL[:9]} {CONTROL[9:]}", f"{CONTROL}\x00", f'"{CONTROL}"', f"Token {CONTROL}", "\xff" * 16, "x" * 10_000,
])  # fmt: skip
def test_what_is_nearly_a_token_is_none(gatekeeper: Gatekeeper, value: str) -> None:
    assert gatekeeper.credential(scope(("authorization", value))) == NOBODY


def test_two_authorizations_are_none(gatekeeper: Gatekeeper) -> None:
    both = [("authorization", f"Bearer {CONTROL}"), ("Authorization", f"Bearer {CONTROL}")]

    assert gatekeeper.credential(scope()) == gatekeeper.credential(scope(*both)) == NOBODY
