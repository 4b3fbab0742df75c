"""The timeline: bars in rows and lanes, as columns."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct, field

from moorage.wire.fields import At, Link

Kind: TypeAlias = Literal["lease", "offer", "waiting", "absence"]
Second: TypeAlias = Annotated[int, Meta(description="Seconds since 1970-01-01T00:00:00Z")]


class TimelineRows(Struct, frozen=True):
    """The rows, from the top down, as columns."""

    id: list[str]
    """Of the lease, offer, waitlist entry or capacity window; project; rack; or host's UUID."""
    label: list[str]
    lanes: list[int]
    """How many bars lie one below the other in it."""


class TimelineBars(Struct, frozen=True):
    """The bars by row, then by start, as columns."""

    row: list[int]
    """Index of its row."""
    lane: list[int]
    """From 0."""
    kind: list[Kind]
    id: list[str]
    label: list[str]
    start: list[Second]
    end: list[Second | None]
    """Null: it has none."""
    lead: list[int]
    """Seconds before the start in which its places are kept free already."""
    cleaning: list[int]
    """Seconds after the end in which its places are kept free still."""
    state: list[str]
    """A lease's status; of an offer `offered`; of an absence `planned`, `begun` or `over`; of what
    waits `proved` or `estimated` if it has a window, else `waiting`: somewhere in the period."""
    project: list[str | None]
    series: list[str | None]


class TimelineValue(Struct, frozen=True):
    """Rows and bars of a period."""

    start: At = field(name="from")
    end: At = field(name="to")
    rows_by: Literal["lease", "project", "rack", "host"]
    rows: TimelineRows
    bars: TimelineBars


class OneTimeline(Struct, frozen=True):
    """GET /v1/timeline."""

    timeline: TimelineValue
    timeline_links: list[Link]
    revision: int
    computed_at: At
