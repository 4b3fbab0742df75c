"""Preemptible servers that end for a lease: warned at once, evicted when their end has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, DropEffects
from moorage.domain.effects import EffectKind
from moorage.domain.errors import DuplicateName
from moorage.domain.period import format_instant
from moorage.usecases.leases import facts
from moorage.usecases.record import finished, put_off

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moorage.domain.changes import Change, PutEffect
    from moorage.domain.decisions import Decision
    from moorage.domain.effects import Effect
    from moorage.domain.period import Instant
    from moorage.usecases.leases.asking import Displaced
    from moorage.usecases.parts import Parts

ORDER = "fewest units first, then the youngest, then by id"
"""In which order servers are chosen and evicted; told with each of them."""


def warnings(displaced: Sequence[Displaced], decision: Decision) -> Iterator[Change]:
    """The effects of displacing these, in this order; for the changeset that displaces them.

    Each owner is told at once, and whoever is there still at its end is ended then. Warnings and
    evictions of earlier ends are forgotten.

    Args:
        displaced: in the order in which they were chosen.
        decision: the lease's placement.
    """
    now = decision.created_at
    for number, one in enumerate(displaced, 1):
        details = {
            "lease": decision.lease_id,
            "needed_at": format_instant(decision.period.start),
            "server": one.consumer,
            "ends": format_instant(one.end),
            "declared_end": format_instant(one.declared_end),
            "order": number,
            "of": len(displaced),
            "why": ORDER,
        }
        yield from unwarned([one.consumer])
        for kind, due in ((EffectKind.WARN, now), (EffectKind.EVICT, one.end)):
            yield facts.fact(
                kind,
                one.consumer,
                one.project_id,
                due=due,
                now=now,
                details=details,
                same=(one.consumer, decision.id, one.end),
            )


def unwarned(consumers: Iterable[str]) -> Iterator[Change]:
    """Forget what was to become of these: they have got their end back."""
    for one in consumers:
        yield DropEffects(one, frozenset({EffectKind.WARN, EffectKind.EVICT}))


def carry_out(parts: Parts, effect: Effect) -> str:
    """End whoever should have gone by now; return what came of it.

    Raises:
        ConcurrentUpdate, NotFound: somebody else was quicker.
    """
    now = parts.store.now()
    there = [one for _, one in parts.store.bookings(consumer=effect.subject)]
    if not any(one.state is BookingState.ALLOCATED for one in there):
        return _finish(parts, effect, "nothing is there any more")
    if all(one.yields_to is None for one in there):
        return _finish(parts, effect, "it does not yield any more")
    end = min(one.period.end for one in there)
    if end > now:
        # It has got some time back, or the clock was set back.
        parts.store.commit(Changeset((put_off(effect, end, now),)))
        return "not yet"
    told = {name: effect.details[name] for name in ("order", "of", "why")}
    asked = deletion(effect.subject, effect.project_id, end, now, **told)
    outcome = "to be ended"
    try:
        parts.store.commit(Changeset((asked, finished(effect, outcome, now))))
    except DuplicateName:
        return _finish(parts, effect, outcome)  # somebody else has looked, too
    return outcome


def deletion(
    server: str, project_id: str, end: Instant, now: Instant, **details: object
) -> PutEffect:
    """Have a server ended whose end for a lease has come."""
    return facts.deletion(server, project_id, "it yields to a lease", end, now, **details)


def needless(parts: Parts, effect: Effect) -> str:
    """Why nobody needs to be warned any more, or nothing."""
    there = [one for _, one in parts.store.bookings(consumer=effect.subject)]
    if not there:
        return "nothing is there any more"
    if all(one.yields_to is None for one in there):
        return "it does not yield any more"
    return ""


def _finish(parts: Parts, effect: Effect, outcome: str) -> str:
    parts.store.commit(Changeset((finished(effect, outcome, parts.store.now()),)))
    return outcome
