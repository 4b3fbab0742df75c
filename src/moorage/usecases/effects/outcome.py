"""Changes that record the outcome of an effect. Each conflicts if its `attempts` have changed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.changes import Changeset, PutEffect
from moorage.domain.effects import EffectStep, effect_after

if TYPE_CHECKING:
    from moorage.domain.effects import Effect
    from moorage.domain.period import Instant
    from moorage.usecases.ports import Store


def effect_finished(effect: Effect, outcome: str, now: Instant) -> PutEffect:
    """The effect as done."""
    return _written(effect, EffectStep.FINISH, outcome, now)


def finish(store: Store, effect: Effect, outcome: str) -> str:
    """Write the effect as done; return the outcome."""
    store.commit(Changeset((effect_finished(effect, outcome, store.now()),)))
    return outcome


def effect_given_up(effect: Effect, outcome: str, now: Instant) -> PutEffect:
    """The effect as given up."""
    return _written(effect, EffectStep.GIVE_UP, outcome, now)


def attempt_started(effect: Effect, until: Instant, now: Instant) -> PutEffect:
    """The effect with an attempt started; other workers may take it from `until` on."""
    return postponed(
        replace(effect, attempts=effect.attempts + 1), until, now, seen=effect.attempts
    )


def postponed(
    effect: Effect,
    until: Instant,
    now: Instant,
    *,
    outcome: str | None = None,
    seen: int | None = None,
) -> PutEffect:
    """The effect with its next attempt postponed."""
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
