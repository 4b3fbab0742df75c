"""Answers to clients of every kind, over one connection after another."""

import http.client
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.http.transport.crew import GET, MUCH, WIRE, App, Place, answer, sha, within


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


def test_who_asks_whether_to_send_is_told(start: Callable[..., Place]) -> None:
    place = start(replace(WIRE, body_limit=5))
    client = place.connect()
    head = b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n"
    client.sendall(head % 5)
    assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.sendall(b"hello")
    assert answer(client)[2] == sha(b"hello")
    client.sendall(head.replace(b"echo", b"refuse") % 6)
    status, headers, body = answer(client)
    assert (status, body, headers["connection"]) == (413, b"no!", "close")


def test_a_body_that_passes_the_limit_in_chunks_is_answered_at_once(
    start: Callable[..., Place],
) -> None:
    place = start(replace(WIRE, body_limit=5))
    client = place.connect()
    client.sendall(b"PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
    client.sendall(b"3\r\nabc\r\n3\r\ndef\r\n")
    _, headers, body = answer(client)
    assert (body, headers["connection"]) == (sha(b"abcdef"), "close")


def test_bodies_that_stay_away_keep_no_thread(place: Place, app: App) -> None:
    head = b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"
    stalled = [place.connect() for _ in range(50)]
    for client in stalled:
        client.sendall(head + b"hell")
    within(lambda: sum(each.is_used for each in place.crew._connections.values()) == 50)
    assert place.ask(head + b"hello")[2] == sha(b"hello")
    for client in stalled:
        client.sendall(b"o")
        assert answer(client)[2] == sha(b"hello")
    assert app.problems == []


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


@pytest.mark.parametrize(
    ("query", "length"), [(b"204", None), (b"204-0", None), (b"304", None), (b"304-10", "10")]
)
def test_no_content_has_neither_body_nor_length(
    place: Place, query: bytes, length: str | None
) -> None:
    client = place.connect()
    client.sendall(GET % (b"/nothing?" + query, b"") + GET % (b"/query?next", b""))
    stream = client.makefile("rb").read1
    data = b""
    while not data.endswith(b"next"):
        data += stream(1000)
    head, _, rest = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 " + query[:3])
    assert rest.startswith(b"HTTP/1.1 200 OK")
    found = {line.partition(b":")[0].lower(): line for line in head.splitlines()[1:]}
    assert b"transfer-encoding" not in found
    told = found.get(b"content-length")
    assert told == (None if length is None else b"Content-Length: " + length.encode())


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
