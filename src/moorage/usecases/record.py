"""What came of an effect, written into it. Every write names the attempts that were seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.changes import PutEffect
from moorage.domain.effects import EffectStep, effect_after

if TYPE_CHECKING:
    from moorage.domain.effects import Effect
    from moorage.domain.period import Instant


def finished(effect: Effect, outcome: str, now: Instant) -> PutEffect:
    """It is done."""
    return _written(effect, EffectStep.FINISH, outcome, now)


def given_up(effect: Effect, outcome: str, now: Instant) -> PutEffect:
    """It has failed too often."""
    return _written(effect, EffectStep.GIVE_UP, outcome, now)


def taken(effect: Effect, until: Instant, now: Instant) -> PutEffect:
    """Somebody tries, and has until then: who has not said by then what came of it is gone."""
    return put_off(replace(effect, attempts=effect.attempts + 1), until, now, seen=effect.attempts)


def put_off(
    effect: Effect,
    until: Instant,
    now: Instant,
    *,
    outcome: str | None = None,
    seen: int | None = None,
) -> PutEffect:
    """It is to be taken on again then, and not before."""
    told = effect.outcome if outcome is None else outcome
    later = replace(
        effect,
        state=effect_after(effect.state, EffectStep.RETRY),
        not_before=until,
        outcome=told,
        updated_at=now,
    )
    return PutEffect(later, effect.attempts if seen is None else seen)


def _written(effect: Effect, step: EffectStep, outcome: str, now: Instant) -> PutEffect:
    state = effect_after(effect.state, step)
    return PutEffect(replace(effect, state=state, outcome=outcome, updated_at=now), effect.attempts)
