"""Response bodies about series; `series.py` makes them."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from moorage.api.native.answers import Link


class Occurrence(Struct, frozen=True):
    """One lease of a series, in brief."""

    index: int
    """From 1, by the dates of the calendar."""
    lease_id: str | None
    """Null in a dry run."""
    handle: str
    """`L3`: what its project calls the lease; nothing in a dry run."""
    name: str
    status: str
    start: str
    end: str
    degraded: bool = False


class LeftOut(Struct, frozen=True):
    """An occurrence that could not be granted, where as many as fit were asked for."""

    index: int
    start: str
    end: str
    why: str
    explanation_id: str | None
    """See `/v1/explanations/{id}`; null for none."""


class Series(Struct, frozen=True):
    """What the leases of a series have in common, and how they are."""

    id: str
    name: str
    project_id: str
    user_id: str
    status: str
    """`pending`, `active` or `closed`, which all of its leases then are."""
    generation: int
    every: str
    start: str
    """The first, by the clock on the wall of `zone`."""
    zone: str
    duration: str
    times: int
    """How many occurrences were asked for, granted or not."""
    granted: int
    closed: int
    """Of those: how many are closed."""
    places: int
    """Of each occurrence."""
    lead: str
    cleaning: str
    expiry: str | None
    priority: int
    before_start: list[str]
    on_start: list[str]
    before_end: list[str]
    on_end: list[str]
    left_out: list[LeftOut]
    created_at: str
    updated_at: str
    links: list[Link]
    occurrences: list[Occurrence] | UnsetType = UNSET
    """Absent in listings."""


class OneSeries(Struct, frozen=True):
    """One series with its leases, or what a dry run looked at."""

    series: Series
    dry_run: bool = False
    computed_at: str | UnsetType = UNSET
    revision: int | UnsetType = UNSET


class SeveralSeries(Struct, frozen=True):
    """A page of series, oldest first."""

    series: list[Series]
    series_links: list[Link]
    computed_at: str


class Cancelled(Struct, frozen=True):
    """Which leases of a series were cancelled, or in a dry run would be."""

    cancelled: list[Occurrence]
    dry_run: bool = False
