"""The same over TLS."""

import math
import select
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.http.transport.crew import GET, MUCH, WIRE, Place, answer, sha, within
from tests.servers.certificate import write_certificate


@pytest.fixture
def tls(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    cert, key = write_certificate(tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, key)
    return server, ssl.create_default_context(cafile=str(cert))


def test_the_same_over_tls(
    start: Callable[..., Place], tls: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    server, mine = tls
    place = start(WIRE, server)
    with mine.wrap_socket(place.connect(), server_hostname="127.0.0.1") as client:
        body = bytes(range(256)) * 8_000
        head = b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body)
        client.sendall(head + body)
        assert answer(client)[2] == sha(body)
        client.sendall(
            GET % (b"/query?a", b"") + GET % (b"/query?b", b"X: %b\r\n" % (b"x" * 70_000))
        )
        stream = client.makefile("rb")
        found = stream.read(1)
        while not found.endswith(b"\r\n\r\nb"):
            found += stream.read(1)
        assert b"\r\n\r\naHTTP/1.1 200" in found
        client.sendall(GET % (b"/whole", b""))
        assert len(answer(client)[2]) == MUCH
        client.sendall(GET % (b"/query?last", b"Connection: close\r\n"))
        assert answer(client)[2] == b"last"
        assert client.recv(1) == b""  # told by TLS itself, or it would be an error
    plain = place.connect()
    plain.sendall(GET % (b"/query?a", b""))
    try:
        heard = plain.recv(1000)
    except ConnectionResetError:
        heard = b""
    assert not heard.startswith(b"HTTP")


def test_a_client_that_never_agrees_on_tls_is_ended(
    start: Callable[..., Place], tls: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    place = start(WIRE, tls[0])
    client = place.connect()
    place.crew.end_late_ones(math.inf)
    within(lambda: not len(place.crew))
    assert not client.recv(1000).startswith(b"HTTP")


def test_who_is_to_send_a_body_is_told_once_there_is_room(
    start: Callable[..., Place], tls: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    place = start(WIRE, tls[0])
    with tls[1].wrap_socket(place.connect(), server_hostname="127.0.0.1") as client:
        client.sendall(GET % (b"/query?a", b""))
        assert answer(client)[2] == b"a"
        [connection] = place.crew._connections.values()
        poller, sent = select.poll(), 0
        poller.register(connection._socket, select.POLLOUT)
        while poller.poll(200):  # what the client's side takes makes room again for a moment
            sent += connection._socket.send(b"x" * 512)
        client.sendall(b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n")
        client.sendall(b"Expect: 100-continue\r\n\r\n")
        within(lambda: connection.is_used)
        told = b"HTTP/1.1 100 Continue\r\n\r\n"
        found = b""
        while len(found) < sent + len(told):
            found += client.recv(1 << 20)
        assert found == b"x" * sent + told
        client.sendall(b"hello")
        assert answer(client)[2] == sha(b"hello")
