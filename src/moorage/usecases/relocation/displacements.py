"""Preemptible users who end early for leases that move: who, and when.

They are chosen as a new lease's are (see `preemption.victims`), for one lease after the
other, those that begin first in front: who ends for one is no longer there when the next begins. An
offer that moves displaces nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from moorage.domain.period import FOREVER, Period
from moorage.engine.state.overlay import with_bookings
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.preemption.victims import (
    displaceable,
    displacements_of,
    last_end,
    total_demand,
    victims,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Duration, Instant
    from moorage.domain.placement import Place
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.decide.search_result import DisplacedConsumer
    from moorage.usecases.preemption.victims import PreemptionCandidate


@dataclass(frozen=True, eq=False)
class PreemptionPool:
    """The candidates that may end early, and the notice that they get."""

    candidates: Mapping[str, PreemptionCandidate]
    notice: Duration

    def soon(self, snapshot: Snapshot) -> Snapshot:
        """The fleet where all of them end as soon as they can be warned."""
        end = snapshot.taken_at + self.notice
        return with_bookings(
            snapshot, {one: bookings_until(snapshot, one, end) for one in self.candidates}
        )


@dataclass(frozen=True, eq=False)
class WantedPlaces:
    """Places that are wanted, when, and the consumers they are for."""

    places: Sequence[Place]
    period: Period
    consumers: frozenset[str]
    """Whose bookings are not counted: those of the places themselves, and those given up."""
    own: frozenset[str] = frozenset()
    """Who does not end for it."""
    offered: bool = False


@dataclass(frozen=True, eq=False)
class Displacement:
    """The consumers that end early for one group of wanted places."""

    displaced: tuple[DisplacedConsumer, ...] = ()
    evicted: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """The providers that each is booked on."""


def preemption_pool(snapshot: Snapshot, notice: Duration, own: frozenset[str]) -> PreemptionPool:
    """Everybody who could end for a lease that begins ahead."""
    ahead = Period(snapshot.taken_at + notice, FOREVER)
    return PreemptionPool(displaceable(snapshot, ahead, notice, own), notice)


def bookings_until(snapshot: Snapshot, consumer: str, end: Instant) -> tuple[Booking, ...]:
    """A consumer's bookings, none of which lasts longer than this."""
    return tuple(
        replace(one, period=Period(one.period.start, min(one.period.end, end)))
        for one in bookings_of(snapshot, consumer)
        if one.period.start < end
    )


def displace_for(
    snapshot: Snapshot,
    instead: Mapping[str, tuple[Booking, ...]],
    wanting: Sequence[WantedPlaces],
    giving: PreemptionPool,
) -> tuple[Sequence[Displacement], Mapping[str, tuple[Booking, ...]]] | None:
    """Who ends for each, in their order, and `instead` with their ends; None: it is not enough.

    Args:
        snapshot: the fleet as it is.
        instead: what those who move, or stay for another time, are booked for then, by consumer.
        wanting: who wants places.
        giving: who may end.
    """
    found: dict[int, Displacement] = {}
    then = dict(instead)
    for number in sorted(range(len(wanting)), key=lambda i: wanting[i].period.start):
        gone = _gone(snapshot, then, wanting[number], giving)
        if gone is None:
            return None
        found[number] = gone
        then |= ended_bookings(snapshot, gone.displaced)
    return [found[number] for number in range(len(wanting))], then


def _gone(
    snapshot: Snapshot,
    instead: Mapping[str, tuple[Booking, ...]],
    one: WantedPlaces,
    giving: PreemptionPool,
) -> Displacement | None:
    used = total_demand(one.places).keys()
    there = [who for who in giving.candidates.values() if used & who.providers]
    may_go: Mapping[str, PreemptionCandidate] = {}
    if there and not one.offered:
        view = with_bookings(snapshot, instead)
        every = displaceable(view, one.period, giving.notice, one.own)
        may_go = {who: some for who, some in every.items() if who in giving.candidates}
    bare = with_bookings(snapshot, {**instead, **dict.fromkeys(one.consumers, ())})
    out = victims(bare, one.places, may_go, one.period)
    if out is None:
        return None
    if not out:
        return Displacement()
    end = last_end(snapshot.taken_at, one.period.start, giving.notice)
    assert end is not None, "nobody may go who cannot be warned"
    return Displacement(
        displacements_of(may_go, out, end), {who: may_go[who].providers for who in sorted(out)}
    )


def ended_bookings(
    snapshot: Snapshot, some: Iterable[DisplacedConsumer]
) -> dict[str, tuple[Booking, ...]]:
    """The bookings of displaced consumers with their new ends."""
    return {one.consumer: bookings_until(snapshot, one.consumer, one.end) for one in some}
