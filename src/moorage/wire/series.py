"""Series: leases that recur."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from moorage.wire.fields import At, Duration, Generation, IdempotencyKey, Length, Link, Name
from moorage.wire.leases import LeaseTerms

Wall: TypeAlias = Annotated[
    str,
    Meta(
        max_length=40,
        description="`2026-12-07T08:00` by the clock on the wall of `zone`, or with an offset an"
        " instant; null means now",
    ),
]
Every: TypeAlias = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        description="`daily`, `weekdays`, `weekends`, `weekly`, `monthly`, days of the week such as"
        " `mon,wed`, or a number of days, weeks or months such as `2 weeks`",
    ),
]
Times: TypeAlias = Annotated[int, Meta(ge=1, le=1000, description="How many occurrences")]
Date: TypeAlias = Annotated[
    str, Meta(max_length=10, description="The last date on which one may start: `2026-12-24`")
]


class SeriesBody(LeaseTerms, frozen=True, forbid_unknown_fields=True):
    """The ensemble, recurrence and terms of a series; the terms are each lease's.

    Exactly one of `ensemble`, `template` and `amount` says what, exactly one of `times` and
    `until_date` how often.
    """

    name: Name
    every: Every
    duration: Duration
    """Of each occurrence, from its start on: in time that passes, whatever clocks do."""
    id: IdempotencyKey | None = None
    """The same request under the same id gets the series it got before."""
    start: Wall | None = None
    zone: Annotated[str, Meta(max_length=64)] = "UTC"
    """By its name in the IANA database, such as `Europe/Berlin`."""
    times: Times | None = None
    until_date: Date | None = None
    as_many_as_fit: bool = False
    """Grant what fits, and say what does not, instead of refusing all where some does not."""


class SeriesCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/series."""

    series: SeriesBody


class SeriesChangeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The new name of a series; its leases are renamed with their numbers."""

    name: Name
    generation: Generation | None = None


class SeriesChange(Struct, frozen=True, forbid_unknown_fields=True):
    """PATCH /v1/series/{id}."""

    series: SeriesChangeBody


class ExtensionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """More occurrences after the last: exactly one of `times` and `until_date` says how many."""

    times: Times | None = None
    until_date: Date | None = None
    as_many_as_fit: bool = False
    generation: Generation | None = None


class SeriesExtend(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/series/{id}/extend."""

    series: ExtensionBody


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
    start: At
    end: At
    degraded: bool = False


class LeftOut(Struct, frozen=True):
    """An occurrence that was not granted, where as many as fit were requested."""

    index: int
    start: At
    end: At
    why: str
    explanation_id: str | None
    """See `/v1/explanations/{id}`; null for none."""


class Series(Struct, frozen=True):
    """The common terms of a series' leases, and its state."""

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
    duration: Length
    times: int
    """How many occurrences were asked for, granted or not."""
    granted: int
    closed: int
    """Of those: how many are closed."""
    places: int
    """Of each occurrence."""
    lead: Length
    cleaning: Length
    expiry: Length | None
    priority: int
    before_start: list[str]
    on_start: list[str]
    before_end: list[str]
    on_end: list[str]
    left_out: list[LeftOut]
    created_at: At
    updated_at: At
    links: list[Link]
    occurrences: list[Occurrence] | UnsetType = UNSET
    """Absent in listings."""


class OneSeries(Struct, frozen=True):
    """One series with its leases, or what a dry run looked at."""

    series: Series
    dry_run: bool = False
    computed_at: At | UnsetType = UNSET
    revision: int | UnsetType = UNSET


class SeveralSeries(Struct, frozen=True):
    """A page of series, oldest first."""

    series: list[Series]
    series_links: list[Link]
    computed_at: At


class Cancelled(Struct, frozen=True):
    """Which leases of a series were cancelled, or in a dry run would be."""

    cancelled: list[Occurrence]
    dry_run: bool = False
