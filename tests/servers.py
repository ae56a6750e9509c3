"""Servers that answer every connection with the same bytes, whatever is asked, and certificates for them."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import trio
from attrs import define, field, frozen
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@define
class Answering:
    """Such a server."""

    address: str
    """Host and port."""
    requests: list[bytes] = field(factory=list)
    """What each connection sent until it was answered."""


@asynccontextmanager
async def answering(reply: bytes, context: ssl.SSLContext | None = None) -> AsyncIterator[Answering]:
    """Serve on a free port of the loopback interface; each connection is closed after its answer."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    host, port = listeners[0].socket.getsockname()
    server = Answering(f"{host}:{port}")

    async def serve(connection: trio.SocketStream) -> None:
        stream: trio.abc.Stream = (
            connection
            if context is None
            else trio.SSLStream(connection, context, server_side=True, https_compatible=True)
        )
        try:
            request = b""
            while not _is_whole(request):
                piece = await stream.receive_some()
                if not piece:
                    return
                request += piece
            server.requests.append(request)
            await stream.send_all(reply)
        except trio.BrokenResourceError:
            pass
        finally:
            with trio.move_on_after(1, shield=True):
                await stream.aclose()

    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, serve, listeners)
        yield server
        nursery.cancel_scope.cancel(reason="the test is over")


def _is_whole(request: bytes) -> bool:
    head, end, body = request.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
    )
    return bool(end) and len(body) >= length


@frozen
class Certificate:
    """A certificate for 127.0.0.1, and the authority that vouches for it: itself."""

    server: ssl.SSLContext
    authority: Path


def make_certificate(directory: Path) -> Certificate:
    """Make a certificate that is valid for an hour."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "semindex tests")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = directory / "certificate.pem", directory / "key.pem"
    public.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    return Certificate(context, public)
