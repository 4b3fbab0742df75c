"""`/v1/leases`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType, structs

from moorage.api.native import lease_requests, reading, waitlist
from moorage.api.native.call import Call, Reply
from moorage.api.native.compliance import deleted, impact_view
from moorage.api.native.decisions import decision_view
from moorage.api.native.ensembles import ensemble_view
from moorage.api.native.formats import NO_ACTIONS, instant, plain, view
from moorage.api.native.paging import Listing, listed
from moorage.domain.errors import InvalidDescription
from moorage.domain.leases import LeaseOutcome, LeaseState, Yielding
from moorage.domain.period import format_instant
from moorage.usecases.leases.audience import audiences, count_notified
from moorage.usecases.leases.cancel import cancel_lease
from moorage.usecases.leases.change import change_lease
from moorage.usecases.leases.create import create_lease
from moorage.usecases.leases.queries import (
    displaced_by,
    list_leases,
    own_lease,
    remaining,
    remaining_in,
)
from moorage.usecases.preemption.preempted_leases import may_yield_until
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.waitlist.enter import create_or_wait
from moorage.usecases.waitlist.queries import ListedEntry
from moorage.wire import leases as wire

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from msgspec import Struct

    from moorage.domain.effects import Effect
    from moorage.domain.leases import Lease
    from moorage.usecases.compliance.impact import Impact
    from moorage.usecases.leases.audience import Audience
    from moorage.usecases.leases.create import DisplacedConsumer, LeaseResult
    from moorage.usecases.leases.queries import Remaining
    from moorage.usecases.preemption.preempted_leases import PreemptedLease
    from moorage.wire.fields import Link
    from moorage.wire.leases import LeaseBody, LeaseChangeBody

GRANTED = {one.value: one for one in LeaseState if one is not LeaseState.OFFERED}
"""The states of leases by their words; an offer is none."""


def create(call: Call) -> Reply:
    """POST: grant a lease, put it on the waitlist where it may wait, or explain the refusal."""
    body: LeaseBody = call.body.lease
    ask = lease_requests.lease_request(
        body,
        call.env.store.now(),
        reading.objective(call, body.objective),
        any_priority=call.may(reading.PRIORITY),
    )
    if body.template is not None:
        ask = replace(ask, description=lease_requests.template_ensemble(call, body.template))
    identity = reading.identity(call, body, body.id)
    wait = waitlist.wait_of(body)
    if wait is None:
        granted = call.perform(create_lease, ask, identity)
        return granted_reply(call, granted, created=True)
    found = call.perform(create_or_wait, ask, wait, identity)
    if isinstance(found, ListedEntry):
        return waitlist.entered_reply(call, found)
    return granted_reply(call, found, created=True)


def listing(call: Call) -> Reply:
    """GET: a page of leases, oldest first."""
    read = partial(
        list_leases,
        call.env.store,
        call.caller,
        all_projects=call.flag("all_projects"),
        project_id=call.query.get("project_id"),
        name=call.query.get("name"),
        state=_state(call.query.get("state")),
        series_id=call.query.get("series"),
        reservation_id=call.query.get("reservation"),
        overlaps=reading.overlapped(call),
    )
    computed = {"computed_at": instant(call.env.store.now())}
    view = partial(lease_view, call)
    return listed(call, "leases", lambda page: read(page=page), view, computed)


def show(call: Call) -> Reply:
    """GET: one lease."""
    store = call.env.store
    lease = own_lease(store, call.caller, call.path["id"])
    view = lease_view(call, lease, remaining(store, lease), displaced_by(store, lease))
    if lease.degraded:
        view = structs.replace(view, notified=count_notified(store, lease))
    return Reply(wire.OneLease(view), generation=lease.generation)


def change(call: Call) -> Reply:
    """PATCH: extend, shrink, grow, move or rename a lease in one step."""
    body: LeaseChangeBody = call.body.lease
    granted, impact = call.perform_judged(
        _leased(call),
        change_lease,
        call.path["id"],
        lease_requests.lease_change(body, call.env.store.now()),
        call.expected(body.generation),
        reading.identity(call, body, None),
    )
    return granted_reply(call, granted, created=False, impact=impact)


def cancel(call: Call) -> Reply:
    """DELETE: cancel a lease; one that has started ends now."""
    id_, expected = call.path["id"], call.expected(None)
    _, impact = call.perform_judged(_leased(call), cancel_lease, id_, expected)
    return deleted(impact)


def _leased(call: Call) -> list[str]:
    """The id of the ensemble of the path's lease, if there is one."""
    lease = if_stored(call.env.store.lease, call.path["id"])
    return [] if lease is None else [lease.ensemble_id]


def events(call: Call) -> Reply:
    """GET: a page of a lease's effects, in the order of their writing."""
    store = call.env.store
    lease = own_lease(store, call.caller, call.path["id"])

    def shown(found: Sequence[Effect]) -> Iterator[tuple[str, Struct]]:
        heard = audiences(store, lease, found)
        for one in found:
            yield one.id, event_view(call, one, heard.get(one.id))

    path = f"leases/{lease.id}/events"
    listing_ = Listing(call, path, lambda page: store.effects(lease.id, page=page), shown)
    return listing_.reply("events")


def granted_reply(
    call: Call, granted: LeaseResult, *, created: bool, impact: Impact | None = None
) -> Reply:
    """The reply to a granted lease, with its placement."""
    lease, dry = granted.lease, call.dry_run
    return call.made(
        wire.OneLease(
            lease=lease_view(
                call,
                lease,
                None if dry else remaining_in(lease, granted.ensemble, granted.snapshot),
                granted.displaced,
            ),
            decision=decision_view(
                call,
                granted.decision,
                granted.ensemble,
                granted.snapshot,
                granted.claims,
                dry_run=dry,
                lease=lease,
            ),
            ensemble=ensemble_view(call, granted.ensemble),
            preempted=preempted_view(call, granted.preempted),
            dry_run=dry,
            computed_at=format_instant(granted.snapshot.taken_at),
            revision=granted.snapshot.revision,
            breaks=UNSET if impact is None else impact_view(impact),
        ),
        generation=lease.generation,
        location=f"leases/{lease.id}" if created else None,
    )


def _state(text: str | None) -> LeaseState | None:
    if text is None:
        return None
    try:
        return GRANTED[text]
    except KeyError:
        known = ", ".join(GRANTED)
        raise InvalidDescription(f"a lease is {known}; not {text!r}", path="state") from None


def lease_view(
    call: Call,
    lease: Lease,
    remaining: Sequence[Remaining] | None = None,
    displaced: Iterable[DisplacedConsumer] | None = None,
) -> wire.Lease:
    """A lease; listings leave out `remaining` and `displaced`."""
    terms, one = lease.terms, lease.occurrence
    return view(
        wire.Lease,
        lease,
        terms,
        terms.period,
        operator=call.caller.operator,
        status=lease.state,
        proposal=_proposed(lease.proposal),
        proposed_places=_places(call, lease.proposal),
        # Nothing is granted but with a proof; what befalls its hosts afterwards may undo it.
        guarantee=_guarantee(lease),
        before_start=[one for one in Yielding if one in terms.before_start],
        **{**NO_ACTIONS, **lease.actions},
        reservations=lease.reservations if remaining is None else list(map(_counted, remaining)),
        links=_links(call, lease),
        occurrence=one and wire.LeaseOccurrence(one.series, one.index),
        displaced=UNSET if displaced is None else displaced_view(call, displaced),
        may_yield=_may_yield(call, lease),
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


def _may_yield(call: Call, lease: Lease) -> wire.MayYield | None:
    notice = call.env.limits.preemption_notice
    if notice is None:
        return None
    until = may_yield_until(lease, notice, call.env.store.now())
    return None if until is None else wire.MayYield(lease.terms.priority, format_instant(until))


def preempted_view(call: Call, preempted: Sequence[PreemptedLease]) -> wire.Preempted | UnsetType:
    """The preempted leases: named for operators, counted for a tenant."""
    if not preempted:
        return UNSET
    return view(
        wire.Preempted,
        operator=call.caller.operator,
        count=len(preempted),
        leases=[_preempted(one) for one in preempted],
    )


def _preempted(one: PreemptedLease) -> wire.PreemptedLease:
    lease, window = one.of.lease, one.earliest
    return view(
        wire.PreemptedLease,
        lease,
        lease.terms,
        lease.terms.period,
        earliest_start=window and window.start,
        earliest_end=window and window.end,
        proved=window is not None and window.proved,
    )


def _proposed(change: Mapping[str, object]) -> dict[str, Any] | None:
    """A proposed change, in the form of relaxations."""
    if not change:
        return None
    return {
        str(change["subject"]): change["name"],
        str(change["field"]): [plain(change["before"]), plain(change["after"])],
    }


def _places(call: Call, change: Mapping[str, object]) -> dict[str, str] | UnsetType:
    """The places in a proposed change, by names of hosts; operators only."""
    places = change.get("places")
    if not isinstance(places, dict):
        return UNSET
    snapshot = call.env.store.snapshot()
    rows = {member: snapshot.row_of.get(host) for member, host in places.items()}
    return {str(one): snapshot.names[row] for one, row in rows.items() if row is not None}


def _counted(one: Remaining) -> wire.Reservation:
    return view(wire.Reservation, one, one.reservation)


def displaced_view(call: Call, displaced: Iterable[DisplacedConsumer]) -> wire.Displaced:
    """The displaced consumers: named for operators, counted for a tenant."""
    found = list(displaced)
    return view(wire.Displaced, operator=call.caller.operator, count=len(found), consumers=found)


def event_view(call: Call, effect: Effect, audience: Audience | None) -> wire.LeaseEvent:
    """An effect; operators see its result, which may name their hooks and hosts."""
    action = effect.details.get("action")
    return view(
        wire.LeaseEvent,
        effect,
        operator=call.caller.operator,
        status=effect.state,
        action=None if action is None else str(action),
        told=audience and _audience(audience),
    )


def _audience(one: Audience) -> wire.Audience:
    hearers = one.subscriptions
    return view(
        wire.Audience,
        one,
        subscriptions=hearers
        and [wire.Hearer(who.id, who.name, reached.value) for who, reached in hearers],
    )
