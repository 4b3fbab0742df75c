"""Carry out one due effect: inside the ledger in one changeset, outside in three steps.

What is done outside is *taken* first, so that nobody else does it meanwhile; then it is carried
out, within a bounded time; then what came of it is recorded. Whoever dies in between has left it
taken: after the time it had, somebody takes it on again, under the same id. So it happens at
least once, and whoever hears the same id twice knows that it is the same.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset
from moorage.domain.effects import ENDED, LANES, TIMERS, EffectKind, Lane
from moorage.domain.errors import ConcurrentUpdate, MoorageError, NotFound
from moorage.domain.period import MINUTE, SECOND, format_instant, parse_instant
from moorage.usecases.capacity.notices import affected
from moorage.usecases.leases import evict, life
from moorage.usecases.offers import over
from moorage.usecases.record import finished, given_up, put_off, taken

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.effects import Effect
    from moorage.domain.period import Duration, Instant
    from moorage.usecases.parts import Parts

_log = logging.getLogger(__name__)


class OutwardFailure(MoorageError):
    """What was to be done outside was not done, or nobody knows; it is tried again."""


Act: TypeAlias = "Callable[[Message], str]"
"""Does something outside within a bounded time, and says what; else raises OutwardFailure."""


@dataclass(frozen=True, slots=True)
class Message:
    """An effect as somebody outside gets it."""

    id: str
    """The same in every attempt."""
    subject: str
    """The lease's id, or the server's."""
    body: Mapping[str, object]
    """JSON values."""


@dataclass(frozen=True, slots=True)
class Outside:
    """Who does what outside, and how patiently it is tried."""

    tell: Act | None = None
    end: Act | None = None
    """Ends a server; done once its allocations are gone."""
    hook: Act | None = None
    check: Act | None = None
    """Tells the operator's own check of leases what has ended."""
    attempts: int = 12
    timeout: Duration = 30 * SECOND
    """Longer than any attempt takes: after it who has taken an effect on counts as dead."""
    first_wait: Duration = 5 * SECOND
    longest_wait: Duration = 15 * MINUTE

    def act(self, lane: Lane) -> Act | None:
        """Who does what the lane is for."""
        acts = {
            Lane.TELL: self.tell,
            Lane.END: self.end,
            Lane.HOOK: self.hook,
            Lane.CHECK: self.check,
        }
        return acts[lane]

    def wait(self, effect: Effect) -> Duration:
        """How long to wait after this attempt: twice as long each time, more or less.

        The jitter follows from the effect, so what has failed together does not come again
        together.
        """
        doubled = min(self.first_wait << min(effect.attempts - 1, 30), self.longest_wait)
        chance = sha256(f"{effect.id} {effect.attempts}".encode()).digest()[0]
        return doubled // 2 + doubled * chance // 255 // 2


class Carried(StrEnum):
    """What came of taking an effect on."""

    DONE = "done"
    AGAIN = "again"
    """It is tried again later."""
    FAILED = "failed"
    """It was tried too often, and is kept as failed."""
    NOTHING = "nothing"
    """Somebody else was quicker."""


_NOBODY: Final = {
    Lane.TELL: "no webhook is set",
    Lane.END: "nobody ends servers here: end_servers is none",
    Lane.HOOK: "nothing was run: no hook is set",
    Lane.CHECK: "nobody is told: no check of leases is set",
}


def carry_out(parts: Parts, outside: Outside, effect: Effect) -> Carried:
    """Carry out an effect that is due, as it was read.

    Raises:
        MoorageError: the ledger is out of reach, or what is to be done inside fails; the effect
            is pending still.
    """
    try:
        if effect.kind is EffectKind.EXPIRE:
            return _told(effect, over.carry_out(parts, effect))
        if effect.kind in TIMERS:
            return _told(effect, life.carry_out(parts, effect))
        if effect.kind is EffectKind.EVICT:
            return _told(effect, evict.carry_out(parts, effect))
        return _outside(parts, outside, effect)
    except (ConcurrentUpdate, NotFound):
        # Done, taken on or forgotten meanwhile; if it is still due it comes again.
        return Carried.NOTHING


def postpone(parts: Parts, outside: Outside, effect: Effect, problem: str) -> None:
    """Put off what cannot be done inside, so that it does not keep the loop busy. Never given up.

    Raises:
        MoorageError: the ledger is out of reach.
    """
    now = parts.store.now()
    tried = taken(effect, now, now).effect
    later = put_off(tried, now + outside.wait(tried), now, outcome=problem, seen=effect.attempts)
    try:
        parts.store.commit(Changeset((later,)))
    except (ConcurrentUpdate, NotFound):
        return


def _told(effect: Effect, outcome: str) -> Carried:
    _log.info("%s of %s: %s", effect.kind, effect.subject, outcome)
    return Carried.DONE


def _outside(parts: Parts, outside: Outside, effect: Effect) -> Carried:
    lane = LANES[effect.kind]
    act = outside.act(lane)
    moot = _moot(parts, effect) or (_NOBODY[lane] if act is None else "")
    if act is None or moot:
        return _finish(parts, effect, moot)
    now = parts.store.now()
    if _enough(outside, effect):
        return _give_up(parts, effect, effect.outcome or "whoever tried did not come back")
    claim = taken(effect, now + outside.timeout, now)
    parts.store.commit(Changeset((claim,)))
    effect = claim.effect
    outcome, good = _tried(act, effect, affected(parts, effect))
    if good and effect.kind is EffectKind.DELETE:
        # Ending a server takes time, and who says that it is done may be wrong: looked at again.
        gone = _moot(parts, effect)
        outcome, good = f"{outcome}; {gone or 'the server is there still'}", bool(gone)
    return _finish(parts, effect, outcome) if good else _failed(parts, outside, effect, outcome)


def _tried(act: Act, effect: Effect, more: Mapping[str, object]) -> tuple[str, bool]:
    """What came of an attempt, and whether it was done as far as the one who did it knows."""
    try:
        return act(_message(effect, more)), True
    except OutwardFailure as error:
        return error.message, False
    except Exception as error:  # noqa: BLE001 - an adapter that breaks has not done it either
        _log.exception("could not carry out %s %s", effect.kind, effect.id)
        return f"{type(error).__name__}: {error}", False


def _finish(parts: Parts, effect: Effect, outcome: str) -> Carried:
    if effect.kind is EffectKind.DELETE and effect.attempts and _just_ended(parts, effect):
        effect = replace(effect, details={**effect.details, ENDED: True})
    parts.store.commit(Changeset((finished(effect, outcome, parts.store.now()),)))
    return _told(effect, outcome)


def _just_ended(parts: Parts, effect: Effect) -> bool:
    """Whether the server is gone, and nobody has said so yet who was asked for another reason."""
    return not _allocated(parts, effect) and not any(
        one.details.get(ENDED) for one in parts.store.effects(effect.subject)
    )


def _failed(parts: Parts, outside: Outside, effect: Effect, problem: str) -> Carried:
    if _enough(outside, effect):
        return _give_up(parts, effect, problem)
    now = parts.store.now()
    later = put_off(effect, now + outside.wait(effect), now, outcome=problem)
    parts.store.commit(Changeset((later,)))
    _log.log(
        logging.ERROR if effect.attempts >= outside.attempts else logging.WARNING,
        "%s %s of %s, attempt %d: %s",
        *(effect.kind, effect.id, effect.subject, effect.attempts, problem),
    )
    return Carried.AGAIN


def _enough(outside: Outside, effect: Effect) -> bool:
    """Whether it has been tried often enough. That a server is to end is never given up."""
    return effect.attempts >= outside.attempts and effect.kind is not EffectKind.DELETE


def _give_up(parts: Parts, effect: Effect, problem: str) -> Carried:
    parts.store.commit(Changeset((given_up(effect, problem, parts.store.now()),)))
    _log.error(
        "%s %s of %s is given up after %d attempts: %s",
        *(effect.kind, effect.id, effect.subject, effect.attempts, problem),
    )
    return Carried.FAILED


def _moot(parts: Parts, effect: Effect) -> str:
    """Why nothing needs to be done any more, or nothing."""
    if effect.kind is EffectKind.WARN:
        return evict.needless(parts, effect)
    if effect.kind is not EffectKind.DELETE:
        return ""
    there = _allocated(parts, effect)
    if not there:
        return "the server is gone"
    if "lease" not in effect.details and min(one.period.end for one in there) > _until(effect):
        return "the server may stay longer"
    return ""


def _allocated(parts: Parts, effect: Effect) -> list[Booking]:
    """What the server that an effect is about has still."""
    every = (one for _, one in parts.store.bookings(consumer=effect.subject))
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
