"""How the members' present places stand to the ensemble's policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.ensembles import Phase
from moorage.domain.period import FOREVER, Period
from moorage.domain.placement import Placement
from moorage.domain.requests import Objective
from moorage.engine.build import build
from moorage.usecases.joint import request_for
from moorage.usecases.standing import standing

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.engine.build import Built
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
    """Every violation by the members that stand somewhere; unplaced ones break nothing."""
    built = present(snapshot, ensemble)
    hosts = {member: built.terrain.row_of[host] for member, host in built.request.fixed.items()}
    placement = Placement(built.ground, hosts)
    return tuple(
        PolicyViolation(
            policy=rule.statement.name,
            required=rule.statement.required,
            members=violation.members,
            text=violation.text,
            amount=violation.amount,
        )
        for rule in built.rules
        if Phase.STEADY in rule.statement.phases
        for edge in rule.edges
        for violation in rule.policy.violations(edge, placement)
    )


def present(snapshot: Snapshot, ensemble: Ensemble) -> Built:
    """The ensemble as it stands, as a problem in which nobody moves."""
    request = request_for(
        ensemble,
        standing(snapshot, ensemble),
        frozenset(),
        Period(snapshot.taken_at, FOREVER),
        Objective.SPREAD,
    )
    return build(request, snapshot)
