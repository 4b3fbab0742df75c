"""Requests and results of series."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.leases import Yielding
from moorage.domain.requests import Objective

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date, datetime

    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.explain import Explanation
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration
    from moorage.domain.quotas import QuotaDefaults
    from moorage.domain.recurrence import RecurrenceRule
    from moorage.domain.series import Series, Slot
    from moorage.engine.state.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a calendar is used; exactly one of the two."""

    times: int | None = None
    """So many occurrences."""
    until: date | None = None
    """The last date, by the zone's calendar, on which one may start."""


@dataclass(frozen=True, slots=True)
class SeriesRequest:
    """A series as asked for; each of its leases is of an ensemble that is described."""

    name: str
    description: EnsembleDescription
    every: RecurrenceRule
    duration: Duration
    extent: Extent
    start: datetime | None = None
    """By the clock on the wall of the zone; with a zone of its own, an instant; None: now."""
    zone: str = "UTC"
    lead: Duration = 0
    cleaning: Duration = 0
    expiry: Duration | None = None
    priority: int = 0
    before_start: frozenset[Yielding] = frozenset(Yielding)
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    objective: Objective = Objective.SPREAD
    seed: int = 0
    time_limit: Duration | None = None
    """For the search of each occurrence."""
    as_many_as_fit: bool = False
    any_priority: bool = False
    """See `LeaseRequest.any_priority`."""


@dataclass(frozen=True, slots=True)
class Extension:
    """More occurrences at the end."""

    extent: Extent
    as_many_as_fit: bool = False
    any_priority: bool = False
    """See `LeaseRequest.any_priority`."""


@dataclass(frozen=True, slots=True)
class OccurrencesRequest:
    """Occurrences of a series that are to be granted, and how."""

    series: Series
    """As it is, or will be, but for what is granted now."""
    slots: Sequence[Slot]
    """At least one."""
    within: QuotaDefaults
    """The default quota limits of its leases."""
    generation: int | None = None
    """The stored one; None: the series is new."""
    as_many_as_fit: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class OccurrenceRefusal:
    """An occurrence that cannot be granted."""

    slot: Slot
    why: str
    """In a sentence."""
    explanation: Explanation | None = None
    stored: bool = False
    """Whether that can be read again by its id."""


@dataclass(frozen=True, slots=True)
class SeriesAlternative:
    """A change of the series after which what is left of it fits; each was solved."""

    fits: int
    """How many occurrences there would be."""
    without: tuple[int, ...] = ()
    """These are left out."""
    start: datetime | None = None
    """The first is then, by the clock on the wall of the zone."""


@dataclass(frozen=True, slots=True)
class SeriesResult:
    """A series with its leases; with `dry_run` nothing was written."""

    series: Series
    leases: tuple[Lease, ...]
    snapshot: Snapshot
    dry_run: bool = False
