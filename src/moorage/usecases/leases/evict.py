"""Preemptible servers that end for a lease: warned at once, evicted when their end has come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.changes import Changeset, DropEffects
from moorage.domain.effects import EffectKind
from moorage.domain.period import format_instant
from moorage.usecases.leases import facts
from moorage.usecases.record import finished, put_off

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moorage.domain.changes import Change
    from moorage.domain.effects import Effect
    from moorage.domain.leases import Lease
    from moorage.domain.period import Instant
    from moorage.usecases.leases.asking import Displaced
    from moorage.usecases.parts import Parts

ORDER = "fewest units first, then the youngest, then by id"
"""In which order servers are chosen and evicted; told with each of them."""


def warnings(displaced: Sequence[Displaced], lease: Lease, now: Instant) -> Iterator[Change]:
    """The effects of displacing these, in this order; for the changeset that displaces them.

    Each owner is told at once, and whoever is there still at its end is ended then. Warnings and
    evictions of earlier ends are forgotten.
    """
    for number, one in enumerate(displaced, 1):
        details = {
            **facts.of_lease(lease),
            "server": one.consumer,
            "ends": format_instant(one.end),
            "declared_end": format_instant(one.declared_end),
            "order": number,
            "of": len(displaced),
            "why": ORDER,
        }
        same = (one.consumer, lease.id, one.end, lease.generation)
        about = one.consumer, one.project_id
        yield from unwarned([one.consumer])
        yield facts.fact(EffectKind.WARN, *about, due=now, now=now, details=details, same=same)
        yield facts.fact(EffectKind.EVICT, *about, due=one.end, now=now, details=details, same=same)


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
    if stays := moot(parts, effect):
        parts.store.commit(Changeset((finished(effect, stays, now),)))
        return stays
    if effect.due > now:
        parts.store.commit(Changeset((put_off(effect, effect.due, now),)))
        return "not yet"
    outcome = "to be ended"
    told = {name: effect.details[name] for name in ("order", "of", "why")}
    deletion = facts.deletion(
        effect.subject,
        effect.project_id,
        "it yields to a lease",
        effect.due,
        now,
        yields_to=effect.details["lease"],
        **told,
    )
    parts.store.commit(Changeset((deletion, finished(effect, outcome, now))))
    return outcome


def moot(parts: Parts, effect: Effect) -> str:
    """Why nobody needs to be warned or evicted any more, or nothing."""
    there = [one for _, one in parts.store.bookings(consumer=effect.subject)]
    if not any(one.state is BookingState.ALLOCATED for one in there):
        held = bool(there)
        return "" if held and effect.kind is EffectKind.WARN else "nothing is there any more"
    lease = effect.details["lease"]
    if not any(one.yields_to == lease for one in there):
        return "it does not yield any more"
    if effect.kind is EffectKind.EVICT and min(one.period.end for one in there) > effect.due:
        return "it ends later"
    return ""
