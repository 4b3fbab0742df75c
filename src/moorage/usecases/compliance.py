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
    from moorage.domain.period import Instant
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.standing import Standing


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

    Others count who are there while members are: of a lease that has not started, those who stay
    into its period. Judged are the policies that go on to hold once members stand.

    Raises:
        InvalidDescription: a member stands on no host.
    """
    stand = standing(snapshot, ensemble)
    request = request_for(
        ensemble, stand, frozenset(), _presence(stand, snapshot.taken_at), Objective.SPREAD
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


def _presence(stand: Standing, now: Instant) -> Period:
    """From when until when some member has its place."""
    every = [one for some in stand.bookings.values() for one in some]
    start = min((one.period.start for one in every), default=now)
    end = max((one.occupies_until(now) for one in every), default=FOREVER)
    return Period(max(start, now), end)
