"""Policies of an ensemble, and the types there are."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from moorage.wire.compliance import Impact
from moorage.wire.ensembles import Violation
from moorage.wire.fields import Generation, Link


class PolicyPut(Struct, frozen=True, forbid_unknown_fields=True):
    """PUT /v1/ensembles/{id}/policies/{name}."""

    policy: dict[str, Any]
    generation: Generation | None = None


class OnePolicy(Struct, frozen=True):
    """One policy, as written; after a change with its effect on the present members."""

    policy: dict[str, Any]
    violations: list[Violation] | UnsetType = UNSET
    generation: int | UnsetType = UNSET
    dry_run: bool = False
    breaks: Impact | UnsetType = UNSET
    """Of a change: the violations that it begins."""


class Policies(Struct, frozen=True):
    """A page of an ensemble's policies."""

    policies: list[dict[str, Any]]
    policies_links: list[Link]


class PolicyType(Struct, frozen=True):
    """A type of policy: its parameters as JSON schema, and examples."""

    type: str
    summary: str
    description: str
    schema: dict[str, Any]
    examples: list[dict[str, Any]]


class PolicyTypes(Struct, frozen=True):
    """Every policy type known here."""

    policy_types: list[PolicyType]


class OnePolicyType(Struct, frozen=True):
    """One policy type."""

    policy_type: PolicyType
