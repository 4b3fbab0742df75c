"""The door of a worker: who is let in, and that nobody who comes there ends it."""

import os
import socket
import ssl
import struct
import threading
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest
from tests.http.transport.crew import within
from tests.servers.certificate import write_certificate

from moorage.http.transport.connection import SharedState
from moorage.http.transport.limits import ConnectionLimits
from moorage.http.transport.server import Acceptor
from moorage.http.transport.server_status import SingleServerStatus
from moorage.http.transport.thread_pool import ThreadPool

WIRE = ConnectionLimits(connections=10, threads=1, idle_seconds=60, body_seconds=60)


def hello(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
    start_response("200 OK", [])
    return [b"hello"]


def test_a_client_that_resets_before_tls_is_forgotten(tmp_path: Path) -> None:
    cert, key = write_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    crew = ThreadPool(WIRE.threads)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        door = Acceptor(listener, SharedState(hello, WIRE), crew, context)
        for data in (b"", b"\x16\x03\x01"):
            client = socket.create_connection(listener.getsockname(), timeout=20)
            client.sendall(data)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            door._accept()
            assert len(crew) == 0
        mine = ssl.create_default_context(cafile=str(cert))
        with socket.create_connection(listener.getsockname(), timeout=20) as client:
            door._accept()
            with mine.wrap_socket(client, server_hostname="127.0.0.1") as agreed:
                agreed.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                assert agreed.makefile("rb").read().endswith(b"hello")


def test_an_address_has_no_more_connections_than_it_may(caplog: pytest.LogCaptureFixture) -> None:
    for proxies, let_in in (((), 2), (("127.0.0.0/8",), 3)):
        crew = ThreadPool(WIRE.threads)
        wire = replace(WIRE, per_address=2, proxies=proxies)
        with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as opened:
            listener.settimeout(0)
            door = Acceptor(listener, SharedState(hello, wire), crew, None)
            clients = []
            for _ in range(3):
                made = socket.create_connection(listener.getsockname(), timeout=20)
                clients.append(opened.enter_context(made))
                door._accept()
            assert len(crew) == let_in
            if let_in == 2:
                assert clients[2].recv(1) == b""
                assert "connection from 127.0.0.1 refused: the address has 2 already" in caplog.text
            clients[0].sendall(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            assert clients[0].makefile("rb").read().endswith(b"hello")
            within(lambda crew=crew, most=let_in: len(crew) == most - 1)  # type: ignore[misc]
            opened.enter_context(socket.create_connection(listener.getsockname(), timeout=20))
            door._accept()
            assert len(crew) == let_in


class Shared(SingleServerStatus):
    """Another server takes connections of the same socket, and has none."""

    def excess_connections(self, connections: int) -> int:
        return connections


def test_a_newcomer_is_left_to_servers_with_fewer_connections() -> None:
    crew, status = ThreadPool(WIRE.threads), Shared()
    told, teller = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as opened:
        listener.settimeout(0)
        door = Acceptor(listener, SharedState(hello, WIRE, status), crew, None)

        def connect() -> None:
            client = socket.create_connection(listener.getsockname(), timeout=20)
            opened.enter_context(client)

        thread = threading.Thread(target=door.accept_until, args=(told,))
        thread.start()
        try:
            connect()
            within(lambda: len(crew) == 1)
            connect()  # the other one does not take it
            within(lambda: len(crew) == 2)
            assert status.accepts
            within(lambda: status.beats > 0)
        finally:
            os.write(teller, b"x")
            thread.join(20)
            os.close(told)
            os.close(teller)
        assert not status.accepts
