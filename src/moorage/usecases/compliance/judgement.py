"""Judges an ensemble: which policies its members break where they are, and who is out of service.

Policies are judged twice: by all members that have places, and, where some of them are out of
service, by the others. A policy that either breaks is broken. So a host that goes out of service
adds violations and ends none: its members come back to where they were, or still run there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.ensembles import STANDING
from moorage.domain.errors import InUse, InvalidDescription
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Placement
from moorage.domain.references import references_of
from moorage.domain.requests import Objective
from moorage.engine.joint.build import policy_view_of, row_of_host
from moorage.engine.joint.policy_rules import resolve_policies
from moorage.engine.joint.terrain import cut_terrain
from moorage.engine.state.host_states import host_states
from moorage.policies.levels import members_text
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.decide.solution import request_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from moorage.domain.ensembles import Ensemble, Phase, PolicyStatement
    from moorage.domain.host_states import HostState
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.terrain import Terrain
    from moorage.engine.state.snapshot import Snapshot
    from moorage.policies.rules import PolicyRule
    from moorage.usecases.decide.member_places import MemberPlaces


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """One way in which a policy is broken now."""

    policy: str
    required: bool
    members: tuple[MemberName, ...]
    text: str
    amount: int
    named: bool = False
    """Whether the text may name hosts or domains, which no tenant reads."""


class BreaksPolicies(InUse):
    """A change of the members would break required policies, listed in `violations`."""

    def __init__(
        self, kind: str, name: str, message: str, violations: tuple[PolicyViolation, ...]
    ) -> None:
        super().__init__(kind, name)
        self.message = message
        self.violations = violations


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judgement finds."""

    violations: tuple[PolicyViolation, ...]
    hosts: Mapping[MemberName, int]
    """Row, in the snapshot, of the host of every placed member."""
    out_of_service: Mapping[MemberName, HostState]
    """The placed members whose hosts are not in service, with the state of these."""
    on_no_host: tuple[MemberName, ...] = ()
    """Placed members of whom no policy can be judged: what they have booked is no host's."""
    neighbours: frozenset[int] = frozenset()
    """Rows, in the snapshot, of the hosts whose occupants were looked at."""
    reads_fleet: bool = False
    """Whether it depends on which hosts of the fleet are eligible."""


def judge(snapshot: Snapshot, ensemble: Ensemble, phases: frozenset[Phase] = STANDING) -> Judgement:
    """Judge the present places of the members; unplaced members violate nothing.

    Other consumers count if they are on the hosts at any time in the members' period; before a
    lease starts, that is the lease's period. Only policies of these phases are judged. One that
    cannot be, as its level or its type is gone, is broken.
    """
    member_places = locate_members(snapshot, ensemble)
    hosts = {name: snapshot.row_of[place.host] for name, place in member_places.places.items()}
    request = _standing_request(snapshot, ensemble, member_places, phases)
    terrain = cut_terrain(snapshot, request)
    nowhere = tuple(one for one in request.members if request.fixed[one] not in terrain.row_of)
    if nowhere:
        there = tuple(one for one in request.members if one not in nowhere)
        request = replace(request, members=there, absent=(*request.absent, *nowhere))
    rules, unjudged = _rules(request, terrain)
    if unjudged:
        left = tuple(rule.statement for rule in rules)
        request = replace(request, policies=left)
    view = policy_view_of(request, terrain)
    placement = Placement(view, _rows(request, terrain))
    states = host_states(snapshot)
    lost = {name: states.state(row) for name, row in hosts.items() if not states.in_service[row]}
    found = [*dangling_references(ensemble), *unjudged]
    for rule in rules:
        broken = _broken(rule, rule.edges, placement)
        if lost:
            broken = max(broken, _broken_without(rule, placement, lost.keys()), key=_amount)
        found += broken
    return Judgement(
        violations=tuple(found),
        hosts=MappingProxyType(hosts),
        out_of_service=MappingProxyType(lost),
        on_no_host=nowhere,
        neighbours=frozenset(snapshot.row_of[terrain.uuids[row]] for row in view.read_occupants_of),
        reads_fleet=view.has_read_eligible,
    )


def broken_policies(
    snapshot: Snapshot, ensemble: Ensemble, phases: frozenset[Phase] = STANDING
) -> tuple[PolicyViolation, ...]:
    """The violations that `judge` finds.

    Raises:
        InvalidDescription: a member is on no host.
    """
    found = judge(snapshot, ensemble, phases)
    for one in found.on_no_host:
        raise InvalidDescription(f"{one} stands on no host", path=f"fixed.{one}")
    return found.violations


def standing_policies(
    snapshot: Snapshot,
    ensemble: Ensemble,
    member_places: MemberPlaces,
    phases: frozenset[Phase] = STANDING,
) -> tuple[tuple[PolicyRule, ...], Placement]:
    """The policies of these phases, and the present placement that they judge.

    Raises:
        InvalidDescription: a member is on no host.
    """
    request = _standing_request(snapshot, ensemble, member_places, phases)
    terrain = cut_terrain(snapshot, request)
    placement = Placement(policy_view_of(request, terrain), _rows(request, terrain))
    return resolve_policies(request, terrain.topology), placement


def _standing_request(
    snapshot: Snapshot,
    ensemble: Ensemble,
    member_places: MemberPlaces,
    phases: frozenset[Phase],
) -> EnsembleRequest:
    """The request in which every placed member is fixed."""
    period = _presence(member_places, snapshot.taken_at)
    request = request_for(ensemble, member_places, frozenset(), period, Objective.SPREAD)
    return replace(request, phases=phases)


def _presence(member_places: MemberPlaces, now: Instant) -> Period:
    """The period from the first start to the last end of the members' bookings."""
    every = [one for some in member_places.bookings.values() for one in some]
    start = min((one.period.start for one in every), default=now)
    end = max((one.occupies_until(now) for one in every), default=FOREVER)
    return Period(max(start, now), end)


def _rows(request: EnsembleRequest, terrain: Terrain) -> dict[MemberName, int]:
    """Member -> row of its host in the terrain.

    Raises:
        InvalidDescription: a member is on no host.
    """
    return {member: row_of_host(request, terrain, member) for member in request.members}


def _rules(
    request: EnsembleRequest, terrain: Terrain
) -> tuple[list[PolicyRule], list[PolicyViolation]]:
    """The policies that can be judged, and a violation for each that cannot."""
    try:
        return list(resolve_policies(request, terrain.topology)), []
    except InvalidDescription:
        pass
    rules: list[PolicyRule] = []
    violations = []
    for statement in request.policies:
        try:
            rules += resolve_policies(replace(request, policies=(statement,)), terrain.topology)
        except InvalidDescription as error:
            violations.append(_cannot_be_judged(statement, error))
    return rules, violations


def _cannot_be_judged(statement: PolicyStatement, error: InvalidDescription) -> PolicyViolation:
    text = f"cannot be judged: {error.message}"
    return PolicyViolation(statement.name, statement.required, (), text, 1)


def _broken(
    rule: PolicyRule, edges: Iterable[tuple[MemberName, ...]], placement: Placement
) -> list[PolicyViolation]:
    return [
        PolicyViolation(
            policy=rule.statement.name,
            required=rule.statement.required,
            members=violation.members,
            text=violation.text,
            amount=violation.amount,
            named=violation.named,
        )
        for edge in edges
        for violation in rule.policy.violations(edge, placement)
    ]


def _broken_without(
    rule: PolicyRule, placement: Placement, lost: AbstractSet[MemberName]
) -> list[PolicyViolation]:
    """The violations by the members that are in service; of a zip only whole edges count."""
    found = []
    for edge in rule.edges:
        left = tuple(one for one in edge if one not in lost)
        if rule.statement.zip and left != edge:
            continue
        off = tuple(one for one in edge if one in lost)
        for one in _broken(rule, (left,), placement):
            text = f"{one.text}; {members_text(off)} out of service" if off else one.text
            found.append(replace(one, members=tuple(sorted((*one.members, *off))), text=text))
    return found


def _amount(violations: list[PolicyViolation]) -> int:
    return sum(one.amount for one in violations)


def dangling_references(ensemble: Ensemble) -> tuple[PolicyViolation, ...]:
    """Policies that refer to ensembles which are deleted, as violations."""
    return tuple(
        PolicyViolation(
            policy=statement.name,
            required=statement.required,
            members=(),
            text=f"ensemble {name}, to which the policy refers, is deleted",
            amount=1,
        )
        for statement in ensemble.policies
        for name in sorted(references_of(statement) - ensemble.references.keys())
    )
