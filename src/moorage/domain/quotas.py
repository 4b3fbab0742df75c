"""Quotas: what a project may lease, hold and store, and how its leases count.

A *unit* is one place: a member of a leased ensemble, however large. A lease counts from its start
to its end, without lead and cleaning. The arithmetic is `engine.time.quotas`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from moorage.domain.errors import LimitExceeded, OtherQuotaExceeded, QuotaExceeded
from moorage.domain.leases import Lease, LeaseState
from moorage.domain.period import DAY, FOREVER, SECOND, Duration, Instant, say_duration
from moorage.domain.words import counted

UNLIMITED: Final = FOREVER
"""A limit that nothing passes."""
MOST_PRIORITY: Final = 1_000
"""The highest priority there is."""


class QuotaName(StrEnum):
    """The quotas there are."""

    UNITS = "lease-units"
    """Places leased at one instant."""
    UNIT_HOURS = "lease-unit-hours"
    """Places times hours of all leases that one window touches; see `QuotaDefaults.window`."""
    HORIZON = "lease-horizon"
    """How far ahead of now a lease may end; a duration."""
    MAX_LENGTH = "lease-max-length"
    """From a lease's start to its end; a duration."""
    LEASES = "leases"
    """Leases that have not ended."""
    HELD = "held-units"
    """Places held or claimed at once that are not a lease's."""
    PRIORITY = "lease-priority"
    """The highest priority of a lease, and of a preemptible ensemble."""
    ENSEMBLES = "ensembles"
    """Ensembles that were described by themselves: those of leases and offers do not count."""
    TEMPLATES = "templates"
    """Templates, each version of one counted."""
    SERIES = "series"
    """Series with a lease that has not ended."""
    OFFERS = "offers"
    """Offers held at once."""
    WAITLIST = "waitlist-entries"
    """Leases that wait."""
    SUBSCRIPTIONS = "subscriptions"
    """Subscriptions to events."""
    SHARES_GIVEN = "shares-given"
    """Roles of its ensembles that it has offered to other projects, whatever came of that."""
    SHARES_RECEIVED = "shares-received"
    """Roles that other projects offer to it, and that it has neither accepted nor revoked."""


STORED: Final = (
    QuotaName.ENSEMBLES,
    QuotaName.TEMPLATES,
    QuotaName.SERIES,
    QuotaName.OFFERS,
    QuotaName.WAITLIST,
    QuotaName.SUBSCRIPTIONS,
    QuotaName.SHARES_GIVEN,
    QuotaName.SHARES_RECEIVED,
)
"""What a project has stored, counted in things."""
DURATIONS: Final = frozenset({QuotaName.HORIZON, QuotaName.MAX_LENGTH})
"""Limits in microseconds; all others are counts."""


_USUAL: Final[Mapping[QuotaName, int]] = MappingProxyType({QuotaName.PRIORITY: 0})
"""Limits without a setting or a project's own; all others are UNLIMITED."""


@dataclass(frozen=True, slots=True)
class Quota:
    """The limits that an operator has set for one project; for the rest the defaults apply."""

    project_id: str
    limits: Mapping[QuotaName, int] = field(default_factory=lambda: MappingProxyType({}))
    updated_at: Instant = 0


@dataclass(frozen=True, slots=True)
class QuotaDefaults:
    """The limits of projects without their own; `settings` fills it."""

    limits: Mapping[QuotaName, int] = field(default_factory=lambda: MappingProxyType({}))
    """What is not named is unlimited, but for priorities: of these there is none above 0."""
    window: Duration = 30 * DAY
    """The sliding window of unit-hours."""
    waived: frozenset[QuotaName] = frozenset()
    """Quotas that do not apply to the caller."""

    def limit(self, name: QuotaName, quota: Quota | None) -> int:
        """The limit of a project with this quota, or without one."""
        if name in self.waived:
            return UNLIMITED
        own = None if quota is None else quota.limits.get(name)
        return self.limits.get(name, _USUAL.get(name, UNLIMITED)) if own is None else own


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """So many units from `start` to `end`: a lease, or the part of it with one size."""

    units: int
    start: Instant
    end: Instant


def too_much_held(*, limit: int, used: int, requested: int, offered: int = 0) -> QuotaExceeded:
    """The error of too many places held; when others become free is unknown.

    `offered` are places of open offers, of which only further offers are refused: they count as
    requested beside those of the new one, since they are not in use yet.
    """
    requested += offered
    told = f"{QuotaName.HELD} limit {limit} used {used} requested {requested}"
    if offered:
        told += f" ({offered} of them for open offers)"
    return QuotaExceeded(QuotaName.HELD, told, limit=limit, used=used, requested=requested)


def too_much_held_by(project_id: str, *, requested: int) -> OtherQuotaExceeded:
    """The error of another project, of whose quota the caller may not know more."""
    return OtherQuotaExceeded(
        f"the quota of project {project_id} does not allow the {requested} places of its roles:"
        " let it free places, or ask for fewer members"
    )


def too_many_received(project_id: str) -> OtherQuotaExceeded:
    """The error of another project that has too many offers to answer; how many is its affair."""
    return OtherQuotaExceeded(
        f"project {project_id} has as many offers of roles to answer as its quota allows:"
        " let it accept or revoke some, or offer it fewer roles"
    )


def too_many_stored(name: QuotaName, *, limit: int, used: int, requested: int) -> QuotaExceeded:
    """The error of too many stored records; it passes when others are deleted or over."""
    told = f"{name} limit {limit} used {used} requested {requested}"
    return QuotaExceeded(name, told, limit=limit, used=used, requested=requested)


def too_many_names(*, limit: int, used: int, requested: int) -> LimitExceeded:
    """The error of names that only server providers have brought in."""
    return LimitExceeded(
        "custom resource classes and traits that servers of the project offer (offered_names)",
        limit=limit,
        used=used,
        requested=requested,
    )


def too_high(*, limit: int, requested: int) -> QuotaExceeded:
    """The error of a priority that is too high; waiting does not help."""
    told = f"{QuotaName.PRIORITY} limit {limit} requested {requested}"
    return QuotaExceeded(QuotaName.PRIORITY, told, limit=limit, used=0, requested=requested)


_FREED: Final[Mapping[QuotaName, str]] = MappingProxyType(
    {
        QuotaName.UNITS: "cancel, shrink or move other leases",
        QuotaName.UNIT_HOURS: "cancel, shrink or move other leases",
        QuotaName.LEASES: "cancel another lease",
        QuotaName.HELD: "confirm or delete ensembles whose places are held and not needed",
        QuotaName.ENSEMBLES: "delete ensembles",
        QuotaName.TEMPLATES: "delete templates",
        QuotaName.SERIES: "cancel another series",
        QuotaName.OFFERS: "accept or delete other offers",
        QuotaName.WAITLIST: "cancel other entries",
        QuotaName.SUBSCRIPTIONS: "delete other subscriptions",
        QuotaName.SHARES_GIVEN: "delete ensembles of which roles are shared",
        QuotaName.SHARES_RECEIVED: "accept or revoke shares",
    }
)
"""What a project can do to use less of a quota."""


_NOUNS: Final[Mapping[QuotaName, tuple[str, ...]]] = MappingProxyType(
    {
        QuotaName.UNITS: ("leased place",),
        QuotaName.UNIT_HOURS: ("unit-hour",),
        QuotaName.LEASES: ("lease",),
        QuotaName.HELD: ("held place",),
        QuotaName.ENSEMBLES: ("ensemble",),
        QuotaName.TEMPLATES: ("template",),
        QuotaName.SERIES: ("series", "series"),
        QuotaName.OFFERS: ("offer",),
        QuotaName.WAITLIST: ("waitlist entry", "waitlist entries"),
        QuotaName.SUBSCRIPTIONS: ("subscription",),
        QuotaName.SHARES_GIVEN: ("role of another project", "roles of other projects"),
        QuotaName.SHARES_RECEIVED: ("shared role",),
    }
)
"""What a quota counts, one and many."""


def remedies(error: QuotaExceeded, project_id: str) -> tuple[str, ...]:
    """What can be done about a refusal: ask for less, use less, or have the limit raised."""
    name = QuotaName(error.what)
    found = []
    if name in DURATIONS:
        most, needed = (say_duration(one * SECOND) for one in (error.limit, error.requested))
        found.append(f"ask for {most} at most")
    else:
        needed = str(error.used + error.requested)
        if name is QuotaName.PRIORITY:
            needed, left = str(error.requested), error.limit
            found.append(f"ask for priority {left} at most")
        elif error.left:
            found.append(f"ask for at most {counted(error.left, *_NOUNS[name])}")
    if name in _FREED:
        found.append(_FREED[name])
    found.append(f"have an operator raise it: moorage quota set {project_id} --{name} {needed}")
    return tuple(found)


def uses_of(lease: Lease, before: Sequence[QuotaUse], now: Instant) -> tuple[QuotaUse, ...]:
    """The uses for which a lease counts, as it is now.

    Args:
        lease: as it becomes.
        before: what it counted for until now, in order; nothing where it is new.
        now: what lies before is past, and counts as it was.
    """
    period = lease.terms.period
    end = min(period.end, now) if lease.state is LeaseState.CLOSED else period.end
    past = [
        QuotaUse(one.units, one.start, min(one.end, now, end))
        for one in before
        if one.start < min(now, end)
    ]
    start = max(period.start, past[-1].end) if past else period.start
    if past and past[-1].units == lease.units:
        start = past.pop().start
    if start < end and lease.units:
        past.append(QuotaUse(lease.units, start, end))
    return tuple(past)
