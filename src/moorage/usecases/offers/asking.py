"""What is asked of offers, and what the answers carry."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.leases import Yielding
from moorage.domain.requests import Objective

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.errors import QuotaExceeded
    from moorage.domain.leases import Lease
    from moorage.domain.period import Duration, Instant, Period


@dataclass(frozen=True, slots=True)
class OfferAsk:
    """A range of starts, and what shall fit; of an ensemble that is there or is described."""

    name: str
    duration: Duration
    earliest: Instant | None = None
    """The first start; None: now."""
    latest: Instant | None = None
    """The last start; None: as late as a lease may be."""
    lead: Duration = 0
    cleaning: Duration = 0
    hold: Duration | None = None
    """How long each is kept; None: the configured default."""
    most: int = 1
    """How many alternatives at most."""
    ensemble_id: str | None = None
    description: EnsembleDescription | None = None
    """Exactly one of the two."""
    objective: Objective = Objective.SPREAD
    seed: int = 0
    time_limit: Duration | None = None
    """For the search of each; None: the configured default."""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The terms on which an offer becomes a lease; what is not said stays as it was offered."""

    name: str | None = None
    lead: Duration | None = None
    cleaning: Duration | None = None
    expiry: Duration | None = None
    priority: int = 0
    before_start: frozenset[Yielding] = frozenset(Yielding)
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    any_priority: bool = False
    """See `LeaseAsk.any_priority`."""


@dataclass(frozen=True, slots=True)
class Barred:
    """A window in which everything would fit, and the quota that does not allow it."""

    period: Period
    why: QuotaExceeded


@dataclass(frozen=True, slots=True)
class Offered:
    """The offers for a request, the earliest first; with `dry_run` nothing was written."""

    offers: tuple[Lease, ...]
    computed_at: Instant
    revision: int
    dry_run: bool = False
    barred: tuple[Barred, ...] = ()
    """Windows before them, or between them, that quota does not allow."""
