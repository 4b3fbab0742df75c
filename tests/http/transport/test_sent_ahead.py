"""Clients that send requests ahead have one thread between them; others are served meanwhile."""

import threading
import time
from collections.abc import Callable
from itertools import pairwise
from wsgiref.types import StartResponse, WSGIEnvironment

from tests.http.transport.crew import GET, App, Place, answer, within

from moorage.http.transport.limits import ConnectionLimits

_THREE = ConnectionLimits(connections=99, threads=3, idle_seconds=60, body_seconds=60)


def test_requests_sent_ahead_leave_threads_to_others(start: Callable[..., Place], app: App) -> None:
    place, goes, ran = start(_THREE), threading.Semaphore(0), []

    def slow(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        ran.append(environ["QUERY_STRING"])
        if not environ["QUERY_STRING"].endswith("-0"):
            assert goes.acquire(timeout=20)
        start_response("200 OK", [])
        return [environ["QUERY_STRING"].encode()]

    app.slow = slow  # type: ignore[attr-defined]
    greedy = [place.connect() for _ in range(8)]
    for number, one in enumerate(greedy):
        one.sendall(b"".join(GET % (b"/slow?%d-%d" % (number, n), b"") for n in range(4)))
    within(lambda: len(ran) >= 9)
    other = place.connect()
    other.sendall(GET % (b"/query?quick", b""))
    assert answer(other)[2] == b"quick"
    assert len(ran) == 9, "one of all that was sent ahead is worked on"
    for _ in range(24):
        goes.release()
    for number, one in enumerate(greedy):
        found = b""
        while found.count(b"\r\n\r\n") < 4 or not found.endswith(b"-3"):
            found += one.recv(4096)
        order = [found.index(b"\r\n\r\n%d-%d" % (number, n)) for n in range(4)]
        assert order == sorted(order), "in the order they were sent"
    later = [word for word in ran if not word.endswith("-0")]
    assert {word.partition("-")[0] for word in later[:8]} == {str(n) for n in range(8)}, "in turns"


def test_requests_sent_ahead_leave_the_processor_to_others(
    start: Callable[..., Place], app: App
) -> None:
    """After each the thread that serves them rests for three times as long as it took."""
    place = start(_THREE)
    ran: list[tuple[float, float]] = []

    def slow(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        began = time.monotonic()
        time.sleep(0.01)
        start_response("200 OK", [])
        ran.append((began, time.monotonic()))
        return [environ["QUERY_STRING"].encode()]

    app.slow = slow  # type: ignore[attr-defined]
    place.connect().sendall(GET % (b"/slow?a", b"") * 6)
    within(lambda: len(ran) == 6)
    # The first is answered when it comes; the others were sent ahead.
    for (began, ended), (after, _) in pairwise(ran[1:]):
        assert after - ended >= min(3 * (ended - began), 0.05)
