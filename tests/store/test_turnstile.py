"""The writers' lock: one at a time, in the order of arrival, with an end to waiting."""

import time
from threading import Thread

from moorage.store.turnstile import Turnstile


def wait_until(condition: object, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:  # type: ignore[operator]
        time.sleep(0.001)


def test_first_come_first_served() -> None:
    turnstile, order = Turnstile(), []
    assert turnstile.acquire(1)

    def come(number: int) -> None:
        assert turnstile.acquire(10)
        order.append(number)
        turnstile.release()

    comers = []
    for number in range(6):
        comers.append(Thread(target=come, args=(number,)))
        comers[-1].start()
        wait_until(lambda number=number: len(turnstile._waiting) == number + 1)
    turnstile.release()
    for comer in comers:
        comer.join()
    assert order == list(range(6))


def test_nobody_waits_longer_than_asked() -> None:
    turnstile = Turnstile()
    assert turnstile.acquire(1)
    assert not turnstile.acquire(0.01)
    turnstile.release()
    assert turnstile.acquire(0.01), "who gave up does not keep a place in the queue"
    turnstile.release()


def test_one_at_a_time_under_pressure() -> None:
    turnstile, inside, most, turns = Turnstile(), [], [], []

    def work() -> None:
        for _ in range(200):
            if not turnstile.acquire(0.0005):
                continue
            inside.append(1)
            most.append(len(inside))
            inside.pop()
            turns.append(1)
            turnstile.release()

    workers = [Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert max(most) == 1
    assert turns
    assert turnstile.acquire(1), "the lock is free at the end"
