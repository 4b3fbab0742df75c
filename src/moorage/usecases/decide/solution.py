"""Make the joint request, solve it, and verify the solver's answer. Nothing is written here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.deadline import TimeExpired
from moorage.domain.decisions import SolveEnd
from moorage.domain.ensembles import CREATION, STEP
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.engine.joint.alternatives import constant_cost
from moorage.engine.joint.cost import cost
from moorage.engine.joint.problem import Outcome, Verdict
from moorage.engine.joint.proved_solve import solve
from moorage.engine.joint.verify import WrongAnswer, placed_members, places, verify
from moorage.policies.rules import edges_among
from moorage.usecases.decide.member_places import MemberStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.decisions import PolicyStatus
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration, Instant, Period
    from moorage.domain.placement import Place
    from moorage.engine.joint.build import BuiltProblem
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.ports import Solver


class HoldEnd(Enum):
    """How the end of a hold is chosen if `DecisionOptions.hold` is None."""

    DEFAULT = "default"
    """Now plus the configured default."""
    AT_LEAST_PRESENT = "at least present"
    """As DEFAULT, but no earlier than the end of the present decision's hold, if there is one."""
    PRESENT = "present"
    """The end of the present decision's hold; as DEFAULT if there is none."""


@dataclass(frozen=True, slots=True)
class DecisionOptions:
    """Options of a decision; None takes the configured default."""

    hold: Duration | None = None
    time_limit: Duration | None = None
    objective: Objective = Objective.SPREAD
    first_choices: bool = True
    """Whether members are placed as an early one of their alternatives, at the objective's cost."""
    seed: int = 0
    additional: tuple[str, ...] = ()
    """Roles for which `max_additional` is counted, and sets of roles: `web+db` counts how many
    times one more of each fits."""
    as_before: bool = False
    """Continue the former decision: hold until its hold ends, if it is held, else for `hold`."""
    until: Instant | None = None
    """When the members' stay ends; None: never."""
    preemptible: bool = False
    """Whether the stay may end earlier, for a lease that needs the places."""
    priority: int = 0
    """Priority of a preemptible stay: stays of lower priority are displaced first."""
    any_priority: bool = False
    """Whether the priority may exceed what the project's quota allows."""
    hold_end: HoldEnd = HoldEnd.DEFAULT
    """The end of the hold if `hold` is None."""


@dataclass(frozen=True, eq=False)
class VerifiedPlacement:
    """A verified placement: every member's host, and the status of every policy."""

    built: BuiltProblem
    outcome: Outcome
    hosts: Mapping[MemberName, str]
    """Root provider UUIDs."""
    policies: tuple[PolicyStatus, ...]
    inspected_hosts: frozenset[str]
    """Root provider UUIDs of the hosts whose occupants a policy has read."""

    places: Mapping[MemberName, Place]
    """Member that is placed now -> its place."""


def request_for(
    ensemble: Ensemble,
    member_places: MemberPlaces,
    anew: frozenset[MemberName],
    period: Period,
    objective: Objective,
    *,
    first_choices: bool = True,
) -> EnsembleRequest:
    """The joint request: members in `anew` are placed, all other placed members are fixed.

    A member that has no place and is not in `anew` is left out. Beside servers the policies of the
    transition phase apply, too.
    """
    fixed = {name: place.host for name, place in member_places.places.items() if name not in anew}
    there = fixed.keys() | anew
    members = tuple(m.name for m in ensemble.members if m.name in there)
    beside_servers = any(member_places.of(name) is MemberStatus.ACTIVE for name in fixed)
    return EnsembleRequest(
        project_id=ensemble.project_id,
        roles=ensemble.roles,
        members=members,
        absent=tuple(m.name for m in ensemble.members if m.name not in there),
        former_edges=edges_before(ensemble, ensemble, member_places),
        policies=ensemble.policies,
        period=period,
        objective=objective,
        first_choices=first_choices,
        choices=MappingProxyType(
            {one.name: one.choice for one in ensemble.members if one.choice and one.name in fixed}
        ),
        fixed=MappingProxyType(fixed),
        own_consumers=member_places.consumers,
        references=member_places.references,
        released=frozenset(
            booking.consumer for name in anew for booking in member_places.bookings.get(name, ())
        ),
        phases=STEP if beside_servers else CREATION,
    )


def edges_before(
    before: Ensemble, ensemble: Ensemble, member_places: MemberPlaces
) -> Mapping[str, tuple[tuple[MemberName, ...], ...]]:
    """`EnsembleRequest.former_edges` of an ensemble that replaces the one `before`.

    The members of an edge had places, and stay.
    """
    stay = {one.uuid for one in ensemble.members}
    stood = {one.name for one in before.members if one.uuid in stay}.intersection(
        member_places.places
    )
    if not stood:
        return MappingProxyType({})
    return MappingProxyType(
        {
            one.name: edges_among(one, before.edges(one), stood)
            for one in before.policies
            if one.required
        }
    )


def solve_and_verify(
    solver: Solver, built: BuiltProblem, *, time_limit: Duration, seed: int
) -> VerifiedPlacement | None:
    """Solve and verify; None if it is proved that there is no placement.

    Raises:
        TimeExpired: time ran out before a placement or a proof.
        WrongAnswer: the solver's placement violates the request, which is a defect.
    """
    outcome = solve(solver, built.problem, time_limit=time_limit, seed=seed)
    if outcome.verdict is Verdict.UNKNOWN:
        raise TimeExpired
    if outcome.verdict is Verdict.INFEASIBLE:
        return None
    assert outcome.hosts is not None
    return verified_placement(built, outcome, outcome.hosts.tolist())


def recheck_placement(found: VerifiedPlacement, built: BuiltProblem) -> VerifiedPlacement | None:
    """The same placement verified on a problem from a newer snapshot; None if it no longer holds.

    Its cost may differ there, and it may no longer be optimal.
    """
    if built.problem.members != found.built.problem.members:
        return None
    return _standing(found.hosts, found.outcome, built)


KEPT: Final = "kept"
"""Solver name of a placement on known hosts, which was not solved for."""


def placement_on_hosts(
    hosts: Mapping[MemberName, str], built: BuiltProblem
) -> VerifiedPlacement | None:
    """The placement of all members on known hosts; None if it is incomplete or not valid."""
    if any(member not in hosts for member in built.request.members):
        return None
    return _standing(hosts, Outcome(Verdict.FEASIBLE, KEPT), built)


def _standing(
    hosts: Mapping[MemberName, str], outcome: Outcome, built: BuiltProblem
) -> VerifiedPlacement | None:
    if built.alternatives is not None:
        return None  # hosts do not say which choice was taken
    row_of = {uuid: row for row, uuid in enumerate(built.problem.hosts)}
    rows = [row_of.get(hosts[member], -1) for member in built.problem.members]
    if -1 in rows:
        return None
    value = int(cost(built.problem, np.array([rows], dtype=np.int64))[0])
    outcome = replace(
        outcome,
        hosts=np.array(rows, dtype=np.int64),
        value=value,
        bound=0,
        ended=SolveEnd.KEPT if value else SolveEnd.PROVED,
    )
    try:
        return verified_placement(built, outcome, rows)
    except WrongAnswer:
        return None


def verified_placement(built: BuiltProblem, outcome: Outcome, rows: list[int]) -> VerifiedPlacement:
    """Verify a solver's placement against policies and capacity, independently of the solver.

    Raises:
        WrongAnswer: the placement violates the request.
    """
    policy_view = replace(built.policy_view, read_occupants_of=set())
    statuses = verify(replace(built, policy_view=policy_view), rows)
    placed = placed_members(built, np.array(rows, dtype=np.int64))
    constant = constant_cost(built.problem)
    return VerifiedPlacement(
        built=built,
        outcome=replace(outcome, value=outcome.value - constant, bound=outcome.bound - constant)
        if constant
        else outcome,
        hosts=MappingProxyType({name: built.problem.hosts[row] for name, _, row in placed}),
        policies=statuses,
        inspected_hosts=frozenset(
            built.problem.hosts[row] for row in policy_view.read_occupants_of
        ),
        places=MappingProxyType(dict(places(built, rows))),
    )
