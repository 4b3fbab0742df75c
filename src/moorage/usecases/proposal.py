"""What goes into a joint decision and what comes out: values that its steps hand on."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from moorage.domain.bookings import Binding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, MemberName, Role
    from moorage.domain.period import Duration, Instant, Period
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.leases.asking import Displaced
    from moorage.usecases.leases.outranked import Preempted
    from moorage.usecases.ports import Keepers
    from moorage.usecases.standing import Standing


@dataclass(frozen=True, slots=True)
class Ending:
    """Where a preemptible member's stay ends before its time: for a lease, or as its host goes."""

    end: Instant
    yields_to: str | None
    """The lease that begins there; None: the host is planned to be away from then on."""
    on: frozenset[str] = frozenset()
    """Providers by whose bookings that is known: when these change it may be another end, or none.
    """


@dataclass(frozen=True, slots=True)
class Promise:
    """What makes a decision a lease's: when its places are kept, and how long unclaimed ones."""

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


class HasTurn(Protocol):
    """Whether a request may be decided now, or somebody else is before it."""

    def __call__(self, snapshot: Snapshot, keepers: Keepers, *, merely: bool = False) -> bool:
        """False: those before it have had their turn meanwhile, look again.

        With `merely` they have not: it is only told whether there are any.
        """


@dataclass(frozen=True, slots=True)
class Proposal:
    """An ensemble as it shall be stored, and which of its members are placed anew."""

    ensemble: Ensemble
    generation: int | None
    """The stored generation it replaces; None for a new ensemble."""
    anew: Callable[[Standing], frozenset[MemberName]]
    barred: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Reason id -> hosts (UUIDs) that may not be used for it."""
    also: Callable[[Decision], tuple[Change, ...]] = lambda decision: ()  # noqa: ARG005 - nothing
    """Further changes for the same transaction."""
    roles: tuple[Role, ...] | None = None
    """Roles to search with where they differ from the ensemble's for once."""
    freed: frozenset[str] = frozenset()
    """Consumers of members that are no more; their holds are dropped."""
    restated: frozenset[str] = frozenset()
    """Policies that are new or changed: they must hold for all who stand, too."""
    dropped_claims: frozenset[str] = frozenset()
    """Claims of the decision before that do not go on under the new one."""
    promise: Promise | None = None
    """Given where the decision is a lease's placement."""
    or_anew: Callable[[Standing], frozenset[MemberName]] | None = None
    """Members placed anew where `anew` alone gives no answer."""
    known: Mapping[MemberName, str] = field(default_factory=lambda: MappingProxyType({}))
    """Hosts (UUIDs) on which all members are known to have places: looked at before any other."""
    instead_of: frozenset[str] = frozenset()
    """Ensembles that are no more after it; they keep nobody out."""
    taken: Mapping[MemberName, Duration] = field(default_factory=lambda: MappingProxyType({}))
    """Members placed anew whose place is claimed at once, and for how long."""
    unasked: bool = False
    """Nobody asked for it who would read why not: then that is not stored."""
    gives_back: bool = False
    """Whether those who yielded to the lease as it was get back the room that it leaves now."""
    outranks: int = 0
    """Leases of a lower priority than this may give up their places for it."""
    operator: bool = False
    """Whether who asks may know other projects' leases by their ids."""
    resized_from: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Role -> members it has, of those whose count changes, where nothing else does: so many
    again would be no change."""
    turn: HasTurn = lambda *_, **__: True
    """Lets those have their turn who wait before it."""


@dataclass(frozen=True, slots=True)
class Naming:
    """What the decision is called, and the fingerprint of the request that asked for it."""

    id: str
    digest: str = ""
    explained: bool = False
    """Store the explanation of a refusal even of a dry run: somebody asked why."""
    within: Naming | None = None
    """The request that the decision is a part of, where it is not one of its own."""


@dataclass(frozen=True, slots=True)
class Settled:
    """A decision, with the ensemble it is about; with `dry_run` nothing was written."""

    decision: Decision
    ensemble: Ensemble
    snapshot: Snapshot
    dry_run: bool = False
    displaced: tuple[Displaced, ...] = ()
    """Who ends early for it."""
    preempted: tuple[Preempted, ...] = ()
    """Leases that give up their places for it."""
    serials: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """See `Committed`."""
