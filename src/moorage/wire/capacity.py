"""Capacity over time, how many more fit, free windows and planned absences of hosts."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.wire.compliance import Impact
from moorage.wire.fields import (
    FOR_OPERATORS,
    At,
    Duration,
    IdempotencyKey,
    Instant,
    Length,
    Link,
    Name,
    Uuid,
)
from moorage.wire.templates import ChosenTemplate


class WindowBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A period; null: from now, and without an end."""

    start: Instant | None = None
    end: Instant | None = None


class FitBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to fit: members of an ensemble, or the servers of a template or a flavor."""

    ensemble_id: Uuid | None = None
    role: Annotated[
        Name | None, Meta(description="Of the ensemble; null: whole ensembles like it")
    ] = None
    template: ChosenTemplate | None = None
    flavor: Annotated[Name | None, Meta(description="Its id or name")] = None
    window: Annotated[
        WindowBody | None,
        Meta(description="Null: now, for as long as the ensemble stays"),
    ] = None
    time_limit: Duration | None = None


class FitCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/capacity/fit."""

    fit: FitBody


class PlannedBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A plan that hosts are unavailable.

    `maintenance` from `start` to `end`, `decommission` from `start` on, `delivery` until `end`.
    """

    kind: Literal["maintenance", "decommission", "delivery"]
    hosts: Annotated[list[Name], Meta(max_length=5_000, description="Names or UUIDs")] = []
    domains: Annotated[list[Name], Meta(max_length=256, description="All hosts of these")] = []
    start: Annotated[Instant | None, Meta(description="Null: now")] = None
    end: Instant | None = None
    reason: Annotated[str, Meta(max_length=255)] = ""
    id: IdempotencyKey | None = None


class PlannedCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/capacity/planned."""

    window: PlannedBody


class Amounts(Struct, frozen=True):
    """Units of one resource class from an instant until the next; the lowest of a `step`."""

    at: At
    available: Annotated[
        int, Meta(description="What is left; to tenants as the largest bucket that it reaches")
    ]
    busy: Annotated[
        float,
        Meta(
            description="The part that cannot be had of what is there; 1 where nothing is. To"
            " tenants in eighths, rounded up"
        ),
    ]
    total: Annotated[
        int | UnsetType, Meta(description="To be had if nothing was booked"), FOR_OPERATORS
    ] = UNSET
    away: Annotated[
        int | UnsetType,
        Meta(description="What hosts have that are to be away; not in the total"),
        FOR_OPERATORS,
    ] = UNSET
    reserved: Annotated[
        int | UnsetType,
        Meta(description="Of the total, booked for who is not there: holds, leases not used"),
        FOR_OPERATORS,
    ] = UNSET
    allocated: Annotated[
        int | UnsetType,
        Meta(description="Of the total, what servers have, or are being built for"),
        FOR_OPERATORS,
    ] = UNSET
    unbacked: Annotated[
        int | UnsetType,
        Meta(description="Booked beyond the total: on hosts that are away, and what is over-full"),
        FOR_OPERATORS,
    ] = UNSET


class Count(Struct, frozen=True):
    """How many fit from an instant until the next; throughout a `step`."""

    at: At
    count: int


class Course(Struct, frozen=True):
    """The hosts of one domain, or all hosts in question, over time."""

    domain: str | None
    resources: dict[str, list[Amounts]]
    fit: list[Count] | None
    """Null where no size is asked about, and with `shared_by`."""
    hosts: Annotated[int | UnsetType, FOR_OPERATORS] = UNSET
    shared_by: list[str] | UnsetType = UNSET
    """Of pools (sharing providers) whose capacity hosts of several domains use: these domains. It
    counts in none of them. Absent of hosts."""


class CapacityValue(Struct, frozen=True):
    """Capacity from `start` until `end`, as step functions."""

    start: At
    end: At
    computed_at: At
    revision: int
    step: Length | None
    exact: Annotated[bool, Meta(description="Whether numbers are told as they are")]
    parts: list[Course]


class OneCapacity(Struct, frozen=True):
    """Capacity over time."""

    capacity: CapacityValue


class Limit(Struct, frozen=True):
    """What limits further members: a policy, a role's requirements, or hosts that go.

    With neither policy nor role: hosts are planned to be away then, and one more fits until then.
    """

    needs: str
    policy: str | None = None
    role: str | None = None
    classes: list[str] = []
    facts: Annotated[dict[str, int] | UnsetType, FOR_OPERATORS] = UNSET
    """The numbers of the fleet it runs into; for operators."""


class Window(Struct, frozen=True):
    """A period; a null end means that it never ends."""

    start: At
    end: At | None


class Fit(Struct, frozen=True):
    """How many more fit."""

    additional: int
    exact: Annotated[bool, Meta(description="If not, at least so many")]
    step: Annotated[int, Meta(description="By how many at a time they can be added")]
    limited_by: list[Limit]
    quota_allows: int | None
    """How many more the project may have; null: without limit, or of a role of another project,
    whose quota is not told."""
    window: Window
    computed_at: At
    revision: int


class OneFit(Struct, frozen=True):
    """How many more fit."""

    fit: Fit


class FreeWindow(Struct, frozen=True):
    """A stay may begin at any instant from `earliest` to `latest`."""

    earliest: At
    latest: At
    count: int
    """How many fit, whenever it begins."""


class Windows(Struct, frozen=True):
    """Windows in which so many fit for so long, the earliest first."""

    windows: list[FreeWindow]
    count: int
    duration: Length
    start: At
    end: At
    computed_at: At
    revision: int


class Staying(Struct, frozen=True):
    """A booking on such a host in the window that neither ends nor is moved before it."""

    consumer: str
    project_id: str
    host: str
    state: str
    end: At | None


class PlannedWindow(Struct, frozen=True):
    """Hosts that are unavailable from `start` until `end`. `status`: planned, begun or over."""

    id: str
    kind: str
    status: str
    hosts: list[str]
    """Names of those that there are."""
    start: At
    end: At | None
    reason: str
    created_at: At
    links: list[Link]
    staying: list[Staying] | UnsetType = UNSET
    moved_leases: list[str] | UnsetType = UNSET
    """Leases that got other places for it; only when it is made."""


class OnePlanned(Struct, frozen=True):
    """One planned change of capacity."""

    window: PlannedWindow
    dry_run: bool | UnsetType = UNSET
    breaks: Impact | UnsetType = UNSET
    """What begins to be violated with it, where servers stay; only when it is made."""


class Planned(Struct, frozen=True):
    """A page of planned changes of capacity, by creation."""

    windows: list[PlannedWindow]
    windows_links: list[Link]
