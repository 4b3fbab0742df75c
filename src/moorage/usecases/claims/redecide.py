"""Place a member again whose server request differs from its role; no other member moves."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import PutClaim
from moorage.domain.errors import DescriptionMismatch, UnknownName
from moorage.domain.period import Period
from moorage.domain.refusal_commands import to_place
from moorage.usecases.claims.claim import (
    ClaimResult,
    check_free,
    claim,
    new_claim,
    of_slice,
    zones_of,
)
from moorage.usecases.claims.comparison import (
    Comparison,
    as_requested,
    compare,
    read_server_request,
)
from moorage.usecases.claims.hold import check_held, check_lease_active
from moorage.usecases.decide.loop import DecisionFlow, DecisionRequest, run_decision
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.request import KnownHosts, Proposal, RequestIdentity
from moorage.usecases.decide.writes import options_like
from moorage.usecases.relocation.lease_promise import continuation_of
from moorage.usecases.shared.limits import claim_within
from moorage.usecases.shared.role_access import check_unshared, seen_decision
from moorage.usecases.waitlist_turn import turn_of_stay, turn_of_window

if TYPE_CHECKING:
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Role
    from moorage.domain.leases import Lease
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.claims.claim import SecondDescription
    from moorage.usecases.claims.comparison import RequestedServer
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller
    from moorage.usecases.waitlist_turn import WaitlistTurn


def claim_or_redecide(
    env: UseCaseEnvironment,
    caller: Caller,
    decision_id: str,
    second: SecondDescription,
    identity: RequestIdentity,
) -> ClaimResult:
    """Claim a place; if the server request differs from the role, place the member again first.

    The role keeps its description: only this member's place has the requested size. Traits of the
    request are added to the role's, and an availability zone of the request limits the hosts.

    Raises:
        Infeasible: the requested server fits nowhere beside the other members; nothing changed.
        UnknownName: there is no such availability zone.
        WrongState: also for a role of another project, whose members are not placed one by one.
        HoldExpired, NotFound, InvalidDescription: as for `claim`.
    """
    try:
        return claim(env, caller, decision_id, second, identity)
    except DescriptionMismatch:
        return run_decision(env, lambda: _redecide(env, caller, decision_id, second, identity))


def _redecide(
    env: UseCaseEnvironment,
    caller: Caller,
    decision_id: str,
    second: SecondDescription,
    identity: RequestIdentity,
) -> DecisionFlow[ClaimResult]:
    decision = seen_decision(env.store, caller, decision_id)
    ensemble = env.store.ensemble(decision.ensemble_id)
    check_unshared(ensemble, second.member.role, to_place(ensemble.name, what="all its members"))
    snapshot = env.store.snapshot()
    check_held(decision, snapshot.taken_at, ensemble.name)
    check_free(ensemble, decision, locate_members(snapshot, ensemble), second.member)
    role = ensemble.role_of(second.member)
    requested = read_server_request(env.store, second.server, role, env.limits.nova)
    comparison = compare(role, requested, frozenset())
    lifetime = claim_within(env.limits, second.lifetime)
    check_lease_active(env.store, decision, snapshot.taken_at)
    carried = continuation_of(env, decision)

    def further_changes(fresh: Decision) -> tuple[Change, ...]:
        life = Period(fresh.created_at, fresh.created_at + lifetime)
        made = new_claim(ensemble, fresh, second, comparison, identity, life)
        if role.is_slice:
            made = of_slice(made, fresh.places[second.member])
        return (PutClaim(made, None), *carried.further_changes(fresh))

    roles = _roles(ensemble, role, requested)
    proposal = Proposal(
        ensemble,
        ensemble.generation,
        (lambda _: frozenset({second.member}),),
        roles=roles,
        promise=carried.promise,
        known_hosts=KnownHosts(barred={"availability_zone": _elsewhere(snapshot, requested.zone)}),
        waitlist_gate=_turn(env, ensemble, roles, decision, carried.lease),
        further_changes=further_changes,
    )
    settled = yield DecisionRequest(
        proposal, options_like(decision), RequestIdentity(env.ids.uuid())
    )
    taken = env.store.claim(identity.id)
    return ClaimResult(taken, settled.ensemble, _accepted(comparison), settled)


def _roles(ensemble: Ensemble, role: Role, requested: RequestedServer) -> tuple[Role, ...]:
    """The ensemble's roles, with the requested size and traits in this member's role.

    The role's other members are fixed, and a fixed member's size is read from its bookings, so the
    changed size applies only to the member that is placed now.
    """
    named = {one.name for one in as_requested(role, requested.lists)}
    sized = replace(
        role,
        resources=requested.resources,
        required=tuple(sorted({*role.required, *requested.required}, key=sorted)),
        forbidden=role.forbidden | requested.forbidden,
        groups=as_requested(role, requested.lists),
        root_required=role.root_required | (requested.root_required or frozenset()),
        same_subtree=tuple(names & named for names in role.same_subtree),
    )
    return tuple(sized if one.name == role.name else one for one in ensemble.roles)


def _turn(
    env: UseCaseEnvironment,
    ensemble: Ensemble,
    roles: tuple[Role, ...],
    decision: Decision,
    lease: Lease | None,
) -> WaitlistTurn:
    """The waitlist gate: the changed member competes with waiting entries."""
    resized = replace(ensemble, roles=roles)
    if lease is not None:
        return turn_of_window(env, resized, lease.terms)
    period = decision.period
    return turn_of_stay(env, resized, None if period.open_ended else period.end)


def _elsewhere(snapshot: Snapshot, zone: str | None) -> frozenset[str]:
    """UUIDs of the hosts outside an availability zone.

    Raises:
        UnknownName: no host is in such a zone.
    """
    if zone is None:
        return frozenset()
    outside: set[str] = set()
    found = False
    for row in snapshot.hosts.tolist():
        inside = zone in zones_of(snapshot, row)
        found = found or inside
        if not inside:
            outside.add(snapshot.uuids[row])
    if not found:
        raise UnknownName("availability zone", zone, path="server.availability_zone")
    return frozenset(outside)


def _accepted(comparison: Comparison) -> Comparison:
    return Comparison("redecided", tuple(MappingProxyType(dict(one)) for one in comparison.diff))
