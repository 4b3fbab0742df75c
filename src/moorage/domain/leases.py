"""Leases: an ensemble's places granted for a later period, and their lifecycle.

A lease names an ensemble and a period; its placement is a decision of that period (ADR-0008).
Its life is the table `LEASE_TABLE`; `lease_after` is the only way to move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from moorage.domain.bookings import Binding
from moorage.domain.ensembles import OF_NOVA, MemberKind
from moorage.domain.errors import InvalidDescription, WrongState
from moorage.domain.offers import Offer, OfferState
from moorage.domain.period import FOREVER, Duration, Instant, Period, say_duration


class LeaseState(StrEnum):
    """`pending -> starting -> active -> ending -> closed`, after `offered` where it was."""

    OFFERED = "offered"
    """An offer: its places are kept until it is accepted or expires."""
    PENDING = "pending"
    """Granted; its period lies ahead."""
    STARTING = "starting"
    """Its places are freed and prepared: from `start - lead` on."""
    ACTIVE = "active"
    """Servers may be created in it: its places may be claimed."""
    ENDING = "ending"
    """Its end has come; its servers are ended and its places cleaned."""
    CLOSED = "closed"
    """It has ended or was cancelled, and holds nothing."""


class LeaseOutcome(StrEnum):
    """Why a lease ended other than by its end or its owner."""

    PREEMPTED = "preempted"
    """It gave up its places for a lease of a higher priority, before it began."""


class LeaseStep(StrEnum):
    """The steps of a lease's lifecycle."""

    ACCEPT = "accept"
    """An offer is taken up."""
    PREPARE = "prepare"
    ACTIVATE = "activate"
    CHANGE = "change"
    """Extend, shrink, grow, move or rename: what may change in which state is `CHANGEABLE`."""
    END = "end"
    """Its end has come, or its owner ends it early."""
    CLOSE = "close"


LEASE_TABLE: Final[Mapping[tuple[LeaseState, LeaseStep], LeaseState]] = MappingProxyType(
    {
        (LeaseState.OFFERED, LeaseStep.ACCEPT): LeaseState.PENDING,
        (LeaseState.OFFERED, LeaseStep.CLOSE): LeaseState.CLOSED,
        (LeaseState.PENDING, LeaseStep.CHANGE): LeaseState.PENDING,
        (LeaseState.PENDING, LeaseStep.PREPARE): LeaseState.STARTING,
        (LeaseState.PENDING, LeaseStep.CLOSE): LeaseState.CLOSED,
        (LeaseState.STARTING, LeaseStep.CHANGE): LeaseState.STARTING,
        (LeaseState.STARTING, LeaseStep.ACTIVATE): LeaseState.ACTIVE,
        (LeaseState.STARTING, LeaseStep.END): LeaseState.ENDING,
        (LeaseState.ACTIVE, LeaseStep.CHANGE): LeaseState.ACTIVE,
        (LeaseState.ACTIVE, LeaseStep.END): LeaseState.ENDING,
        (LeaseState.ENDING, LeaseStep.CLOSE): LeaseState.CLOSED,
    }
)


def lease_after(state: LeaseState, step: LeaseStep) -> LeaseState:
    """The state after a step.

    Raises:
        WrongState: the table has no such step from `state`.
    """
    try:
        return LEASE_TABLE[state, step]
    except KeyError:
        raise WrongState(f"cannot {step} a lease that is {state}") from None


class Aspect(StrEnum):
    """The aspects of a lease that an owner may change."""

    NAME = "name"
    START = "start"
    END = "end"
    MEMBERS = "members"


CHANGEABLE: Final[Mapping[LeaseState, frozenset[Aspect]]] = MappingProxyType(
    {
        LeaseState.OFFERED: frozenset(),
        LeaseState.PENDING: frozenset(Aspect),
        LeaseState.STARTING: frozenset({Aspect.NAME, Aspect.END, Aspect.MEMBERS}),
        LeaseState.ACTIVE: frozenset({Aspect.NAME, Aspect.END, Aspect.MEMBERS}),
        LeaseState.ENDING: frozenset({Aspect.NAME}),
        LeaseState.CLOSED: frozenset({Aspect.NAME}),
    }
)
"""A start in the past cannot be moved, and a lease that has ended can only be renamed."""


def check_change(state: LeaseState, aspect: Aspect) -> None:
    """Refuse a change that the state does not allow.

    Raises:
        WrongState: it does not.
    """
    if aspect not in CHANGEABLE[state]:
        raise WrongState(f"the {aspect} of a lease that is {state} cannot be changed")


class LeadTooLong(InvalidDescription):
    """A lease's lead would begin before now; a lead of `longest` would not."""

    def __init__(self, longest: Duration) -> None:
        super().__init__(
            f"the lead would begin in the past: it is {say_duration(longest)} at most for a"
            " lease that starts then",
            path="lease.lead",
        )
        self.longest = longest


class Yielding(StrEnum):
    """The consumers that may use a lease's capacity before it starts."""

    BOUNDED = "bounded"
    """Consumers with a declared end before the lease needs the place."""
    PREEMPTIBLE = "preemptible"
    """Preemptible consumers, which are evicted for it."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a lease, besides its ensemble.

    Raises:
        InvalidDescription: from the constructor, where a duration is negative, or the lease
            would expire at its end or later.
    """

    period: Period
    """The tenant's: servers may exist in it. It has an end."""
    lead: Duration = 0
    """Time before the start in which the places are kept free already."""
    cleaning: Duration = 0
    """Time after the end in which the places are kept free still."""
    expiry: Duration | None = None
    """How long after the start unclaimed places are kept; None: to the end."""
    priority: int = 0
    before_start: frozenset[Yielding] = frozenset(Yielding)

    def __post_init__(self) -> None:
        if self.period.end == FOREVER:
            raise InvalidDescription("a lease needs an end", path="lease.end")
        for name in ("lead", "cleaning"):
            if getattr(self, name) < 0:
                raise InvalidDescription("a duration is not negative", path=f"lease.{name}")
        length = self.period.end - self.period.start
        if self.expiry is not None and not 0 < self.expiry < length:
            raise InvalidDescription(
                "a lease expires after its start and before its end", path="lease.expiry"
            )

    @property
    def occupied(self) -> Period:
        """The period of exclusive use: with the lead and the cleaning."""
        return Period(self.period.start - self.lead, self.period.end + self.cleaning)

    @property
    def expires_at(self) -> Instant:
        """The instant at which unclaimed places are freed."""
        return self.period.end if self.expiry is None else self.period.start + self.expiry

    def moved(self, period: Period) -> Terms:
        """The same terms for another period."""
        return Terms(
            period, self.lead, self.cleaning, self.expiry, self.priority, self.before_start
        )


@dataclass(frozen=True, slots=True)
class Reservation:
    """What a lease holds for one role."""

    id: str
    role: str
    kind: str = MemberKind.SERVER
    """The kind of its members."""
    moved: bool = False
    """Whether a member has got another host after the lease had begun, because its own failed."""

    @property
    def resource_class(self) -> str | None:
        """The class by which Nova draws from it; None: its members are no servers of Nova's."""
        return reservation_class(self.id) if self.kind in OF_NOVA else None


def reservation_class(reservation_id: str) -> str:
    """The resource class of which one unit stands for one place of a reservation.

    The name is Blazar's (`blazar/plugins/instances`): upper case, dashes as underscores.
    """
    return f"CUSTOM_RESERVATION_{reservation_id.upper().replace('-', '_')}"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A lease's place in a series."""

    series: str
    """The id of the series."""
    index: int
    """From 1; see `domain.series`."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A granted lease. `missing` members have lost their places and got no others."""

    id: str
    project_id: str
    user_id: str
    name: str
    ensemble_id: str
    decision_id: str
    """Its present placement; a changed lease has a new one."""
    terms: Terms
    state: LeaseState
    reservations: tuple[Reservation, ...]
    units: int = 0
    """How many places it is granted with: what quotas count."""
    binding: Binding = Binding.PLANNED
    degraded: bool = False
    missing: int = 0
    proposal: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """While members are missing: a change after which they would have places, as a solve has
    shown; the fields of an `EnsembleChange`, and as `places` on which hosts (UUIDs) the missing
    would be, by member, if no other member has to move for it. Empty where none was found."""
    actions: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """Per edge (`on_start`, `before_end`, `on_end`) the actions, as they were written."""
    annotations: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """A dialect's own data about the request, as JSON values."""
    checked: bool = False
    """Whether the operator's own check has allowed it, and is to be notified of its end."""
    digest: str = ""
    """Fingerprint of the request that made it: the same request again gets the same answer."""
    generation: int = 0
    created_at: Instant = 0
    updated_at: Instant = 0
    outcome: LeaseOutcome | None = None
    """Why a closed lease ended early; None for the usual end."""
    waitlist_entry: str | None = None
    """The id of the waitlist entry that a preempted lease waits as for its window."""
    offer: Offer | None = None
    """Given where it is, or was before it was granted, an offer."""
    serial: int = 0
    """Counts the leases and offers of its project; given when it is written."""
    occurrence: Occurrence | None = None
    """Given where it is one of a series; while that is being made, it is an offer, too."""

    @property
    def proposed(self) -> bool:
        """Whether it is an offer that is not accepted, and so no lease."""
        return self.offer is not None and self.offer.state is not OfferState.ACCEPTED

    @property
    def handle(self) -> str:
        """The short name in its project: `L3`, or `o3` if it is no lease but an offer.

        Nothing while it is not written, as in a dry run.
        """
        return f"{'o' if self.proposed else 'L'}{self.serial}" if self.serial else ""

    @property
    def called(self) -> str:
        """Kind and handle, for its own project: `lease L3` or `offer o3`."""
        return f"{'offer' if self.proposed else 'lease'} {self.handle}"

    def claimable(self, now: Instant) -> bool:
        """Whether servers may be created in it at `now`."""
        return self.state is LeaseState.ACTIVE and self.terms.period.covers(now)
