"""Series: recurring leases of one description (ADR-0013).

Each occurrence is a lease like any other, with an ensemble of its own; a series says what they have
in common, and how far its calendar has been used. Occurrences are counted from 1 by their dates:
one that was left out, or cancelled, keeps its number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from moorage.domain.ensembles import Ensemble
from moorage.domain.leases import LeaseState, Terms
from moorage.domain.period import Duration, Instant, Period
from moorage.domain.recurrence import Recurrence
from moorage.domain.requests import Objective


class SeriesState(StrEnum):
    """The state of a series, which follows from its leases and is not stored."""

    PENDING = "pending"
    """The start of its first occurrence lies ahead."""
    ACTIVE = "active"
    """The first occurrence has started, and some leases are not closed."""
    CLOSED = "closed"
    """All are closed."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One occurrence of a calendar: its number and its period."""

    index: int
    """From 1."""
    period: Period
    """The tenant's: without lead and cleaning."""


@dataclass(frozen=True, slots=True)
class SkippedOccurrence:
    """An occurrence that was not granted, where as many as possible were requested."""

    index: int
    start: Instant
    end: Instant
    why: str
    """In a sentence."""
    explanation: str | None = None
    """The id of the stored explanation, if there is one."""


@dataclass(frozen=True, slots=True)
class Series:
    """The common terms of a series' leases."""

    id: str
    project_id: str
    user_id: str
    name: str
    recurrence: Recurrence
    terms: Terms
    """Of the first occurrence; the others have the same, at their dates."""
    model: Ensemble
    """What each occurrence is of; nothing is stored under its own id."""
    reach: int
    """How many occurrences of the calendar have been asked for, granted or not."""
    left_out: tuple[SkippedOccurrence, ...] = ()
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    objective: Objective = Objective.SPREAD
    seed: int = 0
    time_limit: Duration | None = None
    digest: str = ""
    """Fingerprint of the request that made it."""
    generation: int = 0
    created_at: Instant = 0
    updated_at: Instant = 0

    def called(self, index: int) -> str:
        """The default name of an occurrence."""
        return f"{self.name}-{index}"


def state_of(series: Series, states: Collection[LeaseState], now: Instant) -> SeriesState:
    """The state at `now` of a series whose leases are in these."""
    if all(one is LeaseState.CLOSED for one in states):
        return SeriesState.CLOSED
    return SeriesState.PENDING if now < series.terms.period.start else SeriesState.ACTIVE
