"""Response bodies about quotas."""

from __future__ import annotations

from msgspec import Struct


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
    """It holds by the service's settings: nothing is said of the project."""


class Quota(Struct, frozen=True):
    """What a project may have, and has."""

    project_id: str
    window: str
    """The sliding window of unit-hours."""
    lease_units: QuotaLimit
    lease_unit_hours: QuotaLimit
    lease_horizon: QuotaLimit
    lease_max_length: QuotaLimit
    leases: QuotaLimit
    held_units: QuotaLimit
    lease_priority: QuotaLimit


class OneQuota(Struct, frozen=True):
    """One project's."""

    quota: Quota


class Quotas(Struct, frozen=True):
    """The caller's own, or every project's of which something is said."""

    quotas: list[Quota]
