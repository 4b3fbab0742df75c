"""Claim one member's held place for a server that will now be built: the second step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.changes import (
    Changeset,
    ExpectEnsemble,
    PutBookings,
    PutClaim,
    PutDecision,
)
from moorage.domain.decisions import Claim, ClaimState, DecisionState
from moorage.domain.errors import WrongState
from moorage.domain.host_states import HostOutOfService
from moorage.domain.period import Period
from moorage.domain.refusal_commands import to_place, to_see_claims, to_see_lease, to_see_places
from moorage.domain.resources import total
from moorage.engine.state.host_states import host_states
from moorage.usecases.claims.comparison import (
    Comparison,
    as_requested,
    check_agreement,
    compare,
    narrowed,
    read_server_request,
)
from moorage.usecases.claims.hold import check_held, check_lease_active
from moorage.usecases.decide.member_places import MemberStatus, locate_members
from moorage.usecases.decide.reliance import preemptible_revisions
from moorage.usecases.decide.writes import claimed_bookings, member_consumer
from moorage.usecases.relocation.lease_health import without_place
from moorage.usecases.shared.access import made_by_request
from moorage.usecases.shared.host_labels import domains_of
from moorage.usecases.shared.limits import claim_within
from moorage.usecases.shared.retry import retry
from moorage.usecases.shared.role_access import check_own_role, seen_decision

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration
    from moorage.domain.placement import Place
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.claims.comparison import RequestedServer
    from moorage.usecases.decide.loop import DecisionResult
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.request import RequestIdentity
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.ports import Caller

ZONES = frozenset({"zone", "az", "availability_zone"})
"""Names of the topology levels that are availability zones."""


@dataclass(frozen=True, slots=True)
class SecondDescription:
    """A claim's description of its member: the server request as the client will make it."""

    member: MemberName
    server: Mapping[str, object]
    lifetime: Duration | None = None


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """A claim, and how its server request compares with the member's role."""

    claim: Claim
    ensemble: Ensemble
    comparison: Comparison
    settled: DecisionResult | None = None
    """The new decision, if the member was placed again for this claim."""


def claim(
    env: UseCaseEnvironment,
    caller: Caller,
    decision_id: str,
    second: SecondDescription,
    identity: RequestIdentity,
) -> ClaimResult:
    """Claim a held place.

    The place stays booked for the claim's own lifetime, even if the decision ends before. A
    narrower request books only what it asks for; the rest of the place is freed.

    Raises:
        NotFound: no such decision, or member in it, for this caller.
        Forbidden: the member's role belongs to another project.
        InvalidDescription: the server request cannot be understood.
        DescriptionMismatch: the server request asks for more than the role, or for other things.
        HoldExpired: the hold lapsed.
        HostOutOfService: the place's host is not in service.
        WrongState: the member has no place, or it is claimed already, or missing in a degraded
            lease; the decision is over, or its lease is not active.
        DuplicateName: the id was used by another request.
        Busy: too many claims of the decision at once.
    """
    # Concurrent claims of one decision conflict on its generation, so each may be retried.
    return retry(env, lambda: _claim(env, caller, decision_id, second, identity))


def _claim(
    env: UseCaseEnvironment,
    caller: Caller,
    decision_id: str,
    second: SecondDescription,
    identity: RequestIdentity,
) -> ClaimResult:
    decision = seen_decision(env.store, caller, decision_id)
    ensemble = env.store.ensemble(decision.ensemble_id)
    if (made := _made_before(env, ensemble, identity)) is not None:
        return made
    check_own_role(caller, ensemble, second.member.role)
    ensemble.member(second.member)  # raises for one that there is not, before its server is read
    role = ensemble.role_of(second.member)
    requested = read_server_request(env.store, second.server, role, env.limits.nova)
    snapshot = env.store.snapshot()
    now = snapshot.taken_at
    check_held(decision, now, ensemble.name)
    check_lease_active(env.store, decision, now)
    place, held = _free_place(snapshot, ensemble, decision, second.member)
    comparison = compare_at_place(snapshot, ensemble, second.member, requested, place)
    check_agreement(second.member, comparison)
    lapses_at = now + claim_within(env.limits, second.lifetime)
    life = Period(now, lapses_at)
    made_claim = new_claim(ensemble, decision, second, comparison, identity, life)
    groups = as_requested(role, requested.lists)
    taken = narrowed(place, role, requested.resources, groups)
    if role.is_slice:
        made_claim = of_slice(made_claim, taken)
    changes = claim_changes(ensemble, decision, taken, made_claim, held)
    env.store.commit(Changeset(changes, relies_on=preemptible_revisions(snapshot, held)))
    return ClaimResult(env.store.claim(made_claim.id), ensemble, comparison)


def claim_changes(
    ensemble: Ensemble, decision: Decision, taken: Place, made: Claim, held: Iterable[Booking]
) -> tuple[Change, ...]:
    """The changes that store a claim, its place in the decision, and the claimed bookings.

    They conflict if the decision or the ensemble changed meanwhile, or the hold lapsed. `held` are
    the member's bookings under the hold.
    """
    member = ensemble.member(made.member)
    places = MappingProxyType({**decision.places, made.member: taken})
    return (
        PutDecision(
            replace(decision, places=places, updated_at=made.created_at),
            decision.generation,
            not_after=decision.expires_at,
        ),
        ExpectEnsemble(ensemble.id, ensemble.generation),
        PutClaim(made, None),
        PutBookings(
            member_consumer(ensemble, member),
            claimed_bookings(held, made.lapses_at, taken.allocations),
        ),
    )


def new_claim(
    ensemble: Ensemble,
    decision: Decision,
    second: SecondDescription,
    comparison: Comparison,
    identity: RequestIdentity,
    life: Period,
) -> Claim:
    """A building claim, created at the start of `life` and lapsing at its end."""
    return Claim(
        id=identity.id,
        decision_id=decision.id,
        ensemble_id=ensemble.id,
        project_id=ensemble.project_of(second.member.role),
        member=second.member,
        kind=ensemble.role_of(second.member).kind,
        state=ClaimState.BUILDING,
        lapses_at=life.end,
        description=MappingProxyType(
            {
                "server": dict(second.server),
                "verdict": comparison.verdict,
                "diff": [dict(one) for one in comparison.diff],
                "key": identity.key,
            }
        ),
        digest=identity.digest,
        created_at=life.start,
        updated_at=life.start,
        lease_id=decision.lease_id,
    )


def of_slice(claim: Claim, place: Place) -> Claim:
    """The claim of a slice, with its place."""
    return replace(claim, server_provider=place.host, resources=total(place.allocations.values()))


def comparison_of(claim: Claim) -> Comparison:
    """The comparison that was stored with the claim."""
    diff = claim.description["diff"]
    assert isinstance(diff, list)
    return Comparison(
        str(claim.description["verdict"]), tuple(MappingProxyType(dict(one)) for one in diff)
    )


def compare_at_place(
    snapshot: Snapshot,
    ensemble: Ensemble,
    member: MemberName,
    requested: RequestedServer,
    place: Place,
) -> Comparison:
    """Compare a server request with the member's role, in the zones of the member's host."""
    zones = zones_of(snapshot, snapshot.row_of[place.host])
    return compare(ensemble.role_of(member), requested, zones)


def zones_of(snapshot: Snapshot, row: int) -> frozenset[str]:
    """Names of the availability zones that a host is in."""
    return frozenset(
        domain for level, domain in domains_of(snapshot, row).items() if level.name in ZONES
    )


def _free_place(
    snapshot: Snapshot, ensemble: Ensemble, decision: Decision, name: MemberName
) -> tuple[Place, tuple[Booking, ...]]:
    place = decision.places.get(name)
    if place is None:
        raise _without_place(ensemble, decision, name)
    member_places = locate_members(snapshot, ensemble)
    check_free(ensemble, decision, member_places, name)
    host = snapshot.row_of[member_places.places[name].host]
    if not host_states(snapshot).in_service[host]:
        remedy = to_place(ensemble.name)
        if decision.lease_id is not None:
            remedy = to_see_lease(decision.lease_id)
        raise HostOutOfService(f"the place of {name}", remedy)
    if decision.lease_id is not None and ensemble.member(name).uuid in without_place(
        snapshot, decision.id
    ):
        raise WrongState(
            f"the place of {name} is missing: its host has no room for it yet"
            f"{to_see_lease(decision.lease_id)}"
        )
    return place, member_places.bookings[name]


def _without_place(ensemble: Ensemble, decision: Decision, name: MemberName) -> WrongState:
    """The error of a member that the decision has not placed.

    Raises:
        NotFound: there is no such member.
    """
    ensemble.member(name)
    remedy = to_place(ensemble.name)
    if decision.lease_id is not None:
        remedy = to_see_lease(decision.lease_id)
    return WrongState(f"{name} has no place in decision {decision.id}{remedy}")


def check_free(
    ensemble: Ensemble, decision: Decision, member_places: MemberPlaces, name: MemberName
) -> None:
    """Check that the member's place is held, so that it can be claimed.

    Raises:
        WrongState: the decision or the place is not held.
    """
    state, status = decision.state_at(member_places.at), member_places.of(name)
    if state is not DecisionState.HELD:
        remedy = to_place(ensemble.name, what="its members")
        if state is DecisionState.SUPERSEDED:
            remedy = to_see_places(ensemble.name)
        if decision.lease_id is not None:
            remedy = to_see_lease(decision.lease_id)
        raise WrongState(f"cannot claim from a decision that is {state}{remedy}")
    if status is not MemberStatus.HELD:
        free = status is MemberStatus.UNPLACED
        remedy = to_place(ensemble.name) if free else to_see_claims(ensemble.name)
        raise WrongState(f"the place of {name} is not free to claim: it is {status}{remedy}")


def _made_before(
    env: UseCaseEnvironment, ensemble: Ensemble, identity: RequestIdentity
) -> ClaimResult | None:
    known = made_by_request("claim", identity, env.store.claim)
    if known is None:
        return None
    return ClaimResult(known, ensemble, comparison_of(known))
