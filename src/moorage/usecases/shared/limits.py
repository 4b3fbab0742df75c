"""Bounds that keep one caller from holding everything, for ever."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from moorage.domain.disclosure import Disclosure
from moorage.domain.ensembles import MAX_MEMBERS
from moorage.domain.errors import LimitExceeded
from moorage.domain.period import DAY, FOREVER, HOUR, MINUTE, SECOND, say_duration
from moorage.domain.quotas import QuotaDefaults

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.period import Duration, Instant


@dataclass(frozen=True, slots=True)
class Limits:
    """What the use cases allow; `settings` fills it."""

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
    """A decision's solve, unless the request says less (or more, up to `longest_time_limit`)."""
    longest_time_limit: Duration = 60 * SECOND
    explanation_budget: Duration = 5 * SECOND
    """All solves together that look for conflicts and relaxations of one refusal."""
    explanations: int = 1_000
    """How many explanations of one project are kept: the newest."""
    additional: int = 1_000
    """Where counting `max_additional` stops; an answer that reaches it means "at least"."""
    tenant_additional: int = 10
    """The largest `max_additional` told to a tenant: cloud totals are not theirs to see."""
    disclosure: Disclosure = field(default_factory=Disclosure)
    """What tenants are told of the fleet."""
    attempts: int = 25
    """How often a request is tried that others overtake, while its time limit lasts."""
    expensive: int = 8
    """Requests of one project that may search, worked on by one process at once."""
    expensive_in_all: int = 12
    """The same of all projects together."""
    waiting: int = 8
    """Requests that wait for events, in one process at once: each keeps a thread."""
    page: int = 1000
    """The longest page of a listing."""
    page_bytes: int = 4 * 1024 * 1024
    """Bytes of things after which a page of a listing ends."""
    notice: Duration = 5 * MINUTE
    """How long before its end a preemptible server is warned, and how long before a lease needs
    its place that end is."""
    grace: Duration = 0
    """How long a server whose end has come may take to go before it counts as overrun, and leases
    as degraded by it: the notice where somebody ends servers, nothing where nobody does."""
    preemption_notice: Duration | None = None
    """How long before it begins a lease may give up its places for one of a higher priority at
    the latest; None: never."""
    longest_lease: Duration = 365 * DAY
    longest_lead: Duration = DAY
    longest_cleaning: Duration = DAY
    """Before and after a lease; quotas do not count them, so they are bounded."""
    horizon: Duration = 1095 * DAY
    """How far ahead of now a lease may end, or a stay that has an end."""
    reservations: int = 200
    """Roles of one lease."""
    roles: int = 1_000
    """Roles of one ensemble."""
    policies: int = 1_000
    """Policies of one ensemble."""
    description: int = 1_048_576
    """Bytes of one ensemble's description, as it is stored, without its members; and of one
    version of a template."""
    metadata: int = 16_384
    """Bytes of all keys and values of one ensemble's metadata."""
    occurrences: int = 100
    """Leases that one series may be asked to have, over all its requests together."""
    quotas: QuotaDefaults = field(default_factory=QuotaDefaults)
    """What a project may lease and store of which nothing is said; `held_members` is told with
    it."""
    waitlist_time: Duration = 5 * SECOND
    """How long somebody who asks for a lease waits while those before it have their turn."""
    dead_letters: int = 1_000
    """How many events given up for one subscription are kept: the newest."""
    public_targets: bool = False
    """Whether deliveries go to public addresses only."""
    events_age: Duration = 30 * DAY
    """How long events are kept, at the longest."""
    events: int = 1_000_000
    """How many events are kept, over all projects: the newest."""
    records_age: Duration | None = 90 * DAY
    """How long leases, series, entries of the waitlist and the like are kept once they are over;
    None: for ever."""
    thresholds: Duration = 10 * SECOND
    """How often subscriptions' thresholds are looked at, at the most."""

    def told_additional(self, count: int) -> int:
        """The count of further members that a tenant may see: rounded, and bounded."""
        return self.disclosure.count(min(count, self.tenant_additional))


def hold_within(limits: Limits, asked: Duration | None) -> Duration:
    """The hold to give: the one asked for, or the default.

    Raises:
        LimitExceeded: longer than the longest hold, or no time at all.
    """
    return _within(("hold", "longest_hold"), asked, limits.default_hold, limits.longest_hold)


def claim_within(limits: Limits, asked: Duration | None) -> Duration:
    """The lifetime of a claim: the one asked for, or the default.

    Raises:
        LimitExceeded: longer than the longest claim, or no time at all.
    """
    return _within(
        ("lifetime of a claim", "longest_claim"),
        asked,
        limits.claim_lifetime,
        limits.longest_claim,
    )


def time_limit_within(limits: Limits, asked: Duration | None) -> Duration:
    """How long to search: as asked for, or the default.

    Raises:
        LimitExceeded: longer than the longest time limit, or no time at all.
    """
    return _within(
        ("time limit", "longest_time_limit"), asked, limits.time_limit, limits.longest_time_limit
    )


def check_stay(limits: Limits, until: Instant, now: Instant) -> None:
    """Let a stay from now on pass that ends so; one without an end is no matter of this.

    Raises:
        LimitExceeded: it ends further ahead than a lease may.
    """
    ahead = until - now
    if until != FOREVER and ahead > limits.horizon:
        raise too_long(
            "a stay ends ahead of now",
            "lease_horizon",
            limit=limits.horizon,
            requested=ahead,
            unit=DAY,
        )


def check_member_count(limits: Limits, count: int) -> None:
    """Let an ensemble of so many members pass.

    Raises:
        LimitExceeded: one may not have so many.
    """
    if count > limits.members:
        told = f"members of one ensemble: {limits.members} at most (ensemble_members), not {count}"
        raise LimitExceeded("members", limit=limits.members, requested=count, told=told)


def check_size(limits: Limits, ensemble: Ensemble, before: Ensemble | None = None) -> None:
    """Let an ensemble pass that is not too large to be stored and listed.

    Args:
        limits: what one may have.
        ensemble: as it becomes.
        before: as it is stored; what does not grow passes, also where the limit is lower since.

    Raises:
        LimitExceeded: too many members, roles or policies, or too many bytes of description or
            metadata; it names which.
    """
    was = (0,) * len(_MEASURES) if before is None else _measured(before)
    for (what, setting, most), size, earlier in zip(
        _MEASURES, _measured(ensemble), was, strict=True
    ):
        limit = getattr(limits, most)
        if size > max(limit, earlier):
            told = f"{what}: {limit} at most ({setting}), not {size}"
            raise LimitExceeded(what, limit=limit, requested=size, told=told)


def check_template_size(limits: Limits, source: Mapping[str, object]) -> None:
    """Let a template pass that is not larger than the description of an ensemble may be.

    Raises:
        LimitExceeded: it is.
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
"""What is limited of an ensemble, by which setting, and the field of `Limits`."""


def _measured(ensemble: Ensemble) -> tuple[int, ...]:
    """How large an ensemble is, in the order of `_MEASURES`."""
    roles, policies, metadata = ensemble.roles, ensemble.policies, ensemble.metadata
    whole = _bytes((ensemble.name, roles, policies, metadata))
    return len(ensemble.members), len(roles), len(policies), _bytes(metadata), whole


def _bytes(value: object) -> int:
    """How long a value is as JSON."""
    text = json.dumps(value, default=_plain, separators=(",", ":"), ensure_ascii=False)
    return len(text.encode())


def _plain(value: object) -> object:
    """A value of the domain in terms that JSON has."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, frozenset):
        return list(value)
    assert dataclasses.is_dataclass(value), "descriptions consist of nothing else"
    return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}


def too_long(
    what: str, setting: str, *, limit: Duration, requested: Duration, unit: Duration = SECOND
) -> LimitExceeded:
    """A duration that passes what is configured; its numbers are of the unit, rounded up."""
    told = f"{what}: {say_duration(limit)} at most ({setting}), not {say_duration(requested)}"
    most, asked = (-(-one // unit) for one in (limit, requested))
    return LimitExceeded(what, limit=most, requested=asked, told=told)


def _within(
    named: tuple[str, str], asked: Duration | None, default: Duration, longest: Duration
) -> Duration:
    if asked is None:
        return min(default, longest)
    if not 0 < asked <= longest:
        raise too_long(*named, limit=longest, requested=max(asked, 0))
    return asked
