"""Connections that rest, end, or are left; and threads."""

import contextvars
import gc
import logging
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest
from tests.http.transport.crew import GET, MUCH, WIRE, App, Parts, Place, answer, sha, within

from moorage.http.transport.limits import ConnectionLimits


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


def test_who_takes_an_answer_byte_by_byte_is_ended(start: Callable[..., Place]) -> None:
    """The system says that there is room again once a third of what it keeps is free."""
    place = start(ConnectionLimits(connections=9, threads=1, idle_seconds=1, body_seconds=60))
    slow = place.connect()
    slow.sendall(GET % (b"/whole", b""))
    taken, until = 0, time.monotonic() + 100
    while len(place.crew) and time.monotonic() < until:
        place.crew.end_late_ones(time.monotonic())
        taken += len(slow.recv(1))
        time.sleep(0.05)
    assert not len(place.crew)
    assert 0 < taken < 400


def test_no_other_ends_while_the_one_that_makes_room_is_still_at_its_last_request(
    app: App, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It no longer counts as idle then, and must not be replaced by the next idle one."""
    first_goes_on, last_begun, last_goes_on = (threading.Event() for _ in range(3))

    def first(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        assert first_goes_on.wait(60)
        return app.query(environ, start_response)

    def last(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        last_begun.set()
        assert last_goes_on.wait(60)
        return app.query(environ, start_response)

    monkeypatch.setattr(app, "first", first, raising=False)
    monkeypatch.setattr(app, "last", last, raising=False)
    busy, oldest, other = place.connect(), place.connect(), place.connect()
    busy.sendall(GET % (b"/first?a", b""))
    within(lambda: not place.crew._waiting)
    oldest.sendall(GET % (b"/last?b", b""))  # not received: the only thread is busy
    place.crew.make_room(2, time.monotonic() + 2)
    first_goes_on.set()
    assert last_begun.wait(60)
    place.crew.make_room(2, time.monotonic() + 2)
    last_goes_on.set()
    assert [answer(each)[2] for each in (busy, oldest)] == [b"a", b"b"]
    assert oldest.recv(1) == b""
    for each in (busy, other):
        each.sendall(GET % (b"/query?c", b""))
        assert answer(each)[2] == b"c"


def test_a_body_that_is_late_is_given_up(
    app: App, start: Callable[..., Place], caplog: pytest.LogCaptureFixture
) -> None:
    place = start(ConnectionLimits(connections=9, threads=2, idle_seconds=60, body_seconds=0.3))
    client = place.connect()
    client.sendall(b"PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhell")
    within(lambda: place.crew.busy)

    def given_up() -> bool:
        """A connection in the middle of a turn is left alone, so this is asked again and again."""
        place.crew.end_late_ones(time.monotonic() + 1)
        return bool(app.problems)

    with caplog.at_level(logging.WARNING):
        within(given_up)
        status, headers, body = answer(client)
    assert (status, headers["connection"], body) == (200, "close", sha(b"nothing whole"))
    assert isinstance(app.problems[0], TimeoutError)
    assert "its request body took longer than 0.3 s" in caplog.text


def test_a_body_that_goes_on_and_on_is_given_up(app: App, start: Callable[..., Place]) -> None:
    place = start(ConnectionLimits(connections=9, threads=2, idle_seconds=60, body_seconds=0.3))
    client = place.connect()
    client.sendall(b"PUT /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
    until = time.monotonic() + 100
    while not app.problems:
        assert time.monotonic() < until
        client.sendall(b"1\r\nx\r\n" * 100)
    assert isinstance(app.problems[0], TimeoutError)


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
    assert answer(other)[0] == 400
    [problem] = app.problems
    assert isinstance(problem, ConnectionError)


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
    [connection] = [weakref.ref(each._parser) for each in place.crew._connections.values()]
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

    def slow(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        waits.release()
        goes.wait(20)
        start_response("200 OK", [])
        return [b"done"]

    app.slow = slow  # type: ignore[attr-defined]
    place = start(ConnectionLimits(connections=9, threads=3, idle_seconds=60, body_seconds=60))
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
    assert not place.crew.stop_if_idle()
    busy.sendall(b"o")
    assert answer(busy)[2] == sha(b"hello")
    within(place.crew.stop_if_idle)
    later.sendall(GET % (b"/query?a", b""))
    later.settimeout(0.3)
    with pytest.raises(TimeoutError):
        later.recv(1)
    for connection in place.crew._connections.values():
        connection.close()
    for client in (busy, later):
        client.close()


def test_what_an_application_binds_goes_with_its_answer_and_stays_with_no_thread(
    app: App, place: Place
) -> None:
    whose = contextvars.ContextVar("whose", default="nobody")
    found: list[str] = []

    def parts() -> Iterator[bytes]:
        for _ in range(8):
            found.append(whose.get())
            yield b"x" * (MUCH // 8)

    def bound(environ: WSGIEnvironment, start_response: StartResponse) -> Parts:
        found.append(whose.get())
        whose.set(environ["QUERY_STRING"])
        start_response("200 OK", [])
        return Parts(parts())

    app.bound = bound  # type: ignore[attr-defined]
    one, other = place.connect(), place.connect()
    for name, client in ((b"one", one), (b"other", other)):
        client.sendall(GET % (b"/bound?" + name, b""))
        within(lambda: place.crew.busy and place.crew._waiting == 1)
    within(lambda: found.count("nobody") == 2)
    assert len(answer(one)[2]) == len(answer(other)[2]) == MUCH
    assert sorted(found) == ["nobody"] * 2 + ["one"] * 8 + ["other"] * 8
