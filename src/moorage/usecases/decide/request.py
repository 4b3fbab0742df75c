"""The input of a joint decision: the proposal, a lease's terms, and the request's identity."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from moorage.domain.bookings import Binding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, Role
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Duration, Instant, Period
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces


@dataclass(frozen=True, slots=True)
class ForcedEnd:
    """The early end of a preemptible member's stay, for a lease or a planned host absence."""

    end: Instant
    yields_to: str | None
    """The lease that begins there; None: the host is planned to be away from then on."""
    on: frozenset[str] = frozenset()
    """Providers whose bookings determine the end: if they change, it must be computed again."""

    @classmethod
    def of(cls, booking: Booking) -> ForcedEnd | None:
        """The early end that a booking has already; None: it has none."""
        return None if booking.declared_end is None else cls(booking.period.end, booking.yields_to)


@dataclass(frozen=True, slots=True)
class LeasePromise:
    """The terms on which a decision holds a lease's places."""

    lease_id: str
    period: Period
    """The occupied period: the tenant's period with lead and cleaning."""
    expires_at: Instant
    binding: Binding = Binding.PLANNED
    cleaning: Duration = 0
    """Time between the end of the tenant's period and the end of `period`."""
    lead: Duration = 0
    """Time between the start of `period` and the start of the tenant's period."""
    offered: bool = False
    """Whether it is an offer: consumers are warned and displaced only when it is accepted."""
    priority: int = 0
    """Priority of the lease."""
    outranks: int = 0
    """Leases of a lower priority than this may give up their places for it."""
    gives_back: bool = False
    """Whether consumers displaced for the former terms get reprieves if the new ones allow it."""


class SelectsMembers(Protocol):
    """Selects the members to place."""

    def __call__(self, member_places: MemberPlaces, /) -> frozenset[MemberName]:
        """The names of the members to place, given the present places."""


class WaitlistGate(Protocol):
    """Decides whether a request may proceed, or competing waitlist entries come first."""

    def __call__(self, snapshot: Snapshot, *, detect_only: bool = False) -> bool:
        """Whether the request may proceed. False: entries before it were tried; read again.

        With `detect_only` they are not tried: False only says that there are some.
        """


def ignore_waitlist(
    snapshot: Snapshot,  # noqa: ARG001 - the protocol's
    *,
    detect_only: bool = False,  # noqa: ARG001
) -> bool:
    """A `WaitlistGate` that ignores the waitlist."""
    return True


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """Hosts to try first, hosts to prefer, and hosts that may not be used."""

    places: Mapping[MemberName, str] = field(default_factory=lambda: MappingProxyType({}))
    """Member -> host (UUID): a placement of all members known before, tried first."""
    preferred: Mapping[MemberName, str] = field(default_factory=lambda: MappingProxyType({}))
    """Member -> host (UUID) on which it is rather than on others, whatever the objective."""
    barred: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Reason id -> hosts (UUIDs) that may not be used."""


class RefusalDetail(Enum):
    """How much of a refusal is explained, and whether it is stored."""

    FULL = "full"
    """The reasons and the alternatives; they are stored."""
    UNSTORED = "unstored"
    """The reasons, without alternatives in time; for requests that no client made."""
    NONE = "none"
    """Only that it is refused; nothing is stored."""


@dataclass(frozen=True, slots=True)
class RefusalReader:
    """The audience and the detail of a refusal's explanation."""

    operator: bool = False
    """Whether other projects' leases may be named by their ids."""
    detail: RefusalDetail = RefusalDetail.FULL
    resized_from: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Role -> present count, for roles whose count changes, if nothing else changes: an alternative
    with that count would be no change."""

    @property
    def client_reads(self) -> bool:
        """Whether a client reads the explanation."""
        return self.detail is RefusalDetail.FULL


def resized_from(before: Ensemble, after: Ensemble) -> dict[str, int]:
    """Role -> its members before the change, for roles whose count changes."""
    had = Counter(one.name.role for one in before.members)
    has = Counter(one.name.role for one in after.members)
    return {role: had[role] for role in had.keys() | has.keys() if had[role] != has[role]}


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a request asks for: the ensemble to store and the members to place, and what is written.

    Further: who comes before it, and for whom a refusal is explained.
    """

    ensemble: Ensemble
    generation: int | None
    """The stored generation it replaces; None for a new ensemble."""
    selections: tuple[SelectsMembers, ...]
    """The members to place; each later selection is tried if those before it gave no placement."""
    promise: LeasePromise | None = None
    """The lease's terms, if the decision is a lease's placement."""
    roles: tuple[Role, ...] | None = None
    """Roles for this search only, if they differ from the ensemble's."""
    freed: frozenset[str] = frozenset()
    """Consumers of removed members: their holds are dropped, and their exclusive policies end."""
    before: Ensemble | None = None
    """The ensemble that it replaces, if other members or policies make other hyperedges: what is
    broken on hyperedges that were there before may stay so."""
    restated: frozenset[str] = frozenset()
    """Names of new or changed policies: they must also hold for members that are not placed now."""
    known_hosts: KnownHosts = KnownHosts()
    waitlist_gate: WaitlistGate = ignore_waitlist
    """Tries the waitlist entries that come before the request."""
    further_changes: Callable[[Decision], tuple[Change, ...]] = lambda decision: ()  # noqa: ARG005 - nothing
    """Further changes for the same changeset. A claim that they create takes its member's place at
    once; a claim of the former decision that they end is not moved to the new decision."""
    reader: RefusalReader = RefusalReader()
    """For whom a refusal is explained."""


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """The id of the record to create, and the id and digest of the client's request."""

    id: str
    digest: str = ""
    key: str | None = None
    """The idempotency key that the client sent as `id`; None: it sent none."""
    within: RequestIdentity | None = None
    """The enclosing request, if the decision is a part of it."""

    @property
    def name(self) -> str:
        """The request, as errors name it: by the id that the client sent."""
        return self.key or self.id
