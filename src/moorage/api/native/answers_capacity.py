"""Response bodies about capacity: exact for who meets `moorage:capacity:exact`, else rough."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.api.native.answers import Link


class Amounts(Struct, frozen=True):
    """Units of one resource class from an instant until the next; with `step`, the worst of it."""

    at: str
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
    total: Annotated[int | UnsetType, Meta(description="To be had if nothing was booked")] = UNSET
    away: Annotated[
        int | UnsetType, Meta(description="What hosts have that are to be away; not in the total")
    ] = UNSET
    reserved: Annotated[
        int | UnsetType,
        Meta(description="Of the total, booked for who is not there: holds, leases not used"),
    ] = UNSET
    allocated: Annotated[
        int | UnsetType,
        Meta(description="Of the total, what servers have, or are being built for"),
    ] = UNSET
    unbacked: Annotated[
        int | UnsetType,
        Meta(description="Booked beyond the total: on hosts that are away, and what is over-full"),
    ] = UNSET


class Count(Struct, frozen=True):
    """How many fit from an instant until the next; with `step`, all through it."""

    at: str
    count: int


class Course(Struct, frozen=True):
    """Some of the hosts: those of one domain, or all that are asked about."""

    domain: str | None
    resources: dict[str, list[Amounts]]
    fit: list[Count] | None
    """Null where no size is asked about."""
    hosts: int | UnsetType = UNSET


class CapacityValue(Struct, frozen=True):
    """Capacity from `start` until `end`, as step functions."""

    start: str
    end: str
    computed_at: str
    revision: int
    step: str | None
    exact: Annotated[bool, Meta(description="Whether numbers are told as they are")]
    parts: list[Course]


class OneCapacity(Struct, frozen=True):
    """Capacity over time."""

    capacity: CapacityValue


class Limit(Struct, frozen=True):
    """What one more would run into: a policy, what a role asks for, or hosts that go.

    With neither policy nor role: hosts are planned to be away then, and one more fits until then.
    """

    needs: str
    policy: str | None = None
    role: str | None = None
    classes: list[str] = []
    facts: dict[str, int] | UnsetType = UNSET
    """The numbers of the fleet it runs into; for operators."""


class Window(Struct, frozen=True):
    """From when to when; a null end: for ever."""

    start: str
    end: str | None


class Fit(Struct, frozen=True):
    """How many more fit."""

    additional: int
    exact: Annotated[bool, Meta(description="If not, at least so many")]
    limited_by: list[Limit]
    quota_allows: int | None
    """How many more the project may have."""
    window: Window
    computed_at: str
    revision: int


class OneFit(Struct, frozen=True):
    """How many more fit."""

    fit: Fit


class FreeWindow(Struct, frozen=True):
    """A stay may begin at any instant from `earliest` to `latest`."""

    earliest: str
    latest: str
    count: int
    """How many fit, whenever it begins."""


class Windows(Struct, frozen=True):
    """When so many fit for so long, the earliest first."""

    windows: list[FreeWindow]
    count: int
    duration: str
    start: str
    end: str
    computed_at: str
    revision: int


class Staying(Struct, frozen=True):
    """Somebody on such a host at some time of the window; nothing ends or moves it."""

    consumer: str
    project_id: str
    host: str
    state: str
    end: str | None


class PlannedWindow(Struct, frozen=True):
    """Hosts that are away from `start` until `end`. `status`: planned, begun or over."""

    id: str
    kind: str
    status: str
    hosts: list[str]
    """Names of those that there are."""
    start: str
    end: str | None
    reason: str
    created_at: str
    links: list[Link]
    staying: list[Staying] | UnsetType = UNSET
    moved_leases: list[str] | UnsetType = UNSET
    """Leases that got other places for it; only when it is made."""


class OnePlanned(Struct, frozen=True):
    """One planned change of capacity."""

    window: PlannedWindow
    dry_run: bool | UnsetType = UNSET


class Planned(Struct, frozen=True):
    """A page of planned changes of capacity, by creation."""

    windows: list[PlannedWindow]
    windows_links: list[Link]
