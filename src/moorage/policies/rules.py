"""The policies of a description, parsed, with the members that they select."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.ensembles import MemberSelection
from moorage.policies.registry import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moorage.domain.ensembles import MemberName, PolicyStatement, Role
    from moorage.policies.contract import Edge, Policy


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy of a description."""

    statement: PolicyStatement
    policy: Policy
    edges: tuple[Edge, ...]


def rules_of(
    roles: Iterable[Role], members: Iterable[MemberName], statements: Iterable[PolicyStatement]
) -> list[Rule]:
    """Parse statements and resolve their selectors.

    Raises:
        UnknownPolicy, InvalidDescription: a policy is of an unknown type or invalid.
    """
    selection = MemberSelection(roles, members)
    return [Rule(one, parse(one), selection.edges(one)) for one in statements]
