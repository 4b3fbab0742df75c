"""Leases: their terms, what they hold, and their events."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from moorage.domain.ensembles import MAX_MEMBERS
from moorage.wire.compliance import Impact
from moorage.wire.decisions import Decision, Priority, Search
from moorage.wire.ensembles import Ensemble, Policy, RoleBody
from moorage.wire.fields import (
    FOR_OPERATORS,
    Amount,
    AnyOf,
    At,
    Count,
    Duration,
    Generation,
    IdempotencyKey,
    Instant,
    Length,
    Link,
    Metadata,
    Name,
    Names,
    Uuid,
)
from moorage.wire.templates import ChosenTemplate  # noqa: TC001 - msgspec reads the annotation

Members: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_MEMBERS)]
Start: TypeAlias = Annotated[
    str, Meta(max_length=40, description="RFC 3339 with an offset; null means now")
]
Actions: TypeAlias = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=255)]],
    Meta(
        max_length=16,
        description="`notify`, `notify:PT24H`, `release`, `delete` or `hook:<name>`",
    ),
]
Before: TypeAlias = Annotated[
    list[Literal["bounded", "preemptible"]],
    Meta(max_length=2, description="Who may use its capacity before it starts; null: both"),
]


class LeasedBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An ensemble to create with its lease; without a name it is called as the lease is."""

    members: Annotated[list[RoleBody], Meta(min_length=1, max_length=1000)]
    policies: Annotated[list[Policy], Meta(max_length=1000)] = []
    metadata: Metadata = {}
    name: Name | None = None


class AmountBody(Struct, frozen=True, forbid_unknown_fields=True):
    """So many servers of a flavor, or of explicit resources: one role called `server`."""

    count: Members
    flavor: Name | None = None
    resources: Annotated[dict[Name, Amount], Meta(min_length=1, max_length=64)] | None = None
    required: AnyOf = []
    forbidden: Names = []
    policies: Annotated[list[Policy], Meta(max_length=1000)] = []


class WaitBody(Struct, frozen=True, forbid_unknown_fields=True):
    """The waiting terms of a lease that cannot be granted at once; see the waitlist."""

    latest_start: Instant | None = None
    """The last start that would do; without it the lease's own, or any if it has none."""
    until: Instant | None = None
    """When to stop waiting; without it when the last start has passed."""


class LeaseRequest(Search, frozen=True, kw_only=True):
    """What requests for a lease, an offer and a series have in common."""

    ensemble: LeasedBody | None = None
    template: ChosenTemplate | None = None
    amount: AmountBody | None = None
    lead: Duration | None = None
    """Time before the start in which the places are kept free already."""
    cleaning: Duration | None = None
    """Time after the end in which the places are kept free still."""


class LeaseTerms(LeaseRequest, frozen=True, kw_only=True):
    """The further terms of a lease, and of each lease of a series."""

    expiry: Duration | None = None
    """How long after the start unclaimed places are kept; without it, to the end."""
    priority: Priority = 0
    before_start: Before | None = None
    on_start: Actions = field(default_factory=list)
    before_end: Actions = field(default_factory=list)
    on_end: Actions = field(default_factory=list)


class LeaseBody(LeaseTerms, frozen=True, forbid_unknown_fields=True):
    """The ensemble, period and terms of a lease to grant.

    Exactly one of `ensemble_id`, `ensemble`, `template` and `amount` says what, exactly one of
    `end` and `duration` how long.
    """

    name: Name
    id: IdempotencyKey | None = None
    ensemble_id: Uuid | None = None
    start: Start | None = None
    end: Instant | None = None
    duration: Duration | None = None
    wait: WaitBody | None = None
    """Wait on the waitlist where it cannot be had; null: it is granted now or refused."""


class LeaseCreate(Struct, frozen=True, forbid_unknown_fields=True):
    """POST /v1/leases."""

    lease: LeaseBody


class LeaseChangeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """What changes: extend, shrink and move by `start` and `end`, grow by `counts`."""

    name: Name | None = None
    start: Start | UnsetType | None = UNSET
    end: Instant | None = None
    duration: Duration | None = None
    """With `start`, instead of `end`."""
    counts: Annotated[
        dict[Name, Count], Meta(max_length=1000, description="Role -> its new number of members")
    ] = {}
    generation: Generation | None = None


class LeaseChange(Struct, frozen=True, forbid_unknown_fields=True):
    """PATCH /v1/leases/{id}."""

    lease: LeaseChangeBody


class Reservation(Struct, frozen=True):
    """What a lease holds for one role."""

    id: str
    role: str
    kind: str
    """The kind of its members, such as `server` or `volume`."""
    resource_class: str | None
    """One unit of it stands for one place: by it an unmodified Nova draws from the lease. Null of
    members that Nova does not make, such as volumes: their places are claimed."""
    flavor: str | UnsetType | None = UNSET
    count: int | UnsetType = UNSET
    """The members of the role; absent in listings, as the two below."""
    claimed: int | UnsetType = UNSET
    remaining: int | UnsetType = UNSET
    """How many places may still be claimed."""


class DisplacedConsumer(Struct, frozen=True):
    """A consumer that ends early for a lease."""

    consumer: str
    project_id: str
    end: At | None
    declared_end: At | None
    """The end it had before; null for none."""
    priority: int


class LeaseOccurrence(Struct, frozen=True):
    """A lease's place in a series."""

    series_id: str
    index: int
    """From 1, by the dates of its calendar."""


class Displaced(Struct, frozen=True):
    """The preemptible servers and members that end early for a lease."""

    count: int
    consumers: Annotated[list[DisplacedConsumer] | UnsetType, FOR_OPERATORS] = UNSET
    """The consumers; operators only."""


class MayYield(Struct, frozen=True):
    """Until when a lease may be preempted, where preemption is configured."""

    above: int
    """A lease with a higher priority than this may preempt it."""
    until: At
    """The end of that time."""


class PreemptedLease(Struct, frozen=True):
    """A lease that gives up its places for another."""

    id: str
    name: str
    project_id: str
    priority: int
    start: At
    end: At
    units: int
    earliest_start: At | None
    """When the same lease would fit next; null where none was found."""
    earliest_end: At | None
    proved: bool
    """Whether it was refuted that it fits at any start between."""


class Preempted(Struct, frozen=True):
    """The leases that give up their places for one of a higher priority."""

    count: int
    leases: Annotated[list[PreemptedLease] | UnsetType, FOR_OPERATORS] = UNSET
    """Which they are; operators only."""


class Lease(Struct, frozen=True):
    """A lease. What cannot be proved is refused; see `guarantee`."""

    id: str
    name: str
    handle: str
    """`L3`: the third lease or offer of its project. What people call it by; ids are for programs.
    Empty in a dry run."""
    project_id: str
    user_id: str
    status: str
    degraded: bool
    missing: int
    """Members that have lost their places and got no others."""
    proposal: dict[str, Any] | None
    """While some are missing: a change of the ensemble after which all have places, as a solve has
    shown, such as `{"policy": "one-per-host", "max_per_domain": [1, 2]}`; null for none."""
    generation: int
    guarantee: str
    """`proved`, on the terms of `may_yield`; `broken` while it is degraded: a place cannot be kept,
    or is lost; `yielded` once a lease of a higher priority has its places."""
    start: At
    end: At
    lead: Length
    cleaning: Length
    expiry: Length | None
    expires_at: At | None
    """When unclaimed places are freed."""
    priority: int
    before_start: list[str]
    on_start: list[str]
    before_end: list[str]
    on_end: list[str]
    binding: str
    """`planned`: its hosts may still be exchanged for others; `bound`: they are final."""
    ensemble_id: str
    decision_id: str
    reservations: list[Reservation]
    created_at: At
    updated_at: At
    links: list[Link]
    occurrence: LeaseOccurrence | UnsetType = UNSET
    """Given where it is one of a series."""
    proposed_places: Annotated[dict[str, str] | UnsetType, FOR_OPERATORS] = UNSET
    """Names of the hosts on which the missing would be after it, by member, where nobody else has
    to move; operators only."""
    displaced: Displaced | UnsetType = UNSET
    """The consumers that end early for it; none once it is closed. Absent in listings."""
    notified: int | UnsetType = UNSET
    """While degraded: how many subscriptions were notified of that. Absent in listings."""
    may_yield: MayYield | None = None
    """The terms of `guarantee` before the lease begins; null where nothing may take its places."""
    outcome: str | None = None
    """`preempted`: it has given up its places for a lease of a higher priority."""
    waitlist_entry: str | None = None
    """Of a preempted one the id of the entry as which it waits for its window again, and of the
    lease that it becomes once that is granted."""


class OneLease(Struct, frozen=True):
    """One lease. After a change: its placement, and what a dry run looked at."""

    lease: Lease
    decision: Decision | UnsetType = UNSET
    ensemble: Ensemble | UnsetType = UNSET
    """Where the lease made one."""
    preempted: Preempted | UnsetType = UNSET
    """The leases that give up their places for it; absent where none does."""
    dry_run: bool = False
    computed_at: At | UnsetType = UNSET
    revision: int | UnsetType = UNSET
    breaks: Impact | UnsetType = UNSET
    """Of a change: the violations that it begins."""


class Leases(Struct, frozen=True):
    """A page of leases, oldest first."""

    leases: list[Lease]
    leases_links: list[Link]
    computed_at: At


class Hearer(Struct, frozen=True):
    """A subscription that matches a notice."""

    id: str
    name: str
    status: str
    """`heard`: it was delivered; `waiting`: it is still to be delivered; `given_up`."""


class Audience(Struct, frozen=True):
    """The recipients of a notice: none if `webhook` is `none` and there are no subscriptions."""

    webhook: str
    """The operator's: `told`, `waiting`, `given_up`, or `none` where no webhook is set."""
    subscriptions: list[Hearer] | None
    """Of the lease's project; null where they are no longer known."""


class LeaseEvent(Struct, frozen=True):
    """A past or coming event of a lease."""

    id: str
    kind: str
    due: At
    status: str
    attempts: int
    action: str | None
    """As it was written: `notify:PT24H`; null for a step of the lease's own life."""
    created_at: At
    updated_at: At
    told: Audience | UnsetType = UNSET
    """Of a `notify`: its recipients."""
    outcome: Annotated[str | UnsetType, FOR_OPERATORS] = UNSET
    """Its result, or why the last attempt failed; operators only."""
    details: Annotated[dict[str, Any] | UnsetType, FOR_OPERATORS] = UNSET
    """Operators only."""


class LeaseEvents(Struct, frozen=True):
    """A lease's events in the order of time."""

    events: list[LeaseEvent]
    events_links: list[Link]
