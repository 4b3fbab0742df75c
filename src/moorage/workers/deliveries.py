"""Delivers events to subscriptions from any number of processes, with bounded concurrency.

Subscriptions are served side by side, each in its own order. Those of one project have at most a
share of the places. The projects with the fewest deliveries under way come first, and of these the
one whose last turn is longest ago, so that nobody's targets delay those of others. Subscriptions
whose target fails have at most half of the places.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
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
    share: int
    """How many of them to targets of one project, at the most."""
    failures: FailureLog = field(default_factory=FailureLog)
    _busy: dict[str, Subscription] = field(default_factory=dict)
    """Those under way, by id, as they were before."""
    _passed: list[tuple[str, int, int]] = field(default_factory=list)
    _turns: dict[str, int] = field(default_factory=dict)
    """Project -> number of the latest delivery begun to its targets; of those with any due."""
    _begun: int = 0
    _lock: Lock = field(default_factory=Lock)
    _free: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.places, thread_name_prefix="moorage-delivery")

    def once(self) -> int:
        """Start due deliveries while there are free places; return how many were started."""
        self._free.clear()
        self._note_passed()
        due = self._in_turn(self.store.event_log.due(BATCH))
        with self._lock:
            places = self.places - len(self._busy)
        started = 0
        for one in due:
            # A place that becomes free meanwhile is not for those behind: it is a new turn.
            if started == places:
                break
            if self._begin(one):
                self._begun += 1
                self._turns[one.project_id] = self._begun
                started += 1
                # Also of one that is cancelled at the end.
                self._pool.submit(self._deliver, one).add_done_callback(partial(self._end, one))
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

    def _in_turn(self, due: Sequence[Subscription]) -> Sequence[Subscription]:
        """Those whose targets answer first, and of these the projects with the fewest under way.

        Of projects with as many, the one comes first whose last turn is longest ago.
        """
        with self._lock:
            ahead = Counter(one.project_id for one in self._busy.values())
        projects = {one.project_id for one in due}
        self._turns = {one: turn for one, turn in self._turns.items() if one in projects}
        found = []
        for one in due:
            project = one.project_id
            found.append((_fails(one), ahead[project], self._turns.get(project, 0), one))
            ahead[project] += 1
        return [one for *_, one in sorted(found, key=itemgetter(0, 1, 2))]

    def _begin(self, one: Subscription) -> bool:
        with self._lock:
            busy = self._busy.values()
            if one.id in self._busy or len(busy) >= self.places:
                return False
            if sum(other.project_id == one.project_id for other in busy) >= self.share:
                return False
            if _fails(one) and sum(map(_fails, busy)) >= max(1, self.places // 2):
                return False
            self._busy[one.id] = one
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

    def _end(self, one: Subscription, _: object) -> None:
        with self._lock:
            del self._busy[one.id]
        self._free.set()

    def _note_passed(self) -> None:
        with self._lock:
            passed, self._passed = self._passed, []
        if passed:
            self.work.passing(passed)


def _fails(one: Subscription) -> bool:
    return one.failing_since is not None


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
