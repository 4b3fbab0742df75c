"""Requests and results of leases."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.requests import Objective

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.leases import Lease, Terms
    from moorage.domain.period import Duration, Instant
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.search_result import DisplacedConsumer
    from moorage.usecases.preemption.preempted_leases import PreemptedLease


@dataclass(frozen=True, slots=True)
class ExistingGrant:
    """Reservations and servers of a lease that another service has granted."""

    reservations: Mapping[str, str]
    """Role -> id of its reservation."""
    servers: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Role -> servers that have places of it already."""


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A lease as asked for, of an ensemble that is there or of one that is described."""

    name: str
    terms: Terms
    ensemble_id: str | None = None
    description: EnsembleDescription | None = None
    """Exactly one of the two."""
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    annotations: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """See `Lease.annotations`."""
    brought: ExistingGrant | None = None
    entry: WaitlistEntry | None = None
    """Given where it comes from the waitlist; then it says which ensemble, too."""
    unasked: bool = False
    """Nobody would read why not: another start is tried then."""
    unexplained: bool = False
    """Only whether it fits is wanted: a refusal has no reasons, and leaves nothing."""
    objective: Objective = Objective.SPREAD
    seed: int = 0
    time_limit: Duration | None = None
    compiled: frozenset[str] = frozenset()
    """Policies of the description that the service has made of what was asked: they name hosts,
    which who asks may not name."""
    any_priority: bool = False
    """Whether who asks may ask for more than the project's quota allows."""


@dataclass(frozen=True, slots=True)
class LeaseChange:
    """What changes of a lease; None stays as it is."""

    name: str | None = None
    start: Instant | None = None
    end: Instant | None = None
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Role -> how many members it has afterwards; roles that are not named stay."""


@dataclass(frozen=True, slots=True)
class LeaseResult:
    """A lease with its placement; with `dry_run` nothing was written."""

    lease: Lease
    decision: Decision
    ensemble: Ensemble
    snapshot: Snapshot
    displaced: tuple[DisplacedConsumer, ...] = ()
    preempted: tuple[PreemptedLease, ...] = ()
    """Leases that give up their places for it."""
    claims: Sequence[Claim] = ()
    """Those of the decision: none where it is new, or nothing was written."""
    dry_run: bool = False
