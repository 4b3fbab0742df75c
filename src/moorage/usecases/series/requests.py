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
    """How far a calendar is used; exactly one of the fields is set."""

    times: int | None = None
    """The number of occurrences."""
    until: date | None = None
    """The last local date, in the series' zone, on which an occurrence may start."""


@dataclass(frozen=True, slots=True)
class SeriesRequest:
    """A request for a series of leases, each of an ensemble with this description."""

    name: str
    description: EnsembleDescription
    every: RecurrenceRule
    duration: Duration
    extent: Extent
    start: datetime | None = None
    """The first start as local time in `zone`, or as an instant if it has a zone of its own; None:
    now."""
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
    """The time limit of each occurrence's search."""
    as_many_as_fit: bool = False
    any_priority: bool = False
    """See `LeaseRequest.any_priority`."""


@dataclass(frozen=True, slots=True)
class Extension:
    """A request for occurrences after the last one of a series."""

    extent: Extent
    as_many_as_fit: bool = False
    any_priority: bool = False
    """See `LeaseRequest.any_priority`."""


@dataclass(frozen=True, slots=True)
class OccurrencesRequest:
    """Occurrences of a series to grant, and how."""

    series: Series
    """The series as stored, or as it will be without these occurrences."""
    slots: Sequence[Slot]
    """The occurrences; at least one."""
    within: QuotaDefaults
    """The default quota limits of its leases."""
    generation: int | None = None
    """The stored generation of the series; None for a new series."""
    as_many_as_fit: bool = False


@dataclass(frozen=True, slots=True)
class OccurrenceRefusal:
    """An occurrence that cannot be granted."""

    slot: Slot
    why: str
    """The reason, in a sentence."""
    explanation: Explanation | None = None
    stored: bool = False
    """Whether the explanation is stored and can be read by its id."""


@dataclass(frozen=True, slots=True)
class SeriesAlternative:
    """A changed series of which all occurrences fit, as shown by solving it."""

    fits: int
    """The number of occurrences it has."""
    without: tuple[int, ...] = ()
    """The numbers of the occurrences left out."""
    start: datetime | None = None
    """The first start, as local time in the series' zone; None if it is unchanged."""


@dataclass(frozen=True, slots=True)
class SeriesResult:
    """A series with its leases; or if nothing was written, with those that would be granted."""

    series: Series
    leases: tuple[Lease, ...]
    snapshot: Snapshot
