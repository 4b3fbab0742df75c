"""Response bodies about leases; `views_leases.py` makes them."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from moorage.api.native.answers import Decision, Ensemble, Link


class Reservation(Struct, frozen=True):
    """What a lease holds for one role."""

    id: str
    role: str
    resource_class: str
    """One unit of it stands for one place: by it an unmodified Nova draws from the lease."""
    flavor: str | UnsetType | None = UNSET
    count: int | UnsetType = UNSET
    """The members of the role; absent in listings, as the two below."""
    claimed: int | UnsetType = UNSET
    remaining: int | UnsetType = UNSET
    """How many places may still be claimed."""


class DisplacedConsumer(Struct, frozen=True):
    """One that ends early for a lease."""

    consumer: str
    project_id: str
    end: str | None
    declared_end: str | None
    """The end it had before; null for none."""
    priority: int


class Occurrence(Struct, frozen=True):
    """Which of a series a lease is."""

    series_id: str
    index: int
    """From 1, by the dates of its calendar."""


class Displaced(Struct, frozen=True):
    """The preemptible servers and members that end early for a lease."""

    count: int
    consumers: list[DisplacedConsumer] | UnsetType = UNSET
    """Who they are; operators only."""


class MayYield(Struct, frozen=True):
    """On which terms the promise of a lease holds before it begins, where any are configured."""

    above: int
    """To a lease of a higher priority than this it may have to give up its places."""
    until: str
    """Until then, and not afterwards."""


class PreemptedLease(Struct, frozen=True):
    """A lease that gives up its places for another."""

    id: str
    name: str
    project_id: str
    priority: int
    start: str
    end: str
    units: int
    earliest_start: str | None
    """When the same lease would fit next; null where none was found."""
    earliest_end: str | None
    proved: bool
    """Whether it was refuted that it fits at any start between."""


class Preempted(Struct, frozen=True):
    """The leases that give up their places for one of a higher priority."""

    count: int
    leases: list[PreemptedLease] | UnsetType = UNSET
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
    """Members whose places are lost, and who got no others."""
    proposal: dict[str, Any] | None
    """While some are missing: a change of the ensemble after which all have places, as a solve has
    shown, such as `{"policy": "one-per-host", "max_per_domain": [1, 2]}`; null for none."""
    generation: int
    guarantee: str
    """`proved`, on the terms of `may_yield`; `broken` while it is degraded: a place cannot be kept,
    or is lost; `yielded` once a lease of a higher priority has its places."""
    start: str
    end: str
    lead: str
    cleaning: str
    expiry: str | None
    expires_at: str | None
    """When what nobody claimed is freed."""
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
    created_at: str
    updated_at: str
    links: list[Link]
    occurrence: Occurrence | UnsetType = UNSET
    """Given where it is one of a series."""
    proposed_places: dict[str, str] | UnsetType = UNSET
    """Names of the hosts on which the missing would be after it, by member, where nobody else has
    to move; operators only."""
    displaced: Displaced | UnsetType = UNSET
    """Who ends early for it; nobody once it is closed. Absent in listings."""
    notified: int | UnsetType = UNSET
    """While degraded: how many subscriptions have been told so. Absent in listings."""
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
    computed_at: str | UnsetType = UNSET
    revision: int | UnsetType = UNSET


class Leases(Struct, frozen=True):
    """A page of leases, oldest first."""

    leases: list[Lease]
    leases_links: list[Link]
    computed_at: str


class Hearer(Struct, frozen=True):
    """A subscription that wants what is told."""

    id: str
    name: str
    status: str
    """`heard`: its target has answered; `waiting`: it is still to be delivered; `given_up`."""


class Audience(Struct, frozen=True):
    """Who a notice is for. Where `webhook` is `none` and nobody has subscribed, nobody hears it."""

    webhook: str
    """The operator's: `told`, `waiting`, `given_up`, or `none` where no webhook is set."""
    subscriptions: list[Hearer] | None
    """Of the lease's project; null where that is known no more."""


class LeaseEvent(Struct, frozen=True):
    """Something that happens because of a lease, or has happened."""

    id: str
    kind: str
    due: str
    status: str
    attempts: int
    action: str | None
    """As it was written: `notify:PT24H`; null for a step of the lease's own life."""
    created_at: str
    updated_at: str
    told: Audience | UnsetType = UNSET
    """Of a `notify`: whom it has reached."""
    outcome: str | UnsetType = UNSET
    """What came of it, or why the last attempt failed; operators only."""
    details: dict[str, Any] | UnsetType = UNSET
    """Operators only."""


class LeaseEvents(Struct, frozen=True):
    """What happens because of a lease, in the order of time."""

    events: list[LeaseEvent]
    events_links: list[Link]
