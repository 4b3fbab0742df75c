"""Request bodies about series. Types and bounds are here; meaning is judged below."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

from moorage.api.native.requests import Duration, Generation, Name, Uuid
from moorage.api.native.requests_leases import Actions, AmountBody, Before, LeasedBody
from moorage.api.native.requests_templates import ChosenTemplate

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


class SeriesBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What recurs, when, how often, and on which terms; the terms are each lease's.

    Exactly one of `ensemble`, `template` and `amount` says what, exactly one of `times` and
    `until_date` how often.
    """

    name: Name
    every: Every
    duration: Duration
    """Of each occurrence, from its start on: in time that passes, whatever clocks do."""
    id: Uuid | None = None
    """The same request under the same id gets the series it got before."""
    ensemble: LeasedBody | None = None
    template: ChosenTemplate | None = None
    amount: AmountBody | None = None
    start: Wall | None = None
    zone: Annotated[str, Meta(max_length=64)] = "UTC"
    """By its name in the IANA database, such as `Europe/Berlin`."""
    times: Times | None = None
    until_date: Date | None = None
    as_many_as_fit: bool = False
    """Grant what fits, and say what does not, instead of refusing all where some does not."""
    lead: Duration | None = None
    cleaning: Duration | None = None
    expiry: Duration | None = None
    priority: Annotated[int, Meta(ge=0, le=1000)] = 0
    before_start: Before | None = None
    on_start: Actions = []
    before_end: Actions = []
    on_end: Actions = []
    objective: Literal["spread", "pack", "balance"] = "spread"
    seed: Annotated[int, Meta(ge=0, le=2**31 - 1)] = 0
    time_limit: Duration | None = None
    """For the search of each occurrence."""


class SeriesCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/series."""

    series: SeriesBody


class SeriesChangeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What a series is called; its leases are called so with their numbers."""

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
