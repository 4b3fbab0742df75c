"""Requests and results of leases."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.requests import Objective
from moorage.usecases.decide.request import RefusalDetail

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from moorage.domain.decisions import Claim, Decision
    from moorage.domain.describe import EnsembleDescription
    from moorage.domain.describe_members import RoleDescription
    from moorage.domain.ensembles import Ensemble, PolicyStatement
    from moorage.domain.leases import Lease, Terms
    from moorage.domain.period import Duration, Instant
    from moorage.domain.waitlist import WaitlistEntry
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.search_result import DisplacedConsumer
    from moorage.usecases.preemption.preempted_leases import PreemptedLease


@dataclass(frozen=True, slots=True)
class ExistingGrant:
    """Reservations and servers of a lease that another service granted and Moorage imports."""

    reservations: Mapping[str, str]
    """Role -> id of its reservation."""
    servers: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Role -> UUIDs of servers that have places of the reservation already."""


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A request for a lease of a stored ensemble, or of a described one."""

    name: str
    terms: Terms
    ensemble_id: str | None = None
    description: EnsembleDescription | None = None
    """Exactly one of `ensemble_id` and `description` is given."""
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    annotations: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """Annotations to store with the lease; see `Lease.annotations`."""
    existing_grant: ExistingGrant | None = None
    entry: WaitlistEntry | None = None
    """The waitlist entry that is being tried; its ensemble is used then."""
    refusal: RefusalDetail = RefusalDetail.FULL
    objective: Objective = Objective.SPREAD
    seed: int = 0
    time_limit: Duration | None = None
    compiled: frozenset[str] = frozenset()
    """Names of policies that the service itself added to the description. They may name hosts,
    which a caller's own policies may not."""
    any_priority: bool = False
    """Whether the caller may request a priority above the project's quota."""


@dataclass(frozen=True, slots=True)
class RestatedMembers:
    """New descriptions of some roles of a lease, and the policies that replace all of its own.

    The service made them from a tenant's words, as those of `LeaseRequest.compiled`.
    """

    roles: tuple[RoleDescription, ...]
    policies: tuple[PolicyStatement, ...]


@dataclass(frozen=True, slots=True)
class LeaseChange:
    """Changes of a lease; fields that are None stay as they are."""

    name: str | None = None
    start: Instant | None = None
    end: Instant | None = None
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Role -> its members after the change; other roles keep their members."""
    restated: RestatedMembers | None = None
    annotations: Mapping[str, object] | None = None
    """Annotations that replace the lease's; see `Lease.annotations`."""
    refusal: RefusalDetail = RefusalDetail.FULL


@dataclass(frozen=True, slots=True)
class LeaseResult:
    """A lease with its placement."""

    lease: Lease
    decision: Decision
    ensemble: Ensemble
    snapshot: Snapshot
    displaced: tuple[DisplacedConsumer, ...] = ()
    preempted: tuple[PreemptedLease, ...] = ()
    """Leases that are preempted for this one."""
    claims: Sequence[Claim] = ()
    """The claims of the decision; none if the decision is new."""
