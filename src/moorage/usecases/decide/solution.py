"""Solving: state the joint request, solve it, verify the answer. Nothing is written here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.deadline import TimeExpired
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.engine.joint.cost import cost
from moorage.engine.joint.problem import Outcome, Verdict
from moorage.engine.joint.proved_solve import solve
from moorage.engine.joint.verify import WrongAnswer, places, verify

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.decisions import PolicyStatus
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.domain.period import Duration, Instant, Period
    from moorage.domain.placement import Place
    from moorage.engine.joint.build import BuiltProblem
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.ports import Solver


class HoldEnd(Enum):
    """Until when a decision holds its places where `hold` does not say it."""

    DEFAULT = "default"
    """For as long as the configured default."""
    AT_LEAST_PRESENT = "at least present"
    """The same, but no less long than the present decision, if that is held."""
    PRESENT = "present"
    """Until the present decision would have ended, if that is held."""


@dataclass(frozen=True, slots=True)
class DecisionOptions:
    """Options of a decision; None takes the configured default."""

    hold: Duration | None = None
    time_limit: Duration | None = None
    objective: Objective = Objective.SPREAD
    seed: int = 0
    additional: tuple[str, ...] = ()
    """Roles whose `max_additional` is wanted."""
    as_before: bool = False
    """Hold until the decision before would have ended, if that is held; else for `hold`."""
    until: Instant | None = None
    """When the members' stay ends; None: never."""
    preemptible: bool = False
    """Whether the stay may end earlier, for a lease that needs the places."""
    priority: int = 0
    """Of a preemptible stay: those with less end for a lease before it does."""
    any_priority: bool = False
    """Whether who asks may ask for more than the project's quota allows."""
    hold_end: HoldEnd = HoldEnd.DEFAULT
    """Where there is no `hold`."""


@dataclass(frozen=True, eq=False)
class VerifiedPlacement:
    """A verified placement: every member's host, and the status of every policy."""

    built: BuiltProblem
    outcome: Outcome
    hosts: Mapping[MemberName, str]
    """Root provider UUIDs."""
    policies: tuple[PolicyStatus, ...]
    asked: frozenset[str]
    """Root provider UUIDs of the hosts of which the judgement depends on who else is there."""

    places: Mapping[MemberName, Place]
    """Of every member that is placed now: who gives it what."""

    def place(self, member: MemberName) -> Place:
        """The place of a member that is placed now."""
        return self.places[member]


def request_for(
    ensemble: Ensemble,
    stand: MemberPlaces,
    anew: frozenset[MemberName],
    period: Period,
    objective: Objective,
) -> EnsembleRequest:
    """The joint request: members of `anew` are placed, all others that stand stay put.

    A member that neither stands nor is in `anew` is left out: it has no place and gets none.
    """
    fixed = {name: place.host for name, place in stand.places.items() if name not in anew}
    return EnsembleRequest(
        project_id=ensemble.project_id,
        roles=ensemble.roles,
        members=tuple(m.name for m in ensemble.members if m.name in fixed or m.name in anew),
        policies=ensemble.policies,
        period=period,
        objective=objective,
        fixed=MappingProxyType(fixed),
        own_consumers=stand.consumers,
        released=frozenset(
            booking.consumer for name in anew for booking in stand.bookings.get(name, ())
        ),
    )


def solve_and_verify(
    solver: Solver, built: BuiltProblem, *, time_limit: Duration, seed: int
) -> VerifiedPlacement | None:
    """Solve and judge; None when it is proved that there is no placement.

    Raises:
        TimeExpired: there was no time left before an answer or a proof.
        WrongAnswer: the solver's answer breaks the request, which is a defect.
    """
    outcome = solve(solver, built.problem, time_limit=time_limit, seed=seed)
    if outcome.verdict is Verdict.UNKNOWN:
        raise TimeExpired
    if outcome.verdict is Verdict.INFEASIBLE:
        return None
    assert outcome.hosts is not None
    return verified_placement(built, outcome, outcome.hosts.tolist())


def recheck_placement(found: VerifiedPlacement, built: BuiltProblem) -> VerifiedPlacement | None:
    """The same answer on a problem made from a newer snapshot; None when it is broken there.

    It may cost something else there, and something better may exist: nobody has looked.
    """
    if built.problem.members != found.built.problem.members:
        return None
    return _standing(found.hosts, found.outcome, built)


KEPT: Final = "kept"
"""The name of the solver in an answer that was not solved for: the places were held already."""


def placement_on_hosts(
    hosts: Mapping[MemberName, str], built: BuiltProblem
) -> VerifiedPlacement | None:
    """The answer of members on hosts that they have places on; None where these do not do."""
    if any(member not in hosts for member in built.problem.members):
        return None
    return _standing(hosts, Outcome(Verdict.FEASIBLE, KEPT), built)


def _standing(
    hosts: Mapping[MemberName, str], outcome: Outcome, built: BuiltProblem
) -> VerifiedPlacement | None:
    row_of = {uuid: row for row, uuid in enumerate(built.problem.hosts)}
    rows = [row_of.get(hosts[member], -1) for member in built.problem.members]
    if -1 in rows:
        return None
    value = int(cost(built.problem, np.array([rows], dtype=np.int64))[0])
    outcome = replace(outcome, hosts=np.array(rows, dtype=np.int64), value=value, bound=0)
    try:
        return verified_placement(built, outcome, rows)
    except WrongAnswer:
        return None


def verified_placement(built: BuiltProblem, outcome: Outcome, rows: list[int]) -> VerifiedPlacement:
    """An answer by the meanings of its policies and by plain sums.

    Raises:
        WrongAnswer: it breaks the request.
    """
    ground = replace(built.ground, read_occupants_of=set())
    statuses = verify(replace(built, ground=ground), rows)
    hosts = (built.problem.hosts[row] for row in rows)
    return VerifiedPlacement(
        built=built,
        outcome=outcome,
        hosts=MappingProxyType(dict(zip(built.problem.members, hosts, strict=True))),
        policies=statuses,
        asked=frozenset(built.problem.hosts[row] for row in ground.read_occupants_of),
        places=MappingProxyType(dict(places(built, rows))),
    )
