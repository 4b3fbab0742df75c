"""A crew that serves an application for tests over real sockets, and clients of it."""

import hashlib
import http.client
import io
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from moorage.http.transport.connection import Connection, SharedState
from moorage.http.transport.limits import ConnectionLimits
from moorage.http.transport.server_status import SingleServerStatus
from moorage.http.transport.thread_pool import ThreadPool

WIRE = ConnectionLimits(connections=100, threads=1, idle_seconds=60, body_seconds=60)
MUCH = 32 * 1024 * 1024
"""More than the system keeps for a connection."""
GET = b"GET %b HTTP/1.1\r\nHost: h\r\n%b\r\n"


class Parts:
    """A body in parts that knows when it was closed."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self.closed = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        return self._parts

    def close(self) -> None:
        self.closed.set()


class Kept(io.BytesIO):
    """A body that an application has put in the place of what came."""


class App:
    """Answers by path; says what it saw."""

    def __init__(self) -> None:
        self.streamed: list[Parts] = []
        self.problems: list[OSError] = []
        self.kept: list[weakref.ref[Kept]] = []

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Any:
        path = environ["PATH_INFO"]
        return getattr(self, path.strip("/"))(environ, start_response)

    def echo(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        length = environ.get("CONTENT_LENGTH")
        try:
            body = environ["wsgi.input"].read(int(length) if length else -1)
        except OSError as error:
            self.problems.append(error)
            body = b"nothing whole"
        start_response("200 OK", [])
        return [hashlib.sha256(body).hexdigest().encode()]

    def query(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        start_response("200 OK", [])
        return [environ["QUERY_STRING"].encode()]

    def who(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        environ["wsgi.input"].read()
        start_response("200 OK", [])
        return [str(threading.get_ident()).encode()]

    def refuse(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        start_response("413 Request Entity Too Large", [("content-length", "3")])
        return [b"no!"]

    def keep(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        body = Kept(environ["wsgi.input"].read())
        self.kept.append(weakref.ref(body))
        environ["wsgi.input"] = body
        start_response("200 OK", [])
        return [b"kept"]

    def nothing(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        code, _, length = environ["QUERY_STRING"].partition("-")
        start_response(f"{code} Nothing", [("Content-Length", length)] if length else [])
        return []

    def whole(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        start_response("200 OK", [("content-length", str(MUCH))])
        return [b"w" * MUCH]

    def parts(self, environ: WSGIEnvironment, start_response: StartResponse) -> Parts:
        start_response("200 OK", [])
        return self._stream(iter([b"", b"one", b"", b"two", b"x" * 100_000]))

    def breaks(self, environ: WSGIEnvironment, start_response: StartResponse) -> Parts:
        def parts() -> Iterator[bytes]:
            yield b"one"
            raise ValueError("in the middle")

        start_response("200 OK", [])
        return self._stream(parts())

    def short(self, environ: WSGIEnvironment, start_response: StartResponse) -> Parts:
        start_response("200 OK", [("content-length", "10")])
        return self._stream(iter([b"one", b"two"]))

    def long(self, environ: WSGIEnvironment, start_response: StartResponse) -> Parts:
        start_response("200 OK", [("content-length", "4")])
        return self._stream(iter([b"one", b"two"]))

    def error(self, environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        raise OSError("not the client's fault")

    def _stream(self, parts: Iterator[bytes]) -> Parts:
        self.streamed.append(Parts(parts))
        return self.streamed[-1]


class Place:
    """A crew, and clients of it."""

    def __init__(self, app: App, wire: ConnectionLimits, tls: ssl.SSLContext | None = None) -> None:
        self.app = app
        self.status = SingleServerStatus()
        self.service = SharedState(app, wire, self.status)
        self.crew = ThreadPool(wire.threads)
        self._tls = tls
        self._clients: list[socket.socket] = []

    def connect(self) -> socket.socket:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = socket.create_connection(listener.getsockname(), timeout=60)
            accepted, _ = listener.accept()
        accepted.settimeout(0)
        if self._tls is not None:
            accepted = self._tls.wrap_socket(
                accepted, server_side=True, do_handshake_on_connect=False
            )
        common = {"REMOTE_ADDR": "127.0.0.1"}
        self.crew.take(accepted.fileno(), Connection(accepted, common, self.service))
        self._clients.append(client)
        return client

    def ask(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        client = self.connect()
        client.sendall(data)
        return answer(client, data.split()[0].decode())

    def close(self) -> None:
        for client in self._clients:
            client.close()
        within(lambda: not len(self.crew))


def within(is_so: Callable[[], bool], seconds: float = 100) -> None:
    """Wait until it is so."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def answer(client: socket.socket, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    response = http.client.HTTPResponse(client, method=method)
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return response.status, headers, response.read()


def sha(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
