"""Resolves a request's policies: each statement with its parsed policy and its edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.ensembles import MemberSelection
from moorage.policies import parse
from moorage.policies.ban import Ban
from moorage.policies.fence import Fence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from moorage.domain.ensembles import PolicyStatement
    from moorage.domain.placement import PolicyView
    from moorage.domain.requests import EnsembleRequest
    from moorage.domain.topology import Topology
    from moorage.policies.contract import Edge, Policy
    from moorage.policies.primitives import Primitive


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One policy of a request: the statement, the parsed policy, and the edges it applies to."""

    statement: PolicyStatement
    policy: Policy
    edges: tuple[Edge, ...]

    def post(self, policy_view: PolicyView) -> Iterator[Primitive]:
        """The primitives that the policy posts for all edges."""
        for edge in self.edges:
            yield from self.policy.post(
                edge, policy_view, name=self.statement.name, weight=self.statement.weight
            )


def fence_rules(found: Iterable[PolicyRule]) -> tuple[PolicyRule, ...]:
    """The required fences and bans, which alone decide on which hosts members may be."""
    return tuple(
        rule for rule in found if rule.statement.required and isinstance(rule.policy, Fence | Ban)
    )


def resolve_policies(request: EnsembleRequest, topology: Topology) -> tuple[PolicyRule, ...]:
    """Resolve the policies that apply in the request's phases; empty edges are left out.

    Raises:
        UnknownPolicy, InvalidDescription, UnknownName: see `policies.parse` and `Policy.check`.
    """
    selection = MemberSelection(request.roles, request.members)
    found = []
    for statement in request.policies:
        if request.phases.isdisjoint(statement.phases):
            continue
        policy = parse(statement)
        policy.check(topology)
        found.append(PolicyRule(statement, policy, selection.edges(statement)))
    return tuple(found)
