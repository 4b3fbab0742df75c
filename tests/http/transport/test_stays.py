"""A thread that was the only one at work polls its connection before it returns to epoll."""

import threading
import time
from collections.abc import Callable, Iterator
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest
from tests.http.transport.crew import GET, App, Place, answer, within

from moorage.http.transport import thread_pool
from moorage.http.transport.connection import Connection
from moorage.http.transport.limits import ConnectionLimits

_THREE = ConnectionLimits(connections=9, threads=3, idle_seconds=60, body_seconds=60)
_HEAD = b"PUT /who HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n"


@pytest.fixture
def place(start: Callable[..., Place], monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """With threads that stay longer than any test takes."""
    monkeypatch.setattr(thread_pool, "_STAY_SECONDS", 30.0)
    made = start(_THREE)
    yield made
    made.crew.end_late_ones(time.monotonic() + 61)


def test_one_thread_serves_a_client_that_asks_again_and_again(place: Place) -> None:
    client = place.connect()
    found = set()
    for _ in range(50):
        client.sendall(_HEAD)
        client.sendall(b"hello")
        found.add(answer(client)[2])
    assert len(found) == 1


def test_others_are_served_meanwhile(place: Place) -> None:
    one, other = place.connect(), place.connect()
    one.sendall(GET % (b"/who", b""))
    stays = answer(one)[2]
    within(lambda: place.crew._staying == 1)
    other.sendall(GET % (b"/who", b""))
    assert answer(other)[2] != stays
    one.sendall(GET % (b"/who", b""))
    assert answer(one)[2] == stays


def test_nobody_stays_while_another_is_at_work(place: Place, app: App) -> None:
    goes = threading.Event()

    def slow(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        goes.wait(20)
        start_response("200 OK", [])
        return [b"done"]

    app.slow = slow  # type: ignore[attr-defined]
    busy, quick = place.connect(), place.connect()
    busy.sendall(GET % (b"/slow", b""))
    within(lambda: place.crew.busy)
    quick.sendall(GET % (b"/query?a", b""))
    assert answer(quick)[2] == b"a"
    within(lambda: place.crew._waiting == place.crew._threads - 1)
    assert place.crew._staying == 0
    goes.set()
    assert answer(busy)[2] == b"done"


def test_who_stays_keeps_no_end_waiting_and_begins_nothing_after_it(place: Place) -> None:
    client = place.connect()
    client.sendall(GET % (b"/query?a", b""))
    assert answer(client)[2] == b"a"
    within(lambda: place.crew._staying == 1)
    assert not place.crew.busy
    assert place.crew.stop_if_idle()
    client.sendall(GET % (b"/query?b", b""))
    client.settimeout(0.3)
    with pytest.raises(TimeoutError):
        client.recv(1)
    for connection in place.crew._connections.values():
        connection.close()
    place.crew._connections.clear()


def test_a_thread_that_cannot_wait_is_counted_no_more(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_self: Connection, _seconds: float) -> bool:
        raise MemoryError

    monkeypatch.setattr(Connection, "wait", broken)
    client = place.connect()
    client.sendall(GET % (b"/query?a", b""))
    assert answer(client)[2] == b"a"
    within(lambda: not len(place.crew))
    assert (place.crew._staying, place.crew._waiting) == (0, place.crew._threads)
    assert client.recv(1) == b""


def test_a_connection_that_rests_too_long_is_ended_under_who_stays(place: Place) -> None:
    client = place.connect()
    client.sendall(GET % (b"/query?a", b""))
    assert answer(client)[2] == b"a"
    within(lambda: place.crew._staying == 1)
    place.crew.end_late_ones(time.monotonic() + 61)
    assert client.recv(1) == b""
    within(lambda: place.crew._staying == 0 and not len(place.crew))
