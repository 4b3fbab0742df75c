"""Detects policies that no placement on any fleet can meet together, and raises Contradiction.

The service refuses them when an ensemble is described, and `moorage ensemble check` offline. They
are read from the primitives (`static_check`); what only a search can show to be impossible is for
the decision, which refuses it on the fleet that there is (ADR-0054). The contradiction is made
minimal, and reported with what each policy needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.ensembles import SIDES, Phase
from moorage.domain.errors import Contradiction
from moorage.policies.hypothetical_fleet import HypotheticalFleet
from moorage.policies.rules import rules_of
from moorage.policies.sides import MEMBERS, check_roles
from moorage.policies.static_check import contradictory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.ensembles import PolicyStatement, Role
    from moorage.domain.member_names import MemberName
    from moorage.domain.topology import Topology
    from moorage.policies.rules import PolicyRule


def refuse_contradictions(
    roles: Sequence[Role],
    members: Sequence[MemberName],
    statements: Sequence[PolicyStatement],
    *,
    levels: Mapping[str, tuple[str, ...]] | None = None,
    topology: Topology | None = None,
) -> None:
    """Refuse required policies that contradict each other or are impossible by themselves.

    `levels` are the trees' levels from the top down, if known; otherwise the usual ones are
    assumed, and others cannot be compared. `topology` is that of the fleet, if there is one:
    then names are shown as tenants may see them.

    Raises:
        Contradiction: names a minimal set of policies, with what each needs.
        UnknownPolicy, InvalidDescription: a policy is of an unknown type or invalid.
    """
    names = {role.name for role in roles}
    rules = rules_of(roles, members, statements)
    for rule in rules:
        path = rule.statement.path or f"policies.{rule.statement.name}"
        check_roles(getattr(rule.policy, SIDES, MEMBERS), names, f"{path}.{SIDES}")
    asked = [
        rule for rule in rules if rule.statement.required and Phase.CREATE in rule.statement.phases
    ]

    def contradict(some: Sequence[PolicyRule]) -> bool:
        return contradictory(roles, some, levels=levels)

    if not asked or not contradict(asked):
        return
    for one in tuple(asked):
        others = [other for other in asked if other is not one]
        if others and contradict(others):
            asked = others
    fleet = HypotheticalFleet(levels, real_topology=topology)
    raise Contradiction(
        f"conflict (minimal): {_needs(asked, fleet)}",
        policies=tuple(one.statement.name for one in asked),
    )


def _needs(rules: Sequence[PolicyRule], fleet: HypotheticalFleet) -> str:
    return "  <->  ".join(
        f"{rule.statement.name} needs {rule.policy.requirement(edge, fleet)}"
        for rule in rules
        for edge in rule.edges[:1]
    )
