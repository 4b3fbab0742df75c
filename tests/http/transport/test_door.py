"""The door of a worker: who is let in, and that nobody who comes there ends it."""

import socket
import ssl
import struct
from pathlib import Path

from tests.servers.certificate import write_certificate

from moorage.http.config import Tls, Wire
from moorage.http.server import _context, _Door
from moorage.http.transport.connection import Service
from moorage.http.transport.crew import Crew
from moorage.http.wsgi import Environ, StartResponse

WIRE = Wire(connections=10, threads=1, idle_seconds=60, body_seconds=60)


def hello(environ: Environ, start_response: StartResponse) -> list[bytes]:
    start_response("200 OK", [])
    return [b"hello"]


def test_a_client_that_resets_before_tls_is_forgotten(tmp_path: Path) -> None:
    cert, key = write_certificate(tmp_path)
    crew = Crew(WIRE.threads)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        door = _Door(listener, Service(hello, WIRE), crew, _context(Tls(str(cert), str(key))))
        for data in (b"", b"\x16\x03\x01"):
            client = socket.create_connection(listener.getsockname(), timeout=20)
            client.sendall(data)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            door._admit()
            assert len(crew) == 0
        mine = ssl.create_default_context(cafile=str(cert))
        with socket.create_connection(listener.getsockname(), timeout=20) as client:
            door._admit()
            with mine.wrap_socket(client, server_hostname="127.0.0.1") as agreed:
                agreed.sendall(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                assert agreed.makefile("rb").read().endswith(b"hello")
