"""Resolves a request's policies, those that apply in its phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.policies.ban import Ban
from moorage.policies.fence import Fence
from moorage.policies.rules import rules_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.domain.requests import EnsembleRequest
    from moorage.domain.topology import Topology
    from moorage.policies.rules import PolicyRule


def fence_rules(found: Iterable[PolicyRule]) -> tuple[PolicyRule, ...]:
    """The required fences and bans, which alone decide on which hosts members may be."""
    return tuple(
        rule for rule in found if rule.statement.required and isinstance(rule.policy, Fence | Ban)
    )


def resolve_policies(request: EnsembleRequest, topology: Topology) -> tuple[PolicyRule, ...]:
    """Resolve the policies that apply in the request's phases.

    Raises:
        UnknownPolicy, InvalidDescription, UnknownName: see `policies.parse` and `Policy.check`.
    """
    applied = [one for one in request.policies if not request.phases.isdisjoint(one.phases)]
    found = rules_of(request.roles, request.members, applied, request.absent)
    for rule in found:
        rule.policy.check(topology)
    return found
