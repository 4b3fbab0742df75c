"""Carries out effects that are due: a loop per lane, in any number of server processes.

They meet in the store: whoever takes an effect on, or does it, names the attempts it has seen, so
of two workers one commits and the other finds nothing left to do. A lane waits for nobody outside
but its own: a webhook that never answers keeps no lease from starting and no server from ending.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Protocol

from moorage.domain.effects import Lane
from moorage.workers.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from moorage.domain.effects import Effect
    from moorage.usecases.ports import Store

BATCH: Final = 100
"""Effects looked at in one round."""


class CarryOut(Protocol):
    """The use cases of effects."""

    def carry_out(self, effect: Effect) -> object:
        """Carry out one effect."""

    def postpone(self, effect: Effect, problem: str) -> None:
        """Put off one that failed unexpectedly."""


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did: how many effects were looked at, and how many of them failed."""

    due: int
    failed: int


def once(
    store: Store,
    work: CarryOut,
    lane: Lane,
    *,
    stop: Event,
    limit: int = BATCH,
    trouble: Trouble | None = None,
) -> Round:
    """Carry out what is due in a lane, one by one, the longest due first.

    What an effect leads to may have been due before the next one: so after each the ledger is
    asked anew. One that fails is logged, put off, and does not stop the rest.
    """
    done = failed = 0
    said = trouble or Trouble()
    seen: set[tuple[str, int]] = set()
    while done < limit and not stop.is_set():
        due = store.due_effects(1, lane)
        if due and (due[0].id, due[0].not_before) in seen:  # it is due still: who comes after it?
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
            said.met(_loop(lane), error, f"could not carry out {effect.kind} {effect.id}")
            work.postpone(effect, str(error) or type(error).__name__)
    return Round(done, failed)


def _loop(lane: Lane) -> str:
    return f"effects, {lane}"


def _nobody(_: Lane) -> None:
    """Nobody is told of a round's end."""


def run(  # noqa: PLR0913 - what is worked on, with whom, how long, and who is told
    store: Store,
    work: CarryOut,
    lane: Lane,
    *,
    stop: Event,
    interval: float = 1.0,
    done: Callable[[Lane], None] = _nobody,
    trouble: Trouble | None = None,
) -> None:
    """Carry out what is due every `interval` seconds until `stop` is set; at once where more is.

    Nothing that goes wrong in a round ends the loop, a database out of reach neither. `done` is
    called after each round in which nothing did.
    """
    said = trouble or Trouble()
    while not stop.is_set():
        try:
            found = once(store, work, lane, stop=stop, trouble=said)
        except Exception as error:  # noqa: BLE001 - the last to hear of it; the next round tries again
            said.met(_loop(lane), error)
            found = Round(0, 1)
        if not found.failed:
            said.over(_loop(lane))
            done(lane)
        if found.due < BATCH:
            stop.wait(interval)


@dataclass(frozen=True, slots=True)
class Workers:
    """Running loops."""

    stop: Event
    threads: Sequence[Thread]

    def close(self, timeout: float = 5.0) -> None:
        """Ask the loops to end and wait for them, at most `timeout` seconds each."""
        self.stop.set()
        for thread in self.threads:
            thread.join(timeout)


def start(
    store: Store,
    work: CarryOut,
    *,
    interval: float = 1.0,
    done: Callable[[Lane], None] = _nobody,
    trouble: Trouble | None = None,
) -> Workers:
    """Run a loop per lane in threads that do not keep the process alive."""
    stop, said = Event(), trouble or Trouble()
    threads = [
        Thread(
            target=run,
            args=(store, work, lane),
            kwargs={"stop": stop, "interval": interval, "done": done, "trouble": said},
            name=f"moorage-effects-{lane}",
            daemon=True,
        )
        for lane in Lane
    ]
    for thread in threads:
        thread.start()
    return Workers(stop, threads)
