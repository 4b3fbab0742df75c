"""Limits of requests and stored objects, and their checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from moorage.domain.disclosure import Disclosure
from moorage.domain.ensembles import MAX_MEMBERS, OnViolation
from moorage.domain.errors import LimitExceeded
from moorage.domain.nova.server_request import NovaRules
from moorage.domain.period import DAY, FOREVER, HOUR, MINUTE, SECOND, say_duration
from moorage.domain.plans import PlanLimits
from moorage.domain.quotas import QuotaDefaults
from moorage.domain.requests import Objective

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Duration, Instant


class ShownTo(StrEnum):
    """Who reads something."""

    NOBODY = "nobody"
    OPERATORS = "operators"
    EVERYONE = "everyone"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of the use cases, set from the service's settings."""

    default_hold: Duration = 10 * MINUTE
    longest_hold: Duration = 4 * HOUR
    renewals: int = 10
    """How often one decision's hold may be renewed."""
    claim_lifetime: Duration = 1 * HOUR
    """How long a claim keeps its place while its server is built."""
    longest_claim: Duration = 1 * DAY
    held_members: int = 10_000
    """Places that a project may hold or claim at once, over all its ensembles."""
    members: int = MAX_MEMBERS
    """Members of one ensemble."""
    time_limit: Duration = 5 * SECOND
    """Default time limit of a decision; a request may set another, up to `longest_time_limit`."""
    longest_time_limit: Duration = 60 * SECOND
    objective: Objective = Objective.SPREAD
    """The objective of requests that name none."""
    explanation_budget: Duration = 5 * SECOND
    """Time limit of the explanation of a refusal, of a request with the default time limit."""
    explanations: int = 1_000
    """How many explanations of one project are kept, the newest."""
    additional: int = 1_000
    """Where counting `max_additional` stops; a count that reaches it means "at least"."""
    tenant_additional: int = 10
    """The largest `max_additional` shown to a tenant, as totals of the cloud are not disclosed."""
    nova: NovaRules = field(default_factory=NovaRules)
    """How this cloud's Nova is configured, as far as requests of flavors differ by it."""
    disclosure: Disclosure = field(default_factory=Disclosure)
    """What of the fleet is disclosed to tenants."""
    attempts: int = 25
    """Most attempts at a request with conflicting commits, within its time limit."""
    expensive: int = 8
    """Expensive requests of one project that one process runs at once; see `Admission`."""
    expensive_in_all: int = 12
    """Expensive requests of all projects that one process runs at once."""
    expensive_at_once: int | None = None
    """Expensive requests of one project worked on at a time while others ask; None: all."""
    waiting: int = 8
    """Requests that wait for events in one process; each occupies a thread."""
    page: int = 1000
    """The longest page of a listing."""
    page_bytes: int = 4 * 1024 * 1024
    """Bytes of objects after which a page of a listing ends."""
    notice: Duration = 5 * MINUTE
    """How long before its early end a preemptible server is warned, and how long that end is before
    the lease needs the place."""
    grace: Duration = 0
    """Time after its end until a server counts as overrun and degrades leases: the notice if the
    service ends servers, else 0."""
    plans: PlanLimits = field(default_factory=PlanLimits)
    """The limits of plans whose requests do not say them."""
    ticket_flavors: bool = False
    """Whether the service creates and deletes ticket flavors in Nova."""
    refuse_spent_claims: bool = False
    """Whether a new server is refused whose request presents a claim that is over."""
    moves_shown_to: ShownTo = ShownTo.OPERATORS
    """Who reads in a refusal that moves of other servers would make room."""
    misplaced_members: OnViolation = OnViolation.REFUSE
    """What becomes of moves by Nova to a host on which the member breaks required policies."""
    foreign_servers: OnViolation = OnViolation.REPORT
    """What becomes of servers that Nova places where the policy `exclusive` of others keeps them
    out."""
    server_provider_grace: Duration = 1 * HOUR
    """How long a server may have no place until what it offers ends."""
    share_offers: int = 60
    """How often a project may offer roles to another one, in an hour."""
    offered_names: int = 100
    """Custom resource classes and traits that the servers of one project may bring in."""
    builds_elsewhere: bool = False
    """Whether a member is placed on another host when its server is deleted while its decision is
    held, as Nova does with a server that it could not build."""
    build_retries: int = 0
    """How many other hosts are candidates of a presented claim, for Nova's retries of a build."""
    preemption_notice: Duration | None = None
    """The latest time before its start at which a lease may be preempted by one of a higher
    priority; None: never."""
    longest_lease: Duration = 365 * DAY
    longest_lead: Duration = DAY
    longest_cleaning: Duration = DAY
    """Lead and cleaning are limited because quotas do not count them."""
    horizon: Duration = 1095 * DAY
    """How far ahead of now a lease or a stay may end, unless it is open-ended."""
    reservations: int = 200
    """Roles of one lease."""
    roles: int = 1_000
    """Roles of one ensemble."""
    policies: int = 1_000
    """Policies of one ensemble."""
    description: int = 1_048_576
    """Bytes of one ensemble's stored description without its members, and of one version of a
    template."""
    metadata: int = 16_384
    """Bytes of all keys and values of one ensemble's metadata."""
    occurrences: int = 100
    """Leases of one series, over all its requests together."""
    quotas: QuotaDefaults = field(default_factory=QuotaDefaults)
    """Quotas of projects for which none is set; see also `defaults` in `quotas`."""
    waitlist_time: Duration = 5 * SECOND
    """How long a request waits at most while waitlist entries before it are tried."""
    dead_letters: int = 1_000
    """Dead letters that are kept for one subscription, the newest."""
    public_targets: bool = False
    """Whether deliveries go to public addresses only."""
    events_age: Duration = 30 * DAY
    """How long events are kept at most."""
    events: int = 100_000
    """How many events of each project are kept at most, the newest."""
    records_age: Duration | None = 90 * DAY
    """How long records such as leases, series and waitlist entries are kept after they have ended;
    None: for ever."""
    compliance_settle: Duration = 10 * SECOND
    """How long a host must be in service again until the violations that it began have ended."""
    compliance_sweep: Duration = 1 * HOUR
    """Interval between two judgements of all ensembles, which find what no change has announced."""
    thresholds: Duration = 10 * SECOND
    """Shortest interval between two measurements of subscriptions' thresholds in a worker."""

    def told_additional(self, count: int) -> int:
        """A `max_additional` as shown to a tenant: rounded, and at most `tenant_additional`."""
        return self.disclosure.count(min(count, self.tenant_additional))


def hold_within(limits: Limits, requested: Duration | None) -> Duration:
    """The duration of a hold: the requested one, or the default.

    Raises:
        LimitExceeded: longer than the longest hold, or not positive.
    """
    return _within(("hold", "longest_hold"), requested, limits.default_hold, limits.longest_hold)


def claim_within(limits: Limits, requested: Duration | None) -> Duration:
    """The lifetime of a claim: the requested one, or the default.

    Raises:
        LimitExceeded: longer than the longest claim, or not positive.
    """
    return _within(
        ("lifetime of a claim", "longest_claim"),
        requested,
        limits.claim_lifetime,
        limits.longest_claim,
    )


def time_limit_within(limits: Limits, requested: Duration | None) -> Duration:
    """The time limit of a request: the requested one, or the default.

    Raises:
        LimitExceeded: longer than the longest time limit, or not positive.
    """
    return _within(
        ("time limit", "longest_time_limit"),
        requested,
        limits.time_limit,
        limits.longest_time_limit,
    )


def with_explanation_within(limits: Limits, time_limit: Duration) -> Limits:
    """The limits for the explanation of a request with this time limit, in proportion to it."""
    budget = limits.explanation_budget * time_limit // limits.time_limit
    least = min(limits.explanation_budget, SECOND)
    return replace(limits, explanation_budget=max(budget, least))


def check_stay(limits: Limits, until: Instant, now: Instant) -> None:
    """Check that a stay ends within the horizon; an open-ended one passes.

    Raises:
        LimitExceeded: it ends further ahead than `limits.horizon`.
    """
    distance = until - now
    if until != FOREVER and distance > limits.horizon:
        raise too_long(
            "a stay ends ahead of now",
            "lease_horizon",
            limit=limits.horizon,
            requested=distance,
            unit=DAY,
        )


def check_member_count(limits: Limits, count: int) -> None:
    """Check the number of members of an ensemble.

    Raises:
        LimitExceeded: it is larger than `limits.members`.
    """
    if count > limits.members:
        told = f"members of one ensemble: {limits.members} at most (ensemble_members), not {count}"
        raise LimitExceeded("members", limit=limits.members, requested=count, told=told)


def check_size(limits: Limits, ensemble: Ensemble, before: Ensemble | None = None) -> None:
    """Check that an ensemble is not too large to be stored and listed.

    Sizes that do not grow from `before` on pass even if they exceed a lowered limit.

    Raises:
        LimitExceeded: too many members, roles or policies, or too many bytes of description or
            metadata; the error names the limit.
    """
    was = (0,) * len(_MEASURES) if before is None else _measured(before)
    for (what, setting, most), size, earlier in zip(
        _MEASURES, _measured(ensemble), was, strict=True
    ):
        limit = getattr(limits, most)
        if size > max(limit, earlier):
            told = f"{what}: {limit} at most ({setting}), not {size}"
            raise LimitExceeded(what, limit=limit, requested=size, told=told)


def check_roles(limits: Limits, number: int) -> None:
    """Check the number of roles, before anything is worked out for each.

    Raises:
        LimitExceeded: there are more than one ensemble may have.
    """
    what, setting, _ = _MEASURES[1]
    if number > limits.roles:
        told = f"{what}: {limits.roles} at most ({setting}), not {number}"
        raise LimitExceeded(what, limit=limits.roles, requested=number, told=told)


def check_template_size(limits: Limits, source: Mapping[str, object]) -> None:
    """Check that a template is no larger than the description of an ensemble may be.

    Raises:
        LimitExceeded: it is larger.
    """
    limit, size = limits.description, _bytes(source)
    if size > limit:
        what = "bytes of one template"
        told = f"{what}: {limit} at most (ensemble_bytes), not {size}"
        raise LimitExceeded(what, limit=limit, requested=size, told=told)


_MEASURES: Final = (
    ("members of one ensemble", "ensemble_members", "members"),
    ("roles of one ensemble", "ensemble_roles", "roles"),
    ("policies of one ensemble", "ensemble_policies", "policies"),
    ("bytes of one ensemble's metadata", "metadata_bytes", "metadata"),
    ("bytes of one ensemble's description", "ensemble_bytes", "description"),
)
"""(quantity, setting, field of `Limits`) of every size limit of an ensemble."""


def _measured(ensemble: Ensemble) -> tuple[int, ...]:
    """The sizes of an ensemble, in the order of `_MEASURES`."""
    roles, policies, metadata = ensemble.roles, ensemble.policies, ensemble.metadata
    whole = _bytes((ensemble.name, roles, policies, metadata))
    return len(ensemble.members), len(roles), len(policies), _bytes(metadata), whole


def _bytes(value: object) -> int:
    """The length of a value as JSON, in bytes of UTF-8."""
    return len(_JSON.encode(value))


def _plain(value: object) -> object:
    """A domain value as a type that msgspec knows."""
    return dict(value) if isinstance(value, Mapping) else str(value)


_JSON: Final = msgspec.json.Encoder(enc_hook=_plain)


def too_long(
    what: str, setting: str, *, limit: Duration, requested: Duration, unit: Duration = SECOND
) -> LimitExceeded:
    """The error of a duration above its limit; its numbers are in `unit`, rounded up."""
    told = f"{what}: {say_duration(limit)} at most ({setting}), not {say_duration(requested)}"
    most, requested = (-(-one // unit) for one in (limit, requested))
    return LimitExceeded(what, limit=most, requested=requested, told=told)


def _within(
    named: tuple[str, str], requested: Duration | None, default: Duration, longest: Duration
) -> Duration:
    if requested is None:
        return min(default, longest)
    if not 0 < requested <= longest:
        raise too_long(*named, limit=longest, requested=max(requested, 0))
    return requested
