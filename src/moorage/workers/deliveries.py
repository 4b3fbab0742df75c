"""Delivers events to subscriptions from any number of processes, with bounded concurrency.

Subscriptions are served side by side, each in its own order. Those whose target fails have at most
half of the places, so that targets that never answer do not delay others.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock
from typing import TYPE_CHECKING, Final, Protocol

from moorage.workers.loop import FailureLog, in_threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.subscriptions import Subscription
    from moorage.usecases.ports import Store
    from moorage.workers.loop import Worker

BATCH: Final = 500
"""Subscriptions read in one round."""

_ROUNDS: Final = "deliveries"
_ITEMS: Final = "a delivery"


class DeliveryResult(Protocol):
    """The result of one delivery turn."""

    @property
    def passed(self) -> tuple[str, int, int] | None:
        """The subscription and positions up to which no event matched it."""


class DeliveryUseCases(Protocol):
    """The use cases of deliveries."""

    def deliver(self, one: Subscription) -> DeliveryResult:
        """Deliver what is due to one subscription."""

    def passing(self, passed: Sequence[tuple[str, int, int]]) -> None:
        """Record subscriptions for which no event matched."""


@dataclass
class DeliveryQueue:
    """The deliveries of one process."""

    store: Store
    work: DeliveryUseCases
    places: int
    """How many are under way at once, at the most."""
    failures: FailureLog = field(default_factory=FailureLog)
    _busy: dict[str, bool] = field(default_factory=dict)
    """Subscription -> whether its target was failing."""
    _passed: list[tuple[str, int, int]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _free: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.places, thread_name_prefix="moorage-delivery")

    def once(self) -> int:
        """Start due deliveries while there are free places; return how many were started."""
        self._free.clear()
        self._note_passed()
        started = 0
        due = self.store.event_log.due(BATCH)
        for one in sorted(due, key=lambda one: one.failing_since is not None):
            if self._begin(one):
                started += 1
                self._pool.submit(self._deliver, one)
        return started

    def wait(self, interval: float) -> None:
        """Wait until a place is free again, or an interval has passed."""
        self._free.wait(interval)

    def idle(self) -> bool:
        """Whether nothing is under way."""
        with self._lock:
            return not self._busy

    def close(self) -> None:
        """Start no more deliveries; running ones are not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, one: Subscription) -> bool:
        failing = one.failing_since is not None
        with self._lock:
            if one.id in self._busy or len(self._busy) >= self.places:
                return False
            if failing and sum(self._busy.values()) >= max(1, self.places // 2):
                return False
            self._busy[one.id] = failing
            return True

    def _deliver(self, one: Subscription) -> None:
        try:
            passed = self.work.deliver(one).passed
            if passed is not None:
                with self._lock:
                    self._passed.append(passed)
        except Exception as error:  # noqa: BLE001 - one bad subscription must not keep others waiting
            self.failures.failed(_ITEMS, error, f"could not deliver to subscription {one.id}")
        else:
            self.failures.recovered(_ITEMS)
        finally:
            with self._lock:
                del self._busy[one.id]
            self._free.set()

    def _note_passed(self) -> None:
        with self._lock:
            passed, self._passed = self._passed, []
        if passed:
            self.work.passing(passed)


def run(queue: DeliveryQueue, *, stop: Event, interval: float) -> None:
    """Deliver every `interval` seconds until `stop` is set; at once again when places are free.

    An exception, such as an unreachable database, is recorded and does not end the loop.
    """
    while not stop.is_set():
        started = 0
        try:
            started = queue.once()
        except Exception as error:  # noqa: BLE001 - the loop's last resort; the next round tries again
            queue.failures.failed(_ROUNDS, error)
        else:
            queue.failures.recovered(_ROUNDS)
            if not started and queue.idle():  # no delivery is left that could signal success
                queue.failures.recovered(_ITEMS)
        if started:
            queue.wait(interval)
        else:
            stop.wait(interval)
    queue.close()


def start(queue: DeliveryQueue, *, interval: float = 1.0) -> Worker:
    """Run the loop in a thread of its own."""
    stop = Event()
    return in_threads(stop, {"deliveries": partial(run, queue, stop=stop, interval=interval)})
