"""Leases as response bodies; what a tenant does not see of those who make room is decided here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType

from moorage.api.native import answers_leases as told
from moorage.api.native.views import instant, plain
from moorage.domain.leases import LeaseOutcome, Yielding, reservation_class
from moorage.domain.period import format_duration, format_instant
from moorage.usecases.leases.outranked import may_yield_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.api.native.answers import Link
    from moorage.api.native.call import Call
    from moorage.domain.effects import Effect
    from moorage.domain.leases import Lease, Reservation
    from moorage.usecases.leases.audience import Audience
    from moorage.usecases.leases.create import Displaced
    from moorage.usecases.leases.outranked import Preempted
    from moorage.usecases.leases.view import Remaining


def lease_view(
    call: Call,
    lease: Lease,
    remaining: Sequence[Remaining] | None = None,
    displaced: Iterable[Displaced] | None = None,
) -> told.Lease:
    """A lease; without `remaining` and `displaced` as listings have it."""
    terms, one = lease.terms, lease.occurrence
    return told.Lease(
        id=lease.id,
        name=lease.name,
        handle=lease.handle,
        project_id=lease.project_id,
        user_id=lease.user_id,
        status=lease.state.value,
        degraded=lease.degraded,
        missing=lease.missing,
        proposal=_proposed(lease.proposal),
        proposed_places=_places(call, lease.proposal),
        generation=lease.generation,
        # Nothing is granted but with a proof; what befalls its hosts afterwards may undo it.
        guarantee=_guarantee(lease),
        start=format_instant(terms.period.start),
        end=format_instant(terms.period.end),
        lead=format_duration(terms.lead),
        cleaning=format_duration(terms.cleaning),
        expiry=None if terms.expiry is None else format_duration(terms.expiry),
        expires_at=instant(terms.expires_at),
        priority=terms.priority,
        before_start=[one.value for one in Yielding if one in terms.before_start],
        on_start=list(lease.actions.get("on_start", ())),
        before_end=list(lease.actions.get("before_end", ())),
        on_end=list(lease.actions.get("on_end", ())),
        binding=lease.binding.value,
        ensemble_id=lease.ensemble_id,
        decision_id=lease.decision_id,
        reservations=(
            [_named(one) for one in lease.reservations]
            if remaining is None
            else [_counted(one) for one in remaining]
        ),
        created_at=format_instant(lease.created_at),
        updated_at=format_instant(lease.updated_at),
        links=_links(call, lease),
        occurrence=UNSET if one is None else told.Occurrence(one.series, one.index),
        displaced=UNSET if displaced is None else displaced_view(call, displaced),
        may_yield=_may_yield(call, lease),
        outcome=None if lease.outcome is None else lease.outcome.value,
        waitlist_entry=lease.waitlist_entry,
    )


def _links(call: Call, lease: Lease) -> list[Link]:
    found = [
        call.link("self", "leases", lease.id),
        call.link("ensemble", "ensembles", lease.ensemble_id),
        call.link("decision", "decisions", lease.decision_id),
        call.link("events", "leases", lease.id, "events"),
    ]
    if lease.waitlist_entry is not None:
        found.append(call.link("waitlist_entry", "waitlist", lease.waitlist_entry))
    return found


def _guarantee(lease: Lease) -> str:
    if lease.outcome is LeaseOutcome.PREEMPTED:
        return "yielded"
    return "broken" if lease.degraded else "proved"


def _may_yield(call: Call, lease: Lease) -> told.MayYield | None:
    notice = call.parts.limits.preemption_notice
    if notice is None:
        return None
    until = may_yield_until(lease, notice, call.parts.store.now())
    return None if until is None else told.MayYield(lease.terms.priority, format_instant(until))


def preempted_view(call: Call, preempted: Sequence[Preempted]) -> told.Preempted | UnsetType:
    """Who gives up their places: to operators by name, to a tenant how many."""
    if not preempted:
        return UNSET
    shown = [_preempted(one) for one in preempted] if call.caller.operator else UNSET
    return told.Preempted(len(preempted), shown)


def _preempted(one: Preempted) -> told.PreemptedLease:
    lease, window = one.of.lease, one.earliest
    return told.PreemptedLease(
        id=lease.id,
        name=lease.name,
        project_id=lease.project_id,
        priority=lease.terms.priority,
        start=format_instant(lease.terms.period.start),
        end=format_instant(lease.terms.period.end),
        units=lease.units,
        earliest_start=None if window is None else format_instant(window.start),
        earliest_end=None if window is None or window.end is None else format_instant(window.end),
        proved=window is not None and window.proved,
    )


def _proposed(change: Mapping[str, object]) -> dict[str, Any] | None:
    """A change as relaxations have it."""
    if not change:
        return None
    return {
        str(change["subject"]): change["name"],
        str(change["field"]): [plain(change["before"]), plain(change["after"])],
    }


def _places(call: Call, change: Mapping[str, object]) -> dict[str, str] | UnsetType:
    """Where a change that is proposed would put members, by names of hosts; operators only."""
    places = change.get("places")
    if not call.caller.operator or not isinstance(places, dict):
        return UNSET
    snapshot = call.parts.store.snapshot()
    rows = {member: snapshot.row_of.get(host) for member, host in places.items()}
    return {str(one): snapshot.names[row] for one, row in rows.items() if row is not None}


def _named(one: Reservation) -> told.Reservation:
    return told.Reservation(one.id, one.role, reservation_class(one.id))


def _counted(one: Remaining) -> told.Reservation:
    return told.Reservation(
        id=one.reservation.id,
        role=one.reservation.role,
        resource_class=reservation_class(one.reservation.id),
        flavor=one.flavor,
        count=one.count,
        claimed=one.claimed,
        remaining=one.remaining,
    )


def displaced_view(call: Call, displaced: Iterable[Displaced]) -> told.Displaced:
    """Who ends early for a lease: to operators by name, to a tenant how many."""
    found = list(displaced)
    return told.Displaced(
        count=len(found),
        consumers=[
            told.DisplacedConsumer(
                one.consumer,
                one.project_id,
                instant(one.end),
                instant(one.declared_end),
                one.priority,
            )
            for one in found
        ]
        if call.caller.operator
        else UNSET,
    )


def event_view(call: Call, effect: Effect, audience: Audience | None) -> told.LeaseEvent:
    """An effect: to operators with what came of it, which may name their hooks and hosts."""
    action = effect.details.get("action")
    details: dict[str, Any] | UnsetType = plain(effect.details) if call.caller.operator else UNSET
    return told.LeaseEvent(
        id=effect.id,
        kind=effect.kind.value,
        due=format_instant(effect.due),
        status=effect.state.value,
        attempts=effect.attempts,
        action=None if action is None else str(action),
        created_at=format_instant(effect.created_at),
        updated_at=format_instant(effect.updated_at),
        told=UNSET if audience is None else _audience(audience),
        outcome=effect.outcome if call.caller.operator else UNSET,
        details=details,
    )


def _audience(one: Audience) -> told.Audience:
    hearers = one.subscriptions
    return told.Audience(
        webhook=one.webhook.value,
        subscriptions=None
        if hearers is None
        else [told.Hearer(who.id, who.name, reached.value) for who, reached in hearers],
    )
