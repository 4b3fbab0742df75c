"""The waitlist: leases that wait for capacity or quota."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from moorage.wire.fields import At, Length, Link


class Estimate(Struct, frozen=True):
    """The earliest window in which it would fit as the ledger stands. No promise."""

    start: At
    end: At
    proved: bool
    """Whether nothing earlier would do, as the ledger stands."""
    in_range: bool
    """Whether it starts no later than the entry's last start."""
    current: bool
    """Whether the ledger still is what it was made from; if not it is soon made anew."""


class WaitlistEntry(Struct, frozen=True):
    """A lease that waits; `why` and `estimate` are of the last time it was tried."""

    id: str
    """Of the lease, too, once it is granted."""
    name: str
    project_id: str
    user_id: str
    status: str
    """`waiting`, `granted`, `expired`, `cancelled` or `failed`."""
    generation: int
    priority: int
    entered_at: At
    """What its place in the order counts from, after the priority."""
    before: int | None
    """How many competing entries are before it; null: it no longer waits."""
    earliest_start: At
    latest_start: At
    until: At
    """When its owner stops waiting."""
    duration: Length
    lead: Length
    cleaning: Length
    places: int
    waits_for: str
    """`capacity` or `quota`."""
    why: str
    estimate: Estimate | None
    estimate_note: str | None
    """Why there is no estimate, or what else it takes."""
    estimated_at: At | None
    ensemble_id: str | None
    """The ensemble that it is for; null: it is made with the lease."""
    lease_id: str | None
    """The lease that it has become."""
    created_at: At
    updated_at: At
    links: list[Link]


class OneWaitlistEntry(Struct, frozen=True):
    """One entry of the waitlist."""

    entry: WaitlistEntry
    dry_run: bool | UnsetType = UNSET


class WaitlistEntries(Struct, frozen=True):
    """A page of the waitlist, by time of creation."""

    entries: list[WaitlistEntry]
    entries_links: list[Link]
    computed_at: At
