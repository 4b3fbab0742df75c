"""Large bodies come at a pace that all of a worker share; others do not notice them."""

import hashlib
import socket
import threading
import time
from collections.abc import Callable

from tests.http.transport.crew import GET, Place, answer, within

from moorage.http.transport.body_queue import LARGE, RATE, BodyQueue
from moorage.http.transport.limits import ConnectionLimits

BIG = 8 * 1024 * 1024
_THREE = ConnectionLimits(connections=99, threads=3, idle_seconds=60, body_seconds=60)
_HEAD = b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n"


def test_those_that_began_first_go_on_first_and_none_before_its_time() -> None:
    gone: list[tuple[int, float]] = []
    bodies = BodyQueue(lambda one: gone.append((one, time.monotonic())), rate=1000)
    began = time.monotonic()
    bodies.wait(1, began=1.0, received=200)
    for descriptor in (4, 3, 2):
        bodies.wait(descriptor, began=float(descriptor), received=0)
    within(lambda: len(gone) == 4)
    assert [one for one, _ in gone] == [1, 2, 3, 4]
    assert gone[0][1] - began >= 0.2
    bodies.wait(5, began=5.0, received=0)  # it starts anew
    within(lambda: len(gone) == 5)


def test_large_bodies_have_a_pace_and_others_go_on(start: Callable[..., Place]) -> None:
    place, body = start(_THREE), b"x" * BIG
    senders = [place.connect() for _ in range(3)]
    began = time.monotonic()

    def send(sender: socket.socket) -> None:
        sender.sendall(_HEAD % BIG + body)

    threads = [threading.Thread(target=send, args=(one,)) for one in senders]
    for one in threads:
        one.start()
    other, answered = place.connect(), 0
    while any(one.is_alive() for one in threads):
        other.sendall(GET % (b"/query?quick", b""))
        assert answer(other)[2] == b"quick"
        answered += 1
    wanted = hashlib.sha256(body).hexdigest().encode()
    assert [answer(one)[2] for one in senders] == [wanted] * 3
    assert time.monotonic() - began > (3 * BIG - 3 * LARGE) / RATE * 0.9
    assert answered > 0


def test_a_large_body_that_comes_slowly_delays_no_other(start: Callable[..., Place]) -> None:
    place = start(_THREE)
    slow, quick = place.connect(), place.connect()
    slow.sendall(_HEAD % BIG + b"x" * (2 * LARGE))
    within(lambda: place.status.arriving > LARGE)
    quick.sendall(_HEAD % BIG + b"y" * BIG)
    assert answer(quick)[2] == hashlib.sha256(b"y" * BIG).hexdigest().encode()
    slow.sendall(b"x" * (BIG - 2 * LARGE))
    assert answer(slow)[2] == hashlib.sha256(b"x" * BIG).hexdigest().encode()
