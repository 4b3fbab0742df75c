"""Quotas: what a project may lease, hold and store."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.wire.fields import Duration, Length, Link

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
    """Limits of a project. Absent ones stay, null resets one to its default."""

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
    ensembles: Most = UNSET
    """Ensembles, without those of leases and offers."""
    templates: Most = UNSET
    """Versions of templates."""
    series: Most = UNSET
    """Series with a lease that has not ended."""
    offers: Most = UNSET
    """Offers held at once."""
    waitlist_entries: Most = UNSET
    """Leases that wait."""
    subscriptions: Most = UNSET
    """Subscriptions to events."""
    shares_given: Most = UNSET
    """Roles of its ensembles that it has offered to other projects."""
    shares_received: Most = UNSET
    """Roles that other projects offer to it, neither accepted nor revoked."""


class QuotaChange(Struct, frozen=True, forbid_unknown_fields=True):
    """PATCH /v1/quotas/{project_id}."""

    quota: QuotaBody


class QuotaLimit(Struct, frozen=True):
    """One limit of a project."""

    limit: int | str | None
    """A count, or a duration in ISO 8601; null: unlimited."""
    used: int | None
    """Of what adds up: the highest from now on; null of durations."""
    left: int | None
    over: bool
    """More is used than may be: that blocks what is new, and takes nothing away."""
    default: bool
    """Whether it is the default of the service's settings, not the project's own."""


class Quota(Struct, frozen=True):
    """A project's quota and its use."""

    project_id: str
    window: Length
    """The sliding window of unit-hours."""
    lease_units: QuotaLimit
    lease_unit_hours: QuotaLimit
    lease_horizon: QuotaLimit
    lease_max_length: QuotaLimit
    leases: QuotaLimit
    held_units: QuotaLimit
    lease_priority: QuotaLimit
    ensembles: QuotaLimit
    templates: QuotaLimit
    series: QuotaLimit
    offers: QuotaLimit
    waitlist_entries: QuotaLimit
    subscriptions: QuotaLimit
    shares_given: QuotaLimit
    shares_received: QuotaLimit


class OneQuota(Struct, frozen=True):
    """One project's."""

    quota: Quota


class Quotas(Struct, frozen=True):
    """The caller's own quota, or a page of the quotas set for projects."""

    quotas: list[Quota]
    quotas_links: list[Link]
