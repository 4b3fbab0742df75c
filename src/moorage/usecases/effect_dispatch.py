"""Carry out one due effect: in one changeset if it only changes the ledger, else in three steps.

For an outward effect a worker first commits the attempt, so that no other worker takes it; then it
calls the outside service within a bounded time; then it commits the outcome. If the worker dies in
between, another one repeats the effect after the timeout, under the same id. So delivery is at
least once, and the receiver can recognize a repeat by its id. In a simulation, where no servers
run, `SimulatedServers` ends a server by deleting its allocations.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset
from moorage.domain.effects import ENDED, LANES, TIMERS, EffectKind, Lane
from moorage.domain.errors import ConcurrentUpdate, MoorageError, NotFound
from moorage.domain.period import MINUTE, SECOND, format_instant, parse_instant
from moorage.domain.retry_policy import RetryPolicy
from moorage.usecases.capacity.planned_notices import affected_servers
from moorage.usecases.claims import build_failures
from moorage.usecases.effects.outcome import (
    attempt_started,
    effect_finished,
    effect_given_up,
    postponed,
)
from moorage.usecases.leases import lifecycle
from moorage.usecases.ledger import withdrawal
from moorage.usecases.ledger.allocations import release
from moorage.usecases.offers import expiry
from moorage.usecases.preemption import eviction
from moorage.usecases.shared.ticket_flavors import NOT_HELD, created_until, held_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import PutEffect
    from moorage.domain.effects import Effect
    from moorage.domain.period import Duration, Instant
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Store

EFFECT_RETRY: Final = RetryPolicy(5 * SECOND, 15 * MINUTE, jitter=0.5, attempts=12)


@dataclass(frozen=True, slots=True)
class SimulatedServers:
    """Ends a simulated server by deleting its allocations."""

    store: Store

    def __call__(self, message: Message) -> str:
        """Delete the allocations of the server `message.subject`; see `Act`.

        Raises:
            OutwardFailure: the allocations could not be deleted.
        """
        try:
            release(self.store, message.subject)
        except NotFound:
            return "there is no such server"
        except MoorageError as error:
            raise OutwardFailure(error.message) from error
        return "its allocations are deleted"


_log = logging.getLogger(__name__)


class OutwardFailure(MoorageError):
    """An outward action failed or its result is unknown; it is tried again."""


Act: TypeAlias = "Callable[[Message], str]"
"""Calls an outside service within a bounded time; returns the outcome or raises OutwardFailure."""


@dataclass(frozen=True, slots=True)
class Message:
    """The message of an effect to an outside service."""

    id: str
    """The same in every attempt."""
    subject: str
    """The lease's id, the server's, or the ticket."""
    body: Mapping[str, object]
    """JSON values."""


@dataclass(frozen=True, slots=True)
class OutwardActions:
    """The outward actions of a process, and their retry policy."""

    tell: Act | None = None
    end: Act | None = None
    """Ends a server; the effect is done once the server's allocations are gone."""
    hook: Act | None = None
    check: Act | None = None
    """Reports ended leases to the operator's check."""
    flavors: Act | None = None
    """Creates and deletes ticket flavors in Nova."""
    retry: RetryPolicy = EFFECT_RETRY
    timeout: Duration = 30 * SECOND
    """Longer than any attempt takes: after it the worker of an unfinished one counts as dead."""

    def act(self, lane: Lane) -> Act | None:
        """The action of a lane."""
        acts = {
            Lane.TELL: self.tell,
            Lane.END: self.end,
            Lane.HOOK: self.hook,
            Lane.CHECK: self.check,
            Lane.FLAVOR: self.flavors,
        }
        return acts[lane]

    def wait(self, effect: Effect) -> Duration:
        """The pause before the next attempt."""
        return self.retry.pause_of(effect.id, effect.attempts)


class EffectResult(StrEnum):
    """The result of carrying out an effect."""

    DONE = "done"
    AGAIN = "again"
    """This attempt failed; the effect is tried again later."""
    FAILED = "failed"
    """The attempts are used up; the effect is kept as failed."""
    NOTHING = "nothing"
    """Another worker has already done it."""


_UNTIL_DONE: Final = frozenset(
    {EffectKind.DELETE, EffectKind.DELETE_FLAVORS, EffectKind.CREATE_FLAVORS}
)
"""Effects that are never given up: what they delete would stay for ever, and flavors are of use
as long as their places are held, after which creating them is obsolete."""
_NOBODY: Final = {
    Lane.TELL: "no webhook is set",
    Lane.END: "the server was not ended: end_servers is none",
    Lane.HOOK: "nothing was run: no hook is set",
    Lane.CHECK: "nothing was reported: no check of leases is set",
    Lane.FLAVOR: "no flavors were changed: ticket_flavors is none",
}


_IN_LEDGER: Final[Mapping[EffectKind, Callable[[UseCaseEnvironment, Effect], str]]] = {
    **dict.fromkeys(TIMERS, lifecycle.carry_out),
    EffectKind.EXPIRE: expiry.carry_out,
    EffectKind.REPLACE: withdrawal.carry_out,
    EffectKind.PLACE_ANEW: build_failures.carry_out,
    EffectKind.EVICT: eviction.carry_out,
}
"""What carries out an effect that only changes the ledger."""


def carry_out(env: UseCaseEnvironment, outside: OutwardActions, effect: Effect) -> EffectResult:
    """Carry out a due effect.

    Raises:
        MoorageError: the ledger is out of reach, or the effect's changes to it failed; the effect
            is still pending.
    """
    try:
        in_ledger = _IN_LEDGER.get(effect.kind)
        if in_ledger is not None:
            return _told(effect, in_ledger(env, effect))
        return _outside(env, outside, effect)
    except (ConcurrentUpdate, NotFound):
        # Done, taken by another worker or deleted meanwhile; if still due, it is read again later.
        return EffectResult.NOTHING


def postpone(
    env: UseCaseEnvironment, outside: OutwardActions, effect: Effect, problem: str
) -> None:
    """Postpone an effect whose changes to the ledger failed; it is never given up.

    Raises:
        MoorageError: the ledger is out of reach.
    """
    now = env.store.now()
    tried = attempt_started(effect, now, now).effect
    later = postponed(tried, now + outside.wait(tried), now, outcome=problem, seen=effect.attempts)
    try:
        env.store.commit(Changeset((later,)))
    except (ConcurrentUpdate, NotFound):
        return


def _told(effect: Effect, outcome: str) -> EffectResult:
    _log.info("%s of %s: %s", effect.kind, effect.subject, outcome)
    return EffectResult.DONE


def _outside(env: UseCaseEnvironment, outside: OutwardActions, effect: Effect) -> EffectResult:
    lane = LANES[effect.kind]
    act = outside.act(lane)
    if effect.kind is EffectKind.DELETE_FLAVORS and (later := _deleted_later(env, outside, effect)):
        env.store.commit(Changeset((later,)))
        return EffectResult.AGAIN
    moot = _moot(env, effect) or (_NOBODY[lane] if act is None else "")
    if act is None or moot:
        return _finish(env, effect, moot)
    now = env.store.now()
    if _enough(outside, effect):
        return _give_up(env, effect, effect.outcome or "the last worker died before it finished")
    claim = attempt_started(effect, now + outside.timeout, now)
    env.store.commit(Changeset((claim,)))
    effect = claim.effect
    outcome, good = _tried(act, effect, affected_servers(env, effect))
    if good and effect.kind is EffectKind.DELETE:
        # The action may report success although the server still runs: check its allocations.
        gone = _moot(env, effect)
        outcome, good = f"{outcome}; {gone or 'the server is there still'}", bool(gone)
    return _finish(env, effect, outcome) if good else _failed(env, outside, effect, outcome)


def _deleted_later(
    env: UseCaseEnvironment, outside: OutwardActions, effect: Effect
) -> PutEffect | None:
    """The deletion of flavors, postponed; None if it is time for it."""
    now = env.store.now()
    until, words = held_until(env.store, effect), "held until {}"
    if until is None:
        until = created_until(env.store, effect.subject, outside.timeout)
        words = "being created, perhaps until {}"
    if until <= now:
        return None
    return postponed(effect, until, now, outcome=words.format(format_instant(until)))


def _tried(act: Act, effect: Effect, more: Mapping[str, object]) -> tuple[str, bool]:
    """The outcome text of an attempt, and whether the action reported success."""
    try:
        return act(_message(effect, more)), True
    except OutwardFailure as error:
        return error.message, False
    except Exception as error:  # noqa: BLE001 - an adapter that breaks has not done it either
        _log.exception("could not carry out %s %s", effect.kind, effect.id)
        return f"{type(error).__name__}: {error}", False


def _finish(env: UseCaseEnvironment, effect: Effect, outcome: str) -> EffectResult:
    if effect.kind is EffectKind.DELETE and effect.attempts and _just_ended(env, effect):
        effect = replace(effect, details={**effect.details, ENDED: True})
    env.store.commit(Changeset((effect_finished(effect, outcome, env.store.now()),)))
    return _told(effect, outcome)


def _just_ended(env: UseCaseEnvironment, effect: Effect) -> bool:
    """Whether the server is gone and no other effect has reported its end."""
    return not _allocated(env, effect) and not any(
        one.details.get(ENDED) for one in env.store.effects(effect.subject)
    )


def _failed(
    env: UseCaseEnvironment, outside: OutwardActions, effect: Effect, problem: str
) -> EffectResult:
    if _enough(outside, effect):
        return _give_up(env, effect, problem)
    now = env.store.now()
    later = postponed(effect, now + outside.wait(effect), now, outcome=problem)
    env.store.commit(Changeset((later,)))
    _log.log(
        logging.ERROR if effect.attempts >= outside.retry.attempts else logging.WARNING,
        "%s %s of %s, attempt %d: %s",
        *(effect.kind, effect.id, effect.subject, effect.attempts, problem),
    )
    return EffectResult.AGAIN


def _enough(outside: OutwardActions, effect: Effect) -> bool:
    """Whether the attempts are used up; never for those of `_UNTIL_DONE`."""
    return effect.attempts >= outside.retry.attempts and effect.kind not in _UNTIL_DONE


def _give_up(env: UseCaseEnvironment, effect: Effect, problem: str) -> EffectResult:
    env.store.commit(Changeset((effect_given_up(effect, problem, env.store.now()),)))
    _log.error(
        "%s %s of %s is given up after %d attempts: %s",
        *(effect.kind, effect.id, effect.subject, effect.attempts, problem),
    )
    return EffectResult.FAILED


def _moot(env: UseCaseEnvironment, effect: Effect) -> str:
    """Why the effect is obsolete; empty if it is still needed."""
    if effect.kind is EffectKind.WARN:
        return eviction.why_needless(env, effect)
    if effect.kind is EffectKind.CREATE_FLAVORS:
        return "" if held_until(env.store, effect) else NOT_HELD
    if effect.kind is not EffectKind.DELETE:
        return ""
    there = _allocated(env, effect)
    if not there:
        return "the server is gone"
    if "lease" not in effect.details and min(one.period.end for one in there) > _until(effect):
        return "the server may stay longer"
    return ""


def _allocated(env: UseCaseEnvironment, effect: Effect) -> list[Booking]:
    """The allocations of the server that an effect is about."""
    every = (one for _, one in env.store.bookings(consumer=effect.subject))
    return [one for one in every if one.state is BookingState.ALLOCATED]


def _until(effect: Effect) -> Instant:
    return parse_instant(str(effect.details["until"]))


def _message(effect: Effect, more: Mapping[str, object]) -> Message:
    return Message(
        effect.id,
        effect.subject,
        {
            "id": effect.id,
            "kind": effect.kind.value,
            "subject": effect.subject,
            "project_id": effect.project_id,
            "due": format_instant(effect.due),
            "attempt": effect.attempts,
            "details": {**effect.details, **more},
        },
    )
