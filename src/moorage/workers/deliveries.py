"""Delivers events to subscriptions, in any number of server processes, a bounded number at a time.

Subscriptions are served side by side, each in its own order. Those whose target fails have at most
half of the places, so that targets that never answer hold nobody else up.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final, Protocol

from moorage.workers.expiry import Worker
from moorage.workers.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Sequence

    from moorage.domain.subscriptions import Subscription
    from moorage.usecases.ports import Store

LOOKED_AT: Final = 500
"""Subscriptions looked at in one round."""

_ROUNDS: Final = "deliveries"
_ONES: Final = "a delivery"


class Came(Protocol):
    """What a turn came to."""

    @property
    def passed(self) -> tuple[str, int, int] | None:
        """Nothing was for it up to here."""


class Deliver(Protocol):
    """The use cases of deliveries."""

    def deliver(self, one: Subscription) -> Came:
        """Deliver what is due to one subscription."""

    def passing(self, passed: Sequence[tuple[str, int, int]]) -> None:
        """Note that there was nothing for these."""


@dataclass
class Post:
    """One process's deliveries."""

    store: Store
    work: Deliver
    places: int
    """How many are under way at once, at the most."""
    trouble: Trouble = field(default_factory=Trouble)
    _busy: dict[str, bool] = field(default_factory=dict)
    """Subscription -> whether its target was failing."""
    _passed: list[tuple[str, int, int]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)
    _free: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(self.places, thread_name_prefix="moorage-delivery")

    def once(self) -> int:
        """Hand out what is due, as far as there are places; how many were handed out."""
        self._free.clear()
        self._note_passed()
        started = 0
        due = self.store.told.due(LOOKED_AT)
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
        """Hand out nothing more, and leave behind what is under way."""
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
            self.trouble.met(_ONES, error, f"could not deliver to subscription {one.id}")
        else:
            self.trouble.over(_ONES)
        finally:
            with self._lock:
                del self._busy[one.id]
            self._free.set()

    def _note_passed(self) -> None:
        with self._lock:
            passed, self._passed = self._passed, []
        if passed:
            self.work.passing(passed)


def run(post: Post, *, stop: Event, interval: float) -> None:
    """Deliver every `interval` seconds until `stop` is set; at once again when places are free.

    Nothing that goes wrong ends the loop, a database out of reach neither.
    """
    while not stop.is_set():
        started = 0
        try:
            started = post.once()
        except Exception as error:  # noqa: BLE001 - the last to hear of it; the next round tries again
            post.trouble.met(_ROUNDS, error)
        else:
            post.trouble.over(_ROUNDS)
            if not started and post.idle():  # nobody is left whose success could tell
                post.trouble.over(_ONES)
        if started:
            post.wait(interval)
        else:
            stop.wait(interval)
    post.close()


def start(post: Post, *, interval: float = 1.0) -> Worker:
    """Run the loop in a thread that does not keep the process alive."""
    stop = Event()
    thread = Thread(
        target=run,
        args=(post,),
        kwargs={"stop": stop, "interval": interval},
        name="moorage-deliveries",
        daemon=True,
    )
    thread.start()
    return Worker(stop, thread)
