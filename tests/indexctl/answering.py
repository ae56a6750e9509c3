"""Programs that answer a client with bytes that were fixed before: foreign ones, and cells in rare states."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attrs import define, field

from indexctl.client import Client
from indexctl.locating import Service

TOKEN = "a-token-that-is-long-enough"
SOURCE = "THE_VARIABLE"


@define
class Answering:
    """One such program."""

    url: str
    requests: list[str] = field(factory=list)
    """First lines, in the order in which they came."""

    def client(self, timeout: float = 10.0) -> Client:
        """Return a client of it."""
        return Client(lambda: Service(self.url, TOKEN, SOURCE), timeout)


@contextmanager
def answering(*answers: bytes | None) -> Iterator[Answering]:
    """Answer requests one after the other, each on its own connection; None keeps silent until the client gives up."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        program = Answering(f"http://127.0.0.1:{listening.getsockname()[1]}")

        def serve() -> None:
            for answer in answers:
                connection, _ = listening.accept()
                with connection:
                    program.requests.append(connection.recv(65536).partition(b"\r\n")[0].decode())
                    if answer is not None:
                        connection.sendall(answer)
                    else:
                        connection.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield program
        thread.join(10)
        assert not thread.is_alive(), "not every answer was asked for"


def response(status: int, body: str, kind: str = "application/json") -> bytes:
    """Return an HTTP answer."""
    return f"HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()


def said(**fields: Any) -> bytes:
    """Return a successful answer with these fields."""
    return response(200, json.dumps(fields))
