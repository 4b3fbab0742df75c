"""The policies of a description, parsed, with the members that they select."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.ensembles import MemberSelection
from moorage.policies.registry import parse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from moorage.domain.ensembles import PolicyStatement, Role
    from moorage.domain.member_names import MemberName
    from moorage.domain.placement import PolicyView
    from moorage.policies.contract import Edge, Policy
    from moorage.policies.primitives import Primitive


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A policy of a description: the statement, the parsed policy and the edges it applies to."""

    statement: PolicyStatement
    policy: Policy
    edges: tuple[Edge, ...]

    def post(self, policy_view: PolicyView) -> Iterator[Primitive]:
        """The primitives that the policy posts for all edges."""
        name, weight = self.statement.name, self.statement.weight
        for edge in self.edges:
            yield from self.policy.post(edge, policy_view, name=name, weight=weight)


def rules_of(
    roles: Iterable[Role],
    members: Iterable[MemberName],
    statements: Iterable[PolicyStatement],
    absent: Collection[MemberName] = (),
) -> tuple[PolicyRule, ...]:
    """Parse statements and resolve their selectors.

    `absent` are further members, about which nothing is asked; a zip pairs them with others.

    Raises:
        UnknownPolicy, InvalidDescription: a policy is of an unknown type or invalid.
    """
    present = frozenset(members)
    selection = MemberSelection(roles, (*present, *absent))
    found = ((one, selection.edges(one)) for one in statements)
    if absent:
        found = ((one, edges_among(one, edges, present)) for one, edges in found)
    return tuple(PolicyRule(one, parse(one), edges) for one, edges in found)


def edges_among(
    statement: PolicyStatement,
    every: Iterable[Edge],
    members: Collection[MemberName],
) -> tuple[Edge, ...]:
    """What is left of a statement's edges among some members; of a zip only whole edges."""
    cut = ((edge, tuple(one for one in edge if one in members)) for edge in every)
    return tuple(some for edge, some in cut if some and (some == edge or not statement.zip))
