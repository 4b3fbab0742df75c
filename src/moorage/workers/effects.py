"""Carries out effects that are due: a loop per lane, in any number of server processes.

They synchronise in the store: a worker that takes an effect on, or does it, names the attempts it
has seen, so of two workers one commits and the other finds nothing left to do. A lane waits for its
own calls only: a webhook that never answers delays no start of a lease and no end of a server.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Protocol

from moorage.domain.effects import Lane
from moorage.workers import loop
from moorage.workers.loop import FailureLog

if TYPE_CHECKING:
    from collections.abc import Callable

    from moorage.domain.effects import Effect
    from moorage.usecases.ports import Store
    from moorage.workers.loop import Worker

BATCH: Final = 100
"""Effects looked at in one round."""


class EffectUseCases(Protocol):
    """The use cases of effects."""

    def carry_out(self, effect: Effect) -> object:
        """Carry out one effect."""

    def postpone(self, effect: Effect, problem: str) -> None:
        """Postpone an effect that failed unexpectedly."""


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one round: how many effects were tried, and how many of them failed."""

    due: int
    failed: int


def once(
    store: Store,
    work: EffectUseCases,
    lane: Lane,
    *,
    stop: Event,
    limit: int = BATCH,
    failures: FailureLog | None = None,
) -> Round:
    """Carry out what is due in a lane, one by one, the longest due first.

    Carrying out an effect may create one that is due earlier than the next: the ledger is queried
    again after each. One that fails is logged, postponed, and does not stop the rest.
    """
    done = failed = 0
    log = failures or FailureLog()
    seen: set[tuple[str, int]] = set()
    while done < limit and not stop.is_set():
        due = store.due_effects(1, lane)
        if due and (due[0].id, due[0].not_before) in seen:  # still due: take the one after it
            due = store.due_effects(1 + len(seen), lane)
        effect = next((one for one in due if (one.id, one.not_before) not in seen), None)
        if effect is None:
            break
        done += 1
        seen.add((effect.id, effect.not_before))
        try:
            work.carry_out(effect)
        except Exception as error:  # noqa: BLE001 - one bad effect must not keep others waiting
            failed += 1
            log.failed(_loop_name(lane), error, f"could not carry out {effect.kind} {effect.id}")
            work.postpone(effect, str(error) or type(error).__name__)
    return Round(done, failed)


def _loop_name(lane: Lane) -> str:
    return f"effects, {lane}"


def run(  # noqa: PLR0913 - the store, the work, the loop's terms, and observers
    store: Store,
    work: EffectUseCases,
    lane: Lane,
    *,
    stop: Event,
    interval: float = 1.0,
    done: Callable[[Lane], object] = lambda _lane: None,
    failures: FailureLog | None = None,
) -> None:
    """Carry out what is due every `interval` seconds until `stop` is set; see `loop.run`."""
    log = failures or FailureLog()

    def round_() -> loop.Round:
        found = once(store, work, lane, stop=stop, failures=log)
        return loop.Round(found.due >= BATCH, found.failed)

    loop.run(
        round_,
        stop=stop,
        interval=interval,
        name=_loop_name(lane),
        failures=log,
        done=partial(done, lane),
    )


def start(
    store: Store,
    work: EffectUseCases,
    *,
    interval: float = 1.0,
    done: Callable[[Lane], object] = lambda _lane: None,
    failures: FailureLog | None = None,
) -> Worker:
    """Run a loop per lane, each in a thread of its own."""
    stop, log = Event(), failures or FailureLog()
    terms: dict[str, Any] = {"stop": stop, "interval": interval, "done": done, "failures": log}
    return loop.in_threads(
        stop, {f"effects-{lane}": partial(run, store, work, lane, **terms) for lane in Lane}
    )
