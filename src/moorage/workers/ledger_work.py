"""The background work that keeps the ledger in step with time, as functions of one round each."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.effects import Lane
from moorage.workers import effects
from moorage.workers.expiry import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from moorage.domain.effects import Effect
    from moorage.usecases.ports import Store
    from moorage.workers.effects import EffectUseCases
    from moorage.workers.expiry import Expire

MOST_ROUNDS: Final = 50
"""Rounds of background work at one instant."""


@dataclass(frozen=True, slots=True)
class LedgerWork:
    """Expiry, effects, and scans for what nobody reports."""

    store: Store
    expire: Expire
    effects: EffectUseCases
    scans: Mapping[str, Callable[[], bool]]
    """By name; each looks once, and returns whether there is more to be looked at now."""

    def in_turns(self, turn: AbstractContextManager[object]) -> LedgerWork:
        """The same work, with `turn` held during each piece of it."""

        def held(work: Callable[..., Any]) -> Callable[..., Any]:
            def work_in_turn(*given: object) -> Any:  # noqa: ANN401 - as the work returns
                with turn:
                    return work(*given)

            return work_in_turn

        return LedgerWork(
            self.store,
            held(self.expire),
            _EffectsInTurn(self.effects, turn),
            {name: held(scan) for name, scan in self.scans.items()},
        )

    def finish(self) -> None:
        """Do what is due at this instant, until a round finds nothing more."""
        for _ in range(MOST_ROUNDS):
            if not self._round():
                return

    def _round(self) -> bool:
        """Whether the round found something to do."""
        revision = self.store.snapshot().revision
        swept = sweep(self.store, self.expire)
        found = swept.due - len(swept.seen)
        for lane in Lane:
            found += effects.once(self.store, self.effects, lane, stop=Event()).due
        for scan in self.scans.values():
            found += scan()
        return bool(found) or self.store.snapshot().revision != revision


@dataclass(frozen=True, slots=True)
class _EffectsInTurn:
    """Use cases of effects, with `turn` held during each."""

    work: EffectUseCases
    turn: AbstractContextManager[object]

    def carry_out(self, effect: Effect) -> object:
        """See `EffectUseCases`."""
        with self.turn:
            return self.work.carry_out(effect)

    def postpone(self, effect: Effect, problem: str) -> None:
        """See `EffectUseCases`."""
        with self.turn:
            self.work.postpone(effect, problem)
