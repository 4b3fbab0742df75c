"""Request bodies about quotas."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.api.native.requests import Duration

Unlimited: TypeAlias = Literal["unlimited"]
Most: TypeAlias = (
    Annotated[int, Meta(ge=0, le=1_000_000_000, description="`unlimited` for none")]
    | Unlimited
    | UnsetType
    | None
)
Longest: TypeAlias = Duration | UnsetType | None
"""Or `unlimited`, which reads like a duration."""


class QuotaBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What a project may have. What is absent stays, null is given back to its default."""

    lease_units: Most = UNSET
    """Places of its leases at one instant."""
    lease_unit_hours: Most = UNSET
    """Places times hours of all leases that one window touches."""
    lease_horizon: Longest = UNSET
    """How far ahead a lease may end; a duration, or `unlimited`."""
    lease_max_length: Longest = UNSET
    """The longest lease; a duration, or `unlimited`."""
    leases: Most = UNSET
    """Leases that have not ended."""
    held_units: Most = UNSET
    """Places held or claimed at once that are not a lease's."""
    lease_priority: (
        Annotated[int, Meta(ge=0, le=1000, description="`unlimited` for the highest there is")]
        | Unlimited
        | UnsetType
        | None
    ) = UNSET
    """The highest priority of its leases and preemptible ensembles."""


class QuotaChange(Struct, frozen=True, forbid_unknown_fields=True):
    """PATCH /v1/quotas/{project_id}."""

    quota: QuotaBody
