"""Input and result of a search: the observation, the placement, and the concessions for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change
    from moorage.domain.decisions import Decision
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant, Period
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.problem import Problem
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.decide.request import ForcedEnd, Proposal
    from moorage.usecases.decide.solution import VerifiedPlacement
    from moorage.usecases.shared.environment import Environment


@dataclass(frozen=True, slots=True)
class DisplacedConsumer:
    """A preemptible consumer that ends early for a lease."""

    consumer: str
    project_id: str
    end: Instant
    """Its new, earlier end."""
    declared_end: Instant
    """Its end without the displacement."""
    priority: int = 0
    decision: str | None = None
    """The decision whose place it has, if it is a member's."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The ledger as one attempt reads it."""

    snapshot: Snapshot
    member_places: MemberPlaces
    exclusive: tuple[Ensemble, ...]
    """See `closed_hosts`."""


class Concession(Protocol):
    """What other consumers give up for a placement; the base class gives up nothing."""

    @property
    def displaced(self) -> tuple[DisplacedConsumer, ...]:
        """Preemptible consumers that end early for the placement."""
        return ()

    def relied(self) -> Mapping[str, frozenset[str]]:
        """Consumer that gives way -> providers on which it must still be booked at commit."""
        return {}

    def providers(self) -> frozenset[str]:
        """Further providers that the commit relies on: the new places of consumers that move."""
        return frozenset()

    def leases(self) -> tuple[str, ...]:
        """Leases that leave their places: consumers displaced for them may get a reprieve."""
        return ()

    def bookings(
        self,
        snapshot: Snapshot,  # noqa: ARG002 - nobody moves
    ) -> Mapping[str, tuple[Booking, ...]]:
        """Consumer -> new bookings, of these leases and of consumers displaced by their moves."""
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
    placement: VerifiedPlacement | None
    period: Period
    """The period for which the places are booked."""
    staying: Mapping[MemberName, tuple[Booking, ...]]
    """Fixed member -> its new bookings, if they are rewritten."""
    endings: Mapping[MemberName, ForcedEnd] = field(default_factory=lambda: MappingProxyType({}))
    """Member placed now -> its early end, if it cannot stay for the whole period."""
    concessions: tuple[Concession, ...] = ()
    """What other leases and servers give up for the placement."""
    unsure: bool = False
    """Without `placement`: whether it is not proved that no strategy can make room."""
    clash: bool = False
    """Whether fixed members cannot stay for the whole period; then no search was made."""
    plain: bool = False
    """Whether the search was for the unchanged request, with all other bookings unchanged."""

    strategy: str = ""
    """With `placement`: the name of the strategy that found it."""

    @property
    def displaced(self) -> tuple[DisplacedConsumer, ...]:
        """Consumers that end early for the placement, or for leases that move for it."""
        return tuple(gone for one in self.concessions for gone in one.displaced)

    @property
    def ends_by(self) -> Iterator[str]:
        """Providers whose bookings determine the early ends of members; see `ForcedEnd.on`."""
        for one in self.endings.values():
            yield from one.on
        for some in self.staying.values():
            yield from (booking.provider for booking in some if booking.yields_to is not None)


def refusal_to_explain(refused: Sequence[SearchResult]) -> SearchResult:
    """The plain result by which a refusal is explained.

    That is the last one without a clash whose problem permits all that the earlier ones do: it
    fixes the fewest members, so its conflicts hold for them too. If all have a clash, it is the
    first.
    """
    stated = [one for one in refused if not one.clash]
    for number, one in reversed(tuple(enumerate(stated))):
        if all(_permits_fixed(one.built.problem, other.built.problem) for other in stated[:number]):
            return one
    return refused[0]


def _permits_fixed(problem: Problem, other: Problem) -> bool:
    """Whether members that are fixed in the other problem may be on their hosts in this one.

    A member that stays on a host may be there longer than one that is placed on it now: the host
    may be closed to new ones, or planned to be away before their end.
    """
    row_of = {host: row for row, host in enumerate(problem.hosts)}
    number_of = {member: number for number, member in enumerate(problem.members)}
    taken = np.zeros_like(problem.free)
    for number in np.flatnonzero(other.fixed >= 0).tolist():
        here = number_of.get(other.members[number])
        row = row_of.get(other.hosts[other.fixed[number]])
        if here is None:
            continue
        if row is None:
            return False
        fixed, role = int(problem.fixed[here]), problem.role_of[here]
        if fixed < 0:
            taken[row] += problem.demand[role]
        if not (fixed == row if fixed >= 0 else problem.allowed[role, row]):
            return False
    return bool(((taken <= problem.free) | (taken == 0)).all())
