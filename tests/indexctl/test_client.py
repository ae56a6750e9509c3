"""What a client makes of answers, those of programs that are not semindex included: real sockets, wrong answers."""

import socket

import pytest

from indexctl.client import Client, route
from indexctl.errors import CommandError, Conflict, ExitCode, Misused, NotFound, Unavailable
from indexctl.locating import Service
from tests.indexctl.answering import SOURCE, TOKEN, answering, response


def error_of(answer: bytes | None, *, timeout: float = 10.0) -> CommandError:
    with answering(answer) as program, pytest.raises(CommandError) as raised:
        program.client(timeout).get(route("status"), needs=("phase",))
    return raised.value


@pytest.mark.parametrize(
    "answer",
    [
        response(200, "<html>Welcome!</html>", "text/html"),
        response(200, "[1, 2]"),
        response(200, '{"hello": "world"}'),
        response(200, "[" * 100_000),
        response(200, ""),
        response(302, ""),
        response(404, "Not found", "text/plain"),
        response(500, '{"error": {"message": "an object, not a sentence"}}'),
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 1000 + b"\r\n",
    ],
    ids=[
        "a page",
        "a list",
        "other fields",
        "deep",
        "nothing",
        "elsewhere",
        "text",
        "other errors",
        "SSH",
        "many headers",
    ],
)
def test_an_answer_that_is_not_semindexs_is_said_to_be_foreign(answer: bytes) -> None:
    error = error_of(answer)

    assert error.exit_code == ExitCode.FAILED
    assert "not semindex" in str(error)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "unknown_registration", NotFound),
        (409, "baseline_in_use", Conflict),
        (422, "invalid", Misused),
        (503, "starting", Unavailable),
        (504, "too_slow", Unavailable),
    ],
)
def test_a_refusal_keeps_its_sentence_and_has_its_kind(status: int, code: str, kind: type[CommandError]) -> None:
    error = error_of(response(status, f'{{"error": "A sentence.", "code": "{code}"}}'))

    assert (type(error), str(error)) == (kind, "A sentence.")


@pytest.mark.parametrize(("status", "code"), [(403, "outside_roots"), (422, "path_refused"), (500, "internal")])
def test_any_other_refusal_is_a_failure(status: int, code: str) -> None:
    assert error_of(response(status, f'{{"error": "A sentence.", "code": "{code}"}}')).exit_code == ExitCode.FAILED


@pytest.mark.parametrize("body", ['{"error": "Not found"}', '{"error": "No such route.", "code": "not_found"}'])
def test_a_service_without_the_route_is_said_to_be_older(body: str) -> None:
    error = error_of(response(404, body))

    assert error.exit_code == ExitCode.FAILED
    assert "older than indexctl" in str(error)


def test_a_refused_token_is_named_by_where_it_came_from_and_never_shown() -> None:
    error = error_of(response(401, '{"error": "Unauthorized", "code": "unauthorized"}'))

    assert SOURCE in str(error)
    assert TOKEN not in str(error)


def test_a_connection_that_is_broken_off_is_worth_a_retry() -> None:
    assert isinstance(error_of(b""), Unavailable)
    assert isinstance(error_of(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"), Unavailable)


def test_silence_ends_with_the_time_of_the_command() -> None:
    error = error_of(None, timeout=0.2)

    assert error.exit_code == ExitCode.UNAVAILABLE
    assert "has not answered within 0.2 seconds" in str(error)


def test_a_call_without_any_time_left_is_unavailable() -> None:
    assert isinstance(error_of(None, timeout=0.0), Unavailable)


def test_nobody_at_the_address_is_said_with_how_to_start_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    client = Client(lambda: Service(url, "token", "x"), 10.0)

    with pytest.raises(Unavailable, match="semindex serve --root"):
        client.get(route("status"))


@pytest.mark.parametrize("path", ["/no/such/socket", "/" + "long" * 50], ids=["missing", "too long"])
def test_a_socket_that_cannot_be_connected_to_is_unavailable(path: str) -> None:
    client = Client(lambda: Service(f"unix:{path}", "token", "x"), 10.0)

    with pytest.raises(Unavailable, match="unix:/"):
        client.get(route("status"))


def test_a_segment_of_a_route_cannot_become_two() -> None:
    assert route("registrations", "a/b?c#d e%", "tokens") == "/v1/registrations/a%2Fb%3Fc%23d%20e%25/tokens"
