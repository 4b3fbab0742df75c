"""The lock of writers: so many at a time, in the order of arrival, with an end to waiting."""

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

import pytest

from moorage.domain.errors import Busy
from moorage.store.database.fifo_lock import FifoLock


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)


def test_first_come_first_served() -> None:
    lock, order = FifoLock(10), []
    lock.acquire()

    def come(number: int) -> None:
        with lock:
            order.append(number)

    comers = []
    for number in range(6):
        comers.append(Thread(target=come, args=(number,)))
        comers[-1].start()
        wait_until(lambda number=number: len(lock._waiting) == number + 1)  # type: ignore[misc]
    lock.release()
    for comer in comers:
        comer.join()
    assert order == list(range(6))


def test_a_thread_that_waits_too_long_is_told_to_come_again() -> None:
    lock = FifoLock(0.01)
    with lock, pytest.raises(Busy):
        lock.acquire()
    with lock:
        pass  # what gave up does not keep a place in the queue


def test_a_place_comes_back_whatever_became_of_the_work() -> None:
    lock = FifoLock(0.01, most=2)
    with lock:
        with pytest.raises(LookupError), lock:
            raise LookupError
        with lock, pytest.raises(Busy), lock:
            raise AssertionError("there were only two")


@pytest.mark.parametrize("places", [1, 3])
def test_no_more_than_there_are_places_under_pressure(places: int) -> None:
    lock, inside, most, turns = FifoLock(0.0005, most=places), [], [], []

    def work() -> None:
        for _ in range(200):
            with suppress(Busy), lock:
                inside.append(1)
                most.append(len(inside))
                inside.pop()
                turns.append(1)

    workers = [Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert max(most) <= places
    assert turns
    assert lock._free == places
