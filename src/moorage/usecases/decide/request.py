"""The input of a joint decision: the proposal, a lease's terms, and the request's identity."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from moorage.domain.bookings import Binding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, MemberName, Role
    from moorage.domain.period import Duration, Instant, Period
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.ports import Keepers


@dataclass(frozen=True, slots=True)
class StayEnd:
    """The early end of a preemptible member's stay, for a lease or a planned host absence."""

    end: Instant
    yields_to: str | None
    """The lease that begins there; None: the host is planned to be away from then on."""
    on: frozenset[str] = frozenset()
    """Providers by whose bookings that is known: when these change it may be another end, or none.
    """


@dataclass(frozen=True, slots=True)
class LeasePromise:
    """The terms on which a decision holds a lease's places."""

    lease_id: str
    period: Period
    """With the lead and the cleaning."""
    expires_at: Instant
    binding: Binding = Binding.PLANNED
    cleaning: Duration = 0
    """How long before the period's end its tenant's ends."""
    lead: Duration = 0
    """How long after the period's beginning its tenant's begins."""
    offered: bool = False
    """Whether it is an offer only: nobody is told of it, nor has to go before it is accepted."""
    priority: int = 0
    """The lease's."""
    outranks: int = 0
    """Leases of a lower priority than this may give up their places for it."""
    gives_back: bool = False
    """Whether those who yielded to the lease as it was get back the room that it leaves now."""


class SelectsMembers(Protocol):
    """Selects the members to place."""

    def __call__(self, stand: MemberPlaces, /) -> frozenset[MemberName]:
        """Their names, by where members stand now."""


class WaitlistGate(Protocol):
    """Decides whether a request may proceed, or competing waitlist entries come first."""

    def __call__(self, snapshot: Snapshot, keepers: Keepers, *, merely: bool = False) -> bool:
        """False: those before it have had their turn meanwhile, look again.

        With `merely` they have not: it is only told whether there are any.
        """


def ignore_waitlist(
    snapshot: Snapshot,  # noqa: ARG001 - nobody is looked for
    keepers: Keepers,  # noqa: ARG001
    *,
    merely: bool = False,  # noqa: ARG001
) -> bool:
    """A `WaitlistGate` that ignores the waitlist."""
    return True


@dataclass(frozen=True, slots=True)
class KnownHosts:
    """Hosts to try first, and hosts that may not be used."""

    places: Mapping[MemberName, str] = field(default_factory=lambda: MappingProxyType({}))
    """Hosts (UUIDs) on which all members are known to have places: looked at before any other."""
    barred: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Reason id -> hosts (UUIDs) that may not be used."""


class RefusalDetail(Enum):
    """How much of a refusal is explained."""

    FULL = "full"
    """The reasons and the alternatives; they are stored."""
    UNSTORED = "unstored"
    """The reasons, without alternatives in time: nobody asked who would read more."""
    NONE = "none"
    """Only that it is refused; nothing is stored."""


@dataclass(frozen=True, slots=True)
class RefusalReader:
    """The audience and the detail of a refusal's explanation."""

    operator: bool = False
    """Whether other projects' leases may be named by their ids."""
    detail: RefusalDetail = RefusalDetail.FULL
    resized_from: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Role -> members it has, of those whose count changes, where nothing else does: so many
    again would be no change."""

    @property
    def asked(self) -> bool:
        """Whether a client reads the explanation."""
        return self.detail is RefusalDetail.FULL


@dataclass(frozen=True, slots=True)
class DecisionHooks:
    """Hooks of a decision: the waitlist gate, further changes, and the audience of a refusal."""

    turn: WaitlistGate = ignore_waitlist
    """Lets those have their turn who wait before it."""
    also: Callable[[Decision], tuple[Change, ...]] = lambda decision: ()  # noqa: ARG005 - nothing
    """Further changes for the same transaction. A claim that they begin takes its member's place at
    once; one of the decision before that they end does not go on under the new one."""
    reader: RefusalReader = RefusalReader()
    """To whom a refusal is explained."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """The ensemble to store, and the members to place.

    What is known of it before, and what may be done for it, are values of their own.
    """

    ensemble: Ensemble
    generation: int | None
    """The stored generation it replaces; None for a new ensemble."""
    selections: tuple[SelectsMembers, ...]
    """The members that are placed anew; then those where the first alone give no answer."""
    promise: LeasePromise | None = None
    """Given where the decision is a lease's placement."""
    roles: tuple[Role, ...] | None = None
    """Roles to search with where they differ from the ensemble's for once."""
    freed: frozenset[str] = frozenset()
    """Consumers of members that are no more: their holds are dropped, and they keep nobody out."""
    restated: frozenset[str] = frozenset()
    """Policies that are new or changed: they must hold for all who stand, too."""
    known: KnownHosts = KnownHosts()
    allowed: DecisionHooks = DecisionHooks()


@dataclass(frozen=True, slots=True)
class RequestIdentity:
    """The id of the record to create, and the digest of the client's request."""

    id: str
    digest: str = ""
    explained: bool = False
    """Whether the explanation of a refusal is stored even for a dry run."""
    within: RequestIdentity | None = None
    """The request that the decision is a part of, where it is not one of its own."""
