"""How the members' present places stand to the ensemble's policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.ensembles import Phase
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Placement
from moorage.domain.requests import Objective
from moorage.engine.build import ground_for, row_of_host
from moorage.engine.rules import rules
from moorage.engine.terrain import survey
from moorage.usecases.joint import request_for
from moorage.usecases.standing import standing

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.engine.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """One way in which a policy is broken now."""

    policy: str
    required: bool
    members: tuple[MemberName, ...]
    text: str
    amount: int


def broken_policies(snapshot: Snapshot, ensemble: Ensemble) -> tuple[PolicyViolation, ...]:
    """Every violation by the members that stand somewhere; unplaced ones break nothing.

    Judged are the policies that go on to hold once members stand.

    Raises:
        InvalidDescription: a member stands on no host.
    """
    request = request_for(
        ensemble,
        standing(snapshot, ensemble),
        frozenset(),
        Period(snapshot.taken_at, FOREVER),
        Objective.SPREAD,
    )
    terrain = survey(snapshot, request)
    placement = Placement(
        ground_for(request, terrain),
        {member: row_of_host(request, terrain, member) for member in request.members},
    )
    return tuple(
        PolicyViolation(
            policy=rule.statement.name,
            required=rule.statement.required,
            members=violation.members,
            text=violation.text,
            amount=violation.amount,
        )
        for rule in rules(request, terrain.topology, Phase.STEADY)
        for edge in rule.edges
        for violation in rule.policy.violations(edge, placement)
    )
