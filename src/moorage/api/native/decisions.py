"""`/v1/decisions`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from moorage.api.native import reading
from moorage.api.native.call import Call, Reply
from moorage.api.native.compliance import deleted, impact_view
from moorage.api.native.formats import plain, view
from moorage.api.native.paging import listed
from moorage.api.native.request_mix import room_view
from moorage.domain.decisions import ClaimState
from moorage.domain.disclosure import as_seen_by
from moorage.domain.errors import InvalidDescription, NotFound
from moorage.domain.period import format_instant, parse_instant
from moorage.engine.state.host_states import closings, host_states
from moorage.engine.state.server_locations import NOWHERE
from moorage.usecases.claims.hold import confirm as confirm_decision
from moorage.usecases.claims.hold import release as release_decision
from moorage.usecases.claims.hold import renew as renew_decision
from moorage.usecases.decide.max_additional import told_with_step
from moorage.usecases.decide.member_places import member_bookings
from moorage.usecases.ensembles.decide import decide_ensemble
from moorage.usecases.preemption.stay_ends import decided_ends, stay_ends
from moorage.usecases.shared.access import sees
from moorage.usecases.shared.host_labels import domains_of, label
from moorage.usecases.shared.lookup import if_stored
from moorage.usecases.shared.role_access import list_decisions, seen_decision, sees_role
from moorage.usecases.shared.ticket_flavors import ticket_flavors
from moorage.wire import decisions as wire
from moorage.wire.hosts import Closing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.decisions import Claim, Decision, Solve
    from moorage.domain.ensembles import Ensemble, Role
    from moorage.domain.leases import Lease
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.domain.placement import Place
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store
    from moorage.usecases.preemption.stay_ends import StayEnd
    from moorage.wire.decisions import DecisionBody, DecisionPatchBody


def create(call: Call) -> Reply:
    """POST: place all members jointly and hold the places."""
    body: DecisionBody = call.body.decision
    options, identity = reading.decision_options(call, body), reading.identity(call, body, body.id)
    dry = call.dry_run
    id_ = body.ensemble_id
    made, impact = call.perform_judged([id_], decide_ensemble, id_, options, identity)
    claims = () if dry else call.env.store.claims(decision_id=made.decision.id)
    view = decision_view(call, made.decision, made.ensemble, made.snapshot, claims, dry_run=dry)
    return call.made(
        wire.OneDecision(view, impact_view(impact)),
        generation=made.decision.generation,
        location=f"decisions/{made.decision.id}",
    )


def listing(call: Call) -> Reply:
    """GET: a page of decisions, newest first."""
    read = partial(
        list_decisions,
        call.env,
        call.caller,
        ensemble_id=call.query.get("ensemble_id"),
        all_projects=call.flag("all_projects"),
    )
    return listed(call, "decisions", read, lambda one: view_of(call, one))


def show(call: Call) -> Reply:
    """GET: one decision."""
    decision = seen_decision(call.env.store, call.caller, call.path["id"])
    return Reply(wire.OneDecision(view_of(call, decision)), generation=decision.generation)


def renew(call: Call) -> Reply:
    """PATCH: extend the hold."""
    body: DecisionPatchBody = call.body.decision
    renewed = call.perform(
        renew_decision,
        call.path["id"],
        _until(call, body),
        call.expected(body.generation),
    )
    view = view_of(call, renewed, dry_run=call.dry_run)
    return Reply(wire.OneDecision(view), generation=renewed.generation)


def release(call: Call) -> Reply:
    """DELETE: release unclaimed places."""
    expected = call.expected(None)
    _, impact = call.perform_judged(_decided(call), release_decision, call.path["id"], expected)
    return deleted(impact)


def confirm(call: Call) -> Reply:
    """POST: confirm the claimed places, free the others."""
    done, impact = call.perform_judged(
        _decided(call), confirm_decision, call.path["id"], call.matched
    )
    return Reply(
        wire.Confirmed(
            decision=view_of(call, done.decision, dry_run=call.dry_run),
            claimed=done.claimed,
            building=done.building,
            released=len(done.released),
            released_members=[str(name) for name in done.released],
            members=len(done.ensemble.members),
            breaks=impact_view(impact),
        ),
        generation=done.decision.generation,
    )


def _decided(call: Call) -> list[str]:
    """The id of the ensemble of the path's decision, if there is one."""
    decision = if_stored(call.env.store.decision, call.path["id"])
    return [] if decision is None else [decision.ensemble_id]


def view_of(call: Call, decision: Decision, *, dry_run: bool = False) -> wire.Decision:
    """A stored decision."""
    store = call.env.store
    return decision_view(
        call,
        decision,
        ensemble_of(store, decision),
        store.snapshot(),
        store.claims(decision_id=decision.id),
        dry_run=dry_run,
    )


def ensemble_of(store: Store, decision: Decision) -> Ensemble | None:
    """The decision's ensemble, or None if it is deleted, in which case its labels are gone too."""
    try:
        return store.ensemble(decision.ensemble_id)
    except NotFound:
        return None


def _until(call: Call, body: DecisionPatchBody) -> Instant:
    if (body.expires_at is None) == (body.hold is None):
        raise InvalidDescription("give expires_at or hold, and not both", path="decision")
    if body.expires_at is not None:
        return parse_instant(body.expires_at)
    hold = reading.duration(body.hold, "hold")
    assert hold is not None
    return call.env.store.now() + hold


def decision_view(  # noqa: PLR0913 - what it says, and what it is read from
    call: Call,
    decision: Decision,
    ensemble: Ensemble | None,
    snapshot: Snapshot,
    claims: Sequence[Claim] = (),
    *,
    dry_run: bool = False,
    lease: Lease | None = None,
) -> wire.Decision:
    """A decision with its assignments. A host no longer in the fleet has no domains.

    Of an ensemble of several projects only what the caller's project may see.
    """
    now = snapshot.taken_at
    owner = sees(call.caller, decision.project_id)
    ends = _ends(call, decision, ensemble, snapshot, lease, dry_run=dry_run)
    ends = {name: end for name, end in ends.items() if sees_role(call.caller, ensemble, name.role)}
    claimants = _claimants(now, [one for one in claims if sees(call.caller, one.project_id)])
    flavors = (
        () if dry_run or ensemble is None else ticket_flavors(call.env.store, decision, ensemble)
    )
    flavors = tuple(one for one in flavors if sees_role(call.caller, ensemble, one.role))
    if ensemble is not None:
        ensemble = seen_by_caller(call, ensemble)
    choices = {} if ensemble is None else {role.name: role.choices for role in ensemble.roles}
    named = None if owner or ensemble is None else {one.name for one in ensemble.policies}
    return view(
        wire.Decision,
        decision,
        status=decision.told_at(now),
        interval=decision.period,
        solve=solve_view(decision.solve, operator=call.caller.operator),
        assignments=[
            assignment_view(
                call,
                name,
                place,
                ensemble,
                snapshot,
                claimants.get(name),
                choices=choices.get(name.role, ()),
                end=ends.get(name),
            )
            for name, place in sorted(decision.places.items())
        ],
        withdrawn=[
            name for name in decision.withdrawn if sees_role(call.caller, ensemble, name.role)
        ],
        policies=[one for one in decision.policies if named is None or one.name in named],
        max_additional={
            role: additional_view(
                call, count, decision.steps.get(role, 1), exact=role not in decision.at_least
            )
            for role, count in decision.max_additional.items()
            if owner
        },
        computed_at=decision.created_at,
        dry_run=dry_run,
        links=[] if dry_run else [call.link("self", "decisions", decision.id)],
        ticket_flavors=[
            view(wire.TicketFlavor, one, one.size, project_id=ensemble.project_of(one.role))
            for one in flavors
            if ensemble is not None
        ],
    )


def summaries(call: Call, ensembles: Sequence[Ensemble]) -> Mapping[str, wire.DecisionSummary]:
    """Ensemble -> its current decision in short; those without any are left out."""
    store = call.env.store
    found = store.newest_decisions([one.id for one in ensembles])
    claimed = store.open_claims([one.id for one in found.values()])
    now = store.now()
    return {
        ensemble_id: view(
            wire.DecisionSummary,
            one,
            status=one.told_at(now),
            interval=one.period,
            members=len(one.places),
            claimed=claimed.get(one.id, 0),
            policies_met=sum(policy.satisfied for policy in one.policies),
        )
        for ensemble_id, one in found.items()
    }


def seen_by_caller(call: Call, ensemble: Ensemble) -> Ensemble:
    """The ensemble as the caller may see it."""
    return ensemble if call.caller.operator else as_seen_by(ensemble, call.caller.project_id)


def solve_view(solve: Solve, *, operator: bool) -> wire.Solve:
    """How a search came to its answer; what it says of the whole fleet is for operators."""
    return view(
        wire.Solve,
        solve,
        operator=operator,
        optimal=solve.proven,
        gap=round(solve.gap, 4),
        wall_ms=round(solve.wall_ms, 3),
        room=room_view(solve.room) if operator and solve.room else None,
    )


def additional_view(call: Call, count: int, step: int, *, exact: bool) -> wire.Additional:
    """How many more fit; rounded and capped for a tenant."""
    limits, operator = call.env.limits, call.caller.operator
    told, step = told_with_step(count if operator else limits.told_additional(count), step)
    return wire.Additional(told, exact and (operator or limits.disclosure.whole(count)), step)


def assignment_view(  # noqa: PLR0913 - what it says, and what it is read from
    call: Call,
    name: MemberName,
    place: Place,
    ensemble: Ensemble | None,
    snapshot: Snapshot,
    claim_id: str | None,
    *,
    choices: Sequence[Role],
    end: StayEnd | None,
) -> wire.Assignment:
    """A member's place, and its end if it is to end; `choices` are those of its role."""
    return wire.Assignment(
        member=str(name),
        kind=choices[place.choice].kind if place.choice < len(choices) else "server",
        claimed_by=claim_id,
        alternative=place.choice if len(choices) > 1 else UNSET,
        **stay_view(
            call,
            place,
            ensemble,
            snapshot,
            end,
            own=sees_role(call.caller, ensemble, name.role),
        ),
    )


def _ends(
    call: Call,
    decision: Decision,
    ensemble: Ensemble | None,
    snapshot: Snapshot,
    lease: Lease | None,
    *,
    dry_run: bool,
) -> Mapping[MemberName, StayEnd]:
    """When members end, at present or in this placement."""
    if dry_run:
        return decided_ends(decision)
    if ensemble is None:
        return {}
    known = {decision.id: lease} if lease is not None or decision.lease_id is None else {}
    return stay_ends(call.env.store, member_bookings(snapshot, ensemble), known)


def _claimants(now: Instant, claims: Sequence[Claim]) -> Mapping[MemberName, str]:
    """Member -> its first open claim."""
    open_states = {ClaimState.BUILDING, ClaimState.ACTIVE}
    return {c.member: c.id for c in reversed(claims) if c.state_at(now) in open_states}


def domains_view(
    call: Call, snapshot: Snapshot, ensemble: Ensemble, place: Place
) -> dict[str, str]:
    """Level -> domain: names for operators, the ensemble's own labels for tenants."""
    found = domains_of(snapshot, snapshot.row_of[place.host])
    if call.caller.operator:
        return {str(level): name for level, name in found.items()}
    return {str(level): label(ensemble.salt, level, name) for level, name in found.items()}


def stay_view(
    call: Call,
    place: Place | None,
    ensemble: Ensemble | None,
    snapshot: Snapshot,
    end: StayEnd | None,
    *,
    own: bool,
) -> dict[str, Any]:
    """Where a member is and until when; of a slice the host is its server's."""
    found: dict[str, Any] = {"domains": {}}
    if end is not None:
        found |= {"until": format_instant(end.at), "until_because": end.because.value}
    if place is None:
        return found
    if call.caller.operator:
        found["allocations"] = plain(place.allocations)
    row = snapshot.row_of.get(place.host)
    if row is None:
        return found
    if ensemble is not None:
        found["domains"] = domains_view(call, snapshot, ensemble, place)
    if own and row in snapshot.offered_by:
        found["server_provider"] = place.host
    host = int(snapshot.locations.hosts[row])
    if not host_states(snapshot).in_service[row]:
        found["out_of_service"] = True
    if call.caller.operator and host != NOWHERE:
        found["host"] = snapshot.names[host]
        if "out_of_service" in found:
            found["closed"] = [view(Closing, one) for one in closings(snapshot, host)]
    return found
