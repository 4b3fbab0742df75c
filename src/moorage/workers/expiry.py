"""Notes lapses: decisions whose hold has run out, claims whose server never came.

Any number of server processes may run the loop. They meet in the store: expiring an item is a
changeset that names the state it expects, so of two workers one commits and the other finds
nothing left to do; one that is killed half way has changed nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.workers.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.decisions import Claim, Decision
    from moorage.usecases.ports import Store

Expire: TypeAlias = "Callable[[Decision | Claim], bool]"
"""The use case: expires one item; False where it found nothing to do."""

BATCH: Final = 100
"""Items looked at in one round."""

_LOOP: Final = "expiry"


@dataclass(frozen=True, slots=True)
class Swept:
    """What one batch did: how many items were looked at, and how many of them failed."""

    due: int
    failed: int
    seen: frozenset[str] = frozenset()
    """Ids looked at in this round that may be due still."""


def sweep(
    store: Store,
    expire: Expire,
    *,
    limit: int = BATCH,
    seen: frozenset[str] = frozenset(),
    trouble: Trouble | None = None,
) -> Swept:
    """Expire what is due, one by one; an item that fails is logged and does not stop the rest.

    Ids in `seen` had their turn: whatever stays due must not hide what comes after it.
    """
    items = [item for item in store.due(limit + len(seen)) if item.id not in seen][:limit]
    failed, left, said = 0, set(seen), trouble or Trouble()
    for item in items:
        try:
            if not expire(item):
                left.add(item.id)
        except Exception as error:  # noqa: BLE001 - one bad item must not keep the others from lapsing
            failed += 1
            left.add(item.id)
            said.met(_LOOP, error, f"could not expire {type(item).__name__.lower()} {item.id}")
    return Swept(due=len(items), failed=failed, seen=frozenset(left))


def _nobody() -> None:
    """Nobody is told of a round's end."""


def run(
    store: Store,
    expire: Expire,
    *,
    stop: Event,
    interval: float = 1.0,
    done: Callable[[], None] = _nobody,
    trouble: Trouble | None = None,
) -> None:
    """Sweep every `interval` seconds until `stop` is set; at once again while more is due.

    In one round every item has one turn, so one that never ends neither keeps the loop turning
    nor others waiting. Nothing that goes wrong in a round ends the loop, a database out of reach
    neither. `done` is called after each round in which nothing did.
    """
    seen: frozenset[str] = frozenset()
    said = trouble or Trouble()
    while not stop.is_set():
        try:
            swept = sweep(store, expire, seen=seen, trouble=said)
        except Exception as error:  # noqa: BLE001 - the last to hear of it; the next round tries again
            said.met(_LOOP, error)
            swept = Swept(due=0, failed=1)
        if not swept.failed:
            said.over(_LOOP)
            done()
        seen = swept.seen
        if swept.due < BATCH:
            seen = frozenset()
            stop.wait(interval)


@dataclass(frozen=True, slots=True)
class Worker:
    """A running loop."""

    stop: Event
    thread: Thread

    def close(self, timeout: float = 5.0) -> None:
        """Ask the loop to end and wait for it, at most `timeout` seconds."""
        self.stop.set()
        self.thread.join(timeout)


def start(
    store: Store,
    expire: Expire,
    *,
    interval: float = 1.0,
    done: Callable[[], None] = _nobody,
    trouble: Trouble | None = None,
) -> Worker:
    """Run the loop in a thread that does not keep the process alive."""
    stop = Event()
    thread = Thread(
        target=run,
        args=(store, expire),
        kwargs={"stop": stop, "interval": interval, "done": done, "trouble": trouble},
        name="moorage-expiry",
        daemon=True,
    )
    thread.start()
    return Worker(stop, thread)
