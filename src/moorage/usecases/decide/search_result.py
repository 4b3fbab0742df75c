"""Input and result of a search: the observation, the placement, and the concessions of others."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble, MemberName
    from moorage.domain.period import Instant, Period
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.request import Proposal, StayEnd
    from moorage.usecases.decide.solution import VerifiedPlacement
    from moorage.usecases.shared.environment import Environment


@dataclass(frozen=True, slots=True)
class DisplacedConsumer:
    """A preemptible consumer that ends early for a lease."""

    consumer: str
    project_id: str
    end: Instant
    """When it ends now."""
    declared_end: Instant
    """When it would have ended."""
    priority: int = 0
    decision: str | None = None
    """The decision whose place it has, of a member."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The ledger as one attempt reads it."""

    snapshot: Snapshot
    stand: MemberPlaces
    keepers: tuple[Ensemble, ...]
    """See `closed_hosts`."""


class Concession(Protocol):
    """What other consumers give up for a placement; the base class gives up nothing."""

    @property
    def displaced(self) -> tuple[DisplacedConsumer, ...]:
        """Preemptible consumers that end early for it."""
        return ()

    def relied(self) -> Mapping[str, frozenset[str]]:
        """Consumers that give way, and the providers on which each must still be booked."""
        return {}

    def providers(self) -> frozenset[str]:
        """Further providers that are used: where those come to who move."""
        return frozenset()

    def leases(self) -> tuple[str, ...]:
        """Leases that leave their places: who ended early for them there may get time back."""
        return ()

    def bookings(
        self,
        snapshot: Snapshot,  # noqa: ARG002 - nobody moves
    ) -> Mapping[str, tuple[Booking, ...]]:
        """What consumers of those leases are booked for afterwards, and who ends where they go."""
        return {}

    def frees(
        self,
        env: Environment,  # noqa: ARG002 - no place is free by it
        now: Instant,  # noqa: ARG002
    ) -> Iterator[Change]:
        """The changes that free places; written before the placement."""
        yield from ()

    def ends(
        self,
        env: Environment,  # noqa: ARG002 - nobody ends
        proposal: Proposal,  # noqa: ARG002
        decision: Decision,  # noqa: ARG002
    ) -> Iterator[Change]:
        """The changes that end stays early, with their warnings; written with the placement."""
        yield from ()


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The result of one search: a placement, or the problem without one."""

    built: BuiltProblem
    found: VerifiedPlacement | None
    period: Period
    """When the places are kept, by the decision."""
    staying: Mapping[MemberName, tuple[Booking, ...]]
    """Members that stay put and are booked anew: their bookings afterwards."""
    endings: Mapping[MemberName, StayEnd] = field(default_factory=lambda: MappingProxyType({}))
    """Members placed now that cannot stay throughout."""
    concessions: tuple[Concession, ...] = ()
    """What others give up for it."""
    unsure: bool = False
    """Whether it is not proved that no strategy can make room for it."""
    clash: bool = False
    """Whether those who stay put cannot stay as long as is asked: nothing was looked for."""
    plain: bool = False
    """Whether all of it was asked for, with all others where they are."""

    @property
    def displaced(self) -> tuple[DisplacedConsumer, ...]:
        """Consumers that end early for the placement, or for leases that move for it."""
        return tuple(gone for one in self.concessions for gone in one.displaced)

    @property
    def ends_by(self) -> Iterator[str]:
        """Providers by whose bookings members have an end for a lease, which may be gone soon."""
        for one in self.endings.values():
            yield from one.on
        for some in self.staying.values():
            yield from (booking.provider for booking in some if booking.yields_to is not None)


def refusal_to_explain(refused: Sequence[SearchResult]) -> SearchResult:
    """The result that a refusal is explained by, of those with all others where they are.

    That is the last whose problem has no answer: it leaves the most open, so what stands against it
    stands against every other. Where nobody could be placed anew instead, the first.
    """
    last: SearchResult | None = None
    for one in refused:
        last = last if one.clash else one
    return last or refused[0]
