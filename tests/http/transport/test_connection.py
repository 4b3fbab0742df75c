"""Connections that are served by a crew: real sockets, clients of every kind."""

import gc
import hashlib
import http.client
import io
import logging
import math
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers.certificate import write_certificate

from moorage.http.config import Wire
from moorage.http.transport.connection import Connection, Service
from moorage.http.transport.crew import Crew
from moorage.http.wsgi import Environ, StartResponse

WIRE = Wire(connections=100, threads=1, idle_seconds=60, body_seconds=60)
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

    def __call__(self, environ: Environ, start_response: StartResponse) -> Any:
        path = environ["PATH_INFO"]
        return getattr(self, path.strip("/"))(environ, start_response)

    def echo(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        length = environ.get("CONTENT_LENGTH")
        try:
            body = environ["wsgi.input"].read(int(length) if length else -1)
        except OSError as error:
            self.problems.append(error)
            body = b"nothing whole"
        start_response("200 OK", [])
        return [hashlib.sha256(body).hexdigest().encode()]

    def query(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        start_response("200 OK", [])
        return [environ["QUERY_STRING"].encode()]

    def refuse(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        start_response("413 Request Entity Too Large", [("content-length", "3")])
        return [b"no!"]

    def keep(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        body = Kept(environ["wsgi.input"].read())
        self.kept.append(weakref.ref(body))
        environ["wsgi.input"] = body
        start_response("200 OK", [])
        return [b"kept"]

    def nothing(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        start_response("204 No Content", [])
        return []

    def whole(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        start_response("200 OK", [("content-length", str(MUCH))])
        return [b"w" * MUCH]

    def parts(self, environ: Environ, start_response: StartResponse) -> Parts:
        start_response("200 OK", [])
        return self._stream(iter([b"", b"one", b"", b"two", b"x" * 100_000]))

    def breaks(self, environ: Environ, start_response: StartResponse) -> Parts:
        def parts() -> Iterator[bytes]:
            yield b"one"
            raise ValueError("in the middle")

        start_response("200 OK", [])
        return self._stream(parts())

    def short(self, environ: Environ, start_response: StartResponse) -> Parts:
        start_response("200 OK", [("content-length", "10")])
        return self._stream(iter([b"one", b"two"]))

    def long(self, environ: Environ, start_response: StartResponse) -> Parts:
        start_response("200 OK", [("content-length", "4")])
        return self._stream(iter([b"one", b"two"]))

    def error(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        raise OSError("not the client's fault")

    def _stream(self, parts: Iterator[bytes]) -> Parts:
        self.streamed.append(Parts(parts))
        return self.streamed[-1]


class Place:
    """A crew, and clients of it."""

    def __init__(self, app: App, wire: Wire, tls: ssl.SSLContext | None = None) -> None:
        self.app = app
        self.service = Service(app, wire)
        self.crew = Crew(wire.threads)
        self._tls = tls
        self._clients: list[socket.socket] = []

    def connect(self) -> socket.socket:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            client = socket.create_connection(listener.getsockname(), timeout=20)
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


def within(is_so: Callable[[], bool], seconds: float = 20) -> None:
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


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def start(app: App) -> Iterator[Callable[..., Place]]:
    """Makes places that are gone afterwards."""
    places: list[Place] = []

    def make(wire: Wire = WIRE, tls: ssl.SSLContext | None = None) -> Place:
        places.append(Place(app, wire, tls))
        return places[-1]

    yield make
    for place in places:
        place.close()


@pytest.fixture
def place(start: Callable[..., Place]) -> Place:
    """With a single thread: whoever keeps it is noticed."""
    return start()


def test_a_connection_serves_request_after_request(place: Place) -> None:
    client = place.connect()
    for number in range(3):
        client.sendall(GET % (b"/query?%d" % number, b""))
        status, headers, body = answer(client)
        assert (status, body, headers["content-length"]) == (200, b"%d" % number, "1")
        assert "connection" not in headers
        assert headers["date"].endswith("GMT")


def test_requests_sent_ahead_are_answered_in_their_order(place: Place) -> None:
    client = place.connect()
    client.sendall(b"".join(GET % (b"/query?%d" % number, b"") for number in range(500)))
    stream = client.makefile("rb")
    for number in range(500):
        assert stream.readline() == b"HTTP/1.1 200 OK\r\n"
        lines = list(iter(stream.readline, b"\r\n"))
        [length] = [int(line.split()[1]) for line in lines if line.startswith(b"content-length")]
        assert stream.read(length) == b"%d" % number


def test_a_body_may_come_byte_by_byte_or_in_chunks(place: Place) -> None:
    client = place.connect()
    for byte in b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello":
        client.sendall(bytes([byte]))
    assert answer(client)[2] == sha(b"hello")
    client.sendall(b"PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
    for part in (b"hel", b"lo"):
        time.sleep(0.05)
        client.sendall(b"%x\r\n%b\r\n" % (len(part), part))
    client.sendall(b"0\r\n\r\n")
    assert answer(client)[2] == sha(b"hello")


def test_a_large_body_arrives_whole(place: Place) -> None:
    client, body = place.connect(), bytes(range(256)) * 32_000
    client.sendall(b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body))
    client.sendall(body)
    assert answer(client)[2] == sha(body)


def test_who_asks_whether_to_send_is_told(place: Place) -> None:
    client = place.connect()
    head = b"Host: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    client.sendall(b"PUT /echo HTTP/1.1\r\n" + head)
    assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(b"hello")
    assert answer(client)[2] == sha(b"hello")
    client.sendall(b"PUT /refuse HTTP/1.1\r\n" + head)
    status, headers, body = answer(client)
    assert (status, body, headers["connection"]) == (413, b"no!", "close")


def test_who_sends_on_after_a_refusal_sees_it(place: Place) -> None:
    client = place.connect()
    client.sendall(b"PUT /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % MUCH)
    sent = 0
    while sent < MUCH // 2:
        sent += client.send(b"x" * 65536)
    status, _, body = answer(client)
    assert (status, body, client.recv(1)) == (413, b"no!", b"")


@pytest.mark.parametrize("path", [b"/query?abc", b"/whole", b"/parts"])
def test_head_has_the_head_alone(place: Place, path: bytes) -> None:
    client = place.connect()
    client.sendall(b"HEAD %b HTTP/1.1\r\nHost: h\r\n\r\n" % path)
    assert answer(client, "HEAD")[0] == 200
    client.sendall(GET % (b"/query?next", b""))
    assert answer(client)[2] == b"next"


def test_no_content_has_neither_body_nor_length(place: Place) -> None:
    status, headers, body = place.ask(GET % (b"/nothing", b""))
    assert (status, body) == (204, b"")
    assert not {"content-length", "transfer-encoding"} & set(headers)


def test_what_comes_in_parts_is_chunked_and_closed_at_its_end(place: Place, app: App) -> None:
    status, headers, body = place.ask(GET % (b"/parts", b""))
    assert (status, body) == (200, b"onetwo" + b"x" * 100_000)
    assert headers["transfer-encoding"] == "chunked"
    assert app.streamed[0].closed.wait(20)


def test_clients_of_http_1_0(place: Place) -> None:
    client = place.connect()
    client.sendall(b"GET /query?a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    _, headers, body = answer(client)
    assert (headers["connection"], body) == ("keep-alive", b"a")
    client.sendall(b"GET /parts HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    _, headers, body = answer(client)
    assert (headers["connection"], body) == ("close", b"onetwo" + b"x" * 100_000)


@pytest.mark.parametrize("path", [b"/breaks", b"/short", b"/long"])
def test_a_body_that_breaks_off_is_not_taken_for_whole(place: Place, app: App, path: bytes) -> None:
    with pytest.raises(http.client.IncompleteRead):
        place.ask(GET % (path, b""))
    assert app.streamed[0].closed.wait(20)


def test_an_application_that_fails_is_a_500_and_not_the_end(place: Place) -> None:
    status, headers, _ = place.ask(GET % (b"/error", b""))
    assert (status, headers["connection"]) == (500, "close")
    assert place.ask(GET % (b"/query?still", b""))[2] == b"still"


@pytest.mark.parametrize("path", [b"/whole", b"/parts"])
def test_a_client_that_does_not_read_keeps_no_thread(place: Place, path: bytes) -> None:
    slow = place.connect()
    slow.sendall(b"".join([GET % (path, b"")] * 200))
    assert place.ask(GET % (b"/query?quick", b""))[2] == b"quick"
    assert place.crew.busy
    first = len(answer(slow)[2])
    assert first == (MUCH if path == b"/whole" else 100_006)


def test_a_client_that_leaves_in_the_middle_is_forgotten(place: Place, app: App) -> None:
    client = place.connect()
    client.sendall(GET % (b"/parts", b"") * 200)
    within(lambda: len(app.streamed) > 1)
    client.close()
    within(lambda: not len(place.crew))
    assert all(parts.closed.wait(20) for parts in app.streamed)
    assert place.ask(GET % (b"/query?still", b""))[2] == b"still"


def test_what_is_no_request_is_refused_and_ends_the_connection(place: Place) -> None:
    status, headers, body = place.ask(b"rubbish\r\n\r\n")
    assert (status, headers["connection"], body) == (400, "close", b"")


def test_who_rests_too_long_is_ended_and_who_has_time_is_not(place: Place) -> None:
    half, idle, quick = place.connect(), place.connect(), place.connect()
    half.sendall(b"GET /query HTTP/1.1\r\nHo")
    place.crew.end_late_ones(time.monotonic() + 59)
    quick.sendall(GET % (b"/query?a", b""))
    assert answer(quick)[2] == b"a"
    place.crew.end_late_ones(time.monotonic() + 61)
    assert (half.recv(1), idle.recv(1)) == (b"", b"")


def test_who_takes_nothing_of_an_answer_for_too_long_is_ended(place: Place) -> None:
    slow = place.connect()
    slow.sendall(GET % (b"/whole", b""))
    within(lambda: place.crew.busy and place.crew._waiting == 1)
    place.crew.end_late_ones(time.monotonic() + 61)
    within(lambda: not len(place.crew))


def test_a_body_that_is_late_is_given_up(
    app: App, start: Callable[..., Place], caplog: pytest.LogCaptureFixture
) -> None:
    place = start(Wire(connections=9, threads=2, idle_seconds=60, body_seconds=0.3))
    client = place.connect()
    client.sendall(b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhell")
    with caplog.at_level(logging.WARNING):
        status, headers, body = answer(client)
    assert (status, headers["connection"], body) == (200, "close", sha(b"nothing whole"))
    assert isinstance(app.problems[0], TimeoutError)
    assert "from 127.0.0.1 took longer than 0.3 s" in caplog.text


def test_half_a_body_and_a_broken_chunk_are_errors(app: App, start: Callable[..., Place]) -> None:
    place = start()
    client = place.connect()
    client.sendall(b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhell")
    client.shutdown(socket.SHUT_WR)
    assert answer(client)[2] == sha(b"nothing whole")
    chunked = b"PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    other = place.connect()
    other.sendall(chunked)
    time.sleep(0.1)
    other.sendall(b"not a number\r\n")
    assert answer(other)[2] == sha(b"nothing whole")
    assert len(app.problems) == 2


def test_what_was_received_before_the_end_is_answered(place: Place) -> None:
    client = place.connect()
    place.service.ending = True
    client.sendall(b"".join(GET % (b"/query?%d" % number, b"") for number in range(4000)))
    data = client.makefile("rb").read()  # to its end, and no reset for what was sent in vain
    answered = data.count(b"HTTP/1.1 200 OK")
    assert data.count(b"connection: close") == 1
    assert answered > 1
    assert data.endswith(b"%d" % (answered - 1))


@pytest.fixture
def no_collector() -> Iterator[None]:
    """What is free is free by itself."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_an_idle_connection_keeps_nothing_of_its_last_request(place: Place, app: App) -> None:
    client = place.connect()
    client.sendall(b"PUT /keep HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
    assert answer(client)[2] == b"kept"
    within(lambda: app.kept[0]() is None)


@pytest.mark.usefixtures("no_collector")
def test_a_connection_that_is_over_is_free_at_once(place: Place) -> None:
    client = place.connect()
    [connection] = [weakref.ref(each._incoming) for each in place.crew._connections.values()]
    client.sendall(GET % (b"/query?a", b"Connection: close\r\n"))
    assert answer(client)[2] == b"a"
    within(lambda: connection() is None)


def test_a_whole_body_is_taken_whatever_follows_it(place: Place) -> None:
    client = place.connect()
    client.sendall(b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n")
    time.sleep(0.1)
    client.sendall(b"hello, rubbish")
    _, headers, body = answer(client)
    assert (body, headers["connection"]) == (sha(b"hello"), "close")


def test_answers_are_the_last_ones_once_it_ends(place: Place) -> None:
    client = place.connect()
    place.service.ending = True
    client.sendall(GET % (b"/query?a", b""))
    assert answer(client)[1]["connection"] == "close"
    assert client.recv(1) == b""


def test_threads_come_as_they_are_needed_and_no_more_than_may(
    app: App, start: Callable[..., Place]
) -> None:
    waits, goes = threading.Semaphore(0), threading.Event()

    def slow(environ: Environ, start_response: StartResponse) -> list[bytes]:
        waits.release()
        goes.wait(20)
        start_response("200 OK", [])
        return [b"done"]

    app.slow = slow  # type: ignore[attr-defined]
    place = start(Wire(connections=9, threads=3, idle_seconds=60, body_seconds=60))
    clients = [place.connect() for _ in range(5)]
    for client in clients:
        client.sendall(GET % (b"/slow", b""))
    for _ in range(3):
        assert waits.acquire(timeout=20)
    assert not waits.acquire(timeout=0.3)
    assert place.crew._threads == 3
    goes.set()
    assert [answer(client)[2] for client in clients] == [b"done"] * 5


def test_what_comes_after_the_end_is_not_begun(app: App) -> None:
    place = Place(app, WIRE)
    busy, later = place.connect(), place.connect()
    busy.sendall(b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhell")
    within(lambda: place.crew.busy)
    assert not place.crew.leave()
    busy.sendall(b"o")
    assert answer(busy)[2] == sha(b"hello")
    within(place.crew.leave)
    later.sendall(GET % (b"/query?a", b""))
    later.settimeout(0.3)
    with pytest.raises(TimeoutError):
        later.recv(1)
    for connection in place.crew._connections.values():
        connection.close()
    for client in (busy, later):
        client.close()


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
