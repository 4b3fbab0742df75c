"""Expires decisions whose hold has ended, and claims whose server never came.

Any number of server processes may run the loop. They synchronise in the store: expiring an item is
a changeset that names the state it expects, so of two workers one commits and the other finds
nothing left to do; one that is killed half way has changed nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from moorage.workers import loop
from moorage.workers.loop import FailureLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.decisions import Claim, Decision
    from moorage.usecases.ports import Store
    from moorage.workers.loop import Worker

Expire: TypeAlias = "Callable[[Decision | Claim], bool]"
"""The use case: expires one item; False where it found nothing to do."""

BATCH: Final = 100
"""Items looked at in one round."""

_LOOP: Final = "expiry"


@dataclass(frozen=True, slots=True)
class Swept:
    """The result of one batch: how many items were tried, and how many of them failed."""

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
    failures: FailureLog | None = None,
) -> Swept:
    """Expire what is due, one by one; an item that fails is logged and does not stop the rest.

    Ids in `seen` are skipped: they were tried in this round and are still due.
    """
    items = [item for item in store.due(limit + len(seen)) if item.id not in seen][:limit]
    failed, left, log = 0, set(seen), failures or FailureLog()
    for item in items:
        try:
            if not expire(item):
                left.add(item.id)
        except Exception as error:  # noqa: BLE001 - one bad item must not keep the others from lapsing
            failed += 1
            left.add(item.id)
            log.failed(_LOOP, error, f"could not expire {type(item).__name__.lower()} {item.id}")
    return Swept(due=len(items), failed=failed, seen=frozenset(left))


def run(
    store: Store,
    expire: Expire,
    *,
    stop: Event,
    interval: float = 1.0,
    done: Callable[[], object] = lambda: None,
    failures: FailureLog | None = None,
) -> None:
    """Sweep every `interval` seconds until `stop` is set; at once again while more is due.

    Until all that is due has been tried, an item that failed or did not expire is not tried again,
    so it neither keeps the loop busy nor delays others. See `loop.run`.
    """
    seen: frozenset[str] = frozenset()
    log = failures or FailureLog()

    def round_() -> loop.Round:
        nonlocal seen
        before, seen = seen, frozenset()
        swept = sweep(store, expire, seen=before, failures=log)
        more = swept.due >= BATCH
        seen = swept.seen if more else frozenset()
        return loop.Round(more, swept.failed)

    loop.run(round_, stop=stop, interval=interval, name=_LOOP, failures=log, done=done)


def start(
    store: Store,
    expire: Expire,
    *,
    interval: float = 1.0,
    done: Callable[[], object] = lambda: None,
    failures: FailureLog | None = None,
) -> Worker:
    """Run the loop in a thread of its own."""
    stop = Event()
    terms: dict[str, Any] = {"stop": stop, "interval": interval, "done": done, "failures": failures}
    return loop.in_threads(stop, {"expiry": partial(run, store, expire, **terms)})
