"""A connection that asks too much is not read for a moment; others do not notice it."""

import time
from collections.abc import Callable

from tests.http.transport.crew import GET, Place, answer

from moorage.http.transport.limits import ConnectionLimits
from moorage.http.transport.pause_queue import PAUSE, PauseQueue

TOO_MUCH = GET % (b"/nothing?429-0", b"")
_LIMITS = ConnectionLimits(connections=99, threads=2, idle_seconds=60, body_seconds=60)


def test_connections_go_on_after_the_pause_in_order() -> None:
    gone: list[tuple[int, float]] = []
    pauses = PauseQueue(lambda one: gone.append((one, time.monotonic())), seconds=0.1)
    for _ in range(2):
        began, known = time.monotonic(), len(gone)
        for descriptor in (5, 3, 4):
            pauses.wait(descriptor)
        while len(gone) < known + 3:
            assert time.monotonic() < began + 30
            time.sleep(0.01)
        assert [one for one, _ in gone[-3:]] == [5, 3, 4]
        assert gone[-3][1] - began >= 0.1


def test_who_asks_too_much_is_answered_at_once_and_read_after_a_pause(
    start: Callable[..., Place],
) -> None:
    place = start(_LIMITS)
    greedy, other = place.connect(), place.connect()
    began, asked, answered = time.monotonic(), 0, 0
    while asked < 4:
        greedy.sendall(TOO_MUCH)
        assert answer(greedy)[0] == 429
        asked += 1
        sent = time.monotonic()
        other.sendall(GET % (b"/query?quick", b""))
        assert answer(other)[2] == b"quick"
        answered += time.monotonic() - sent < PAUSE
    assert time.monotonic() - began >= 3 * PAUSE
    assert answered >= 3, "others have no pause"


def test_after_another_answer_there_is_no_pause(start: Callable[..., Place]) -> None:
    place = start(_LIMITS)
    client = place.connect()
    client.sendall(TOO_MUCH)
    answer(client)
    client.sendall(GET % (b"/query?quick", b""))
    answer(client)
    began = time.monotonic()
    client.sendall(GET % (b"/query?quick", b""))
    answer(client)
    assert time.monotonic() - began < PAUSE
