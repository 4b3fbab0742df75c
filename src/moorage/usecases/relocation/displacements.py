"""Chooses the preemptible servers that end early when leases move.

Victims are chosen as for a new lease (see `preemption.victims`), lease by lease in the order of
their starts: a consumer displaced for one lease is gone for the next. An offer that moves displaces
nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.period import FOREVER, Period
from moorage.engine.state.overlay import with_bookings
from moorage.usecases.decide.member_places import bookings_of
from moorage.usecases.preemption.displacement import DisplacementConcession, displacement
from moorage.usecases.preemption.victims import (
    displaceable,
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
    """The candidates for displacement, and the notice they are given."""

    candidates: Mapping[str, PreemptionCandidate]
    notice: Duration

    def soon(self, snapshot: Snapshot) -> Snapshot:
        """The fleet as if all candidates ended as soon as they can be warned."""
        end = snapshot.taken_at + self.notice
        return with_bookings(
            snapshot, {one: bookings_until(snapshot, one, end) for one in self.candidates}
        )


@dataclass(frozen=True, eq=False)
class RequiredPlaces:
    """Places that are needed, their period, and the consumers they are for."""

    places: Sequence[Place]
    period: Period
    consumers: frozenset[str]
    """Consumers whose bookings are ignored: the old and the new ones of the places."""
    own: frozenset[str] = frozenset()
    """Consumers that are not displaced for these places."""
    offered: bool = False


def preemption_pool(snapshot: Snapshot, notice: Duration, own: frozenset[str]) -> PreemptionPool:
    """All consumers that could be displaced for a lease that begins later."""
    from_notice = Period(snapshot.taken_at + notice, FOREVER)
    return PreemptionPool(displaceable(snapshot, from_notice, notice, own), notice)


def bookings_until(snapshot: Snapshot, consumer: str, end: Instant) -> tuple[Booking, ...]:
    """A consumer's bookings, cut off at `end`."""
    return tuple(
        replace(one, period=Period(one.period.start, min(one.period.end, end)))
        for one in bookings_of(snapshot, consumer)
        if one.period.start < end
    )


def displace_for(
    snapshot: Snapshot,
    instead: Mapping[str, tuple[Booking, ...]],
    required: Sequence[RequiredPlaces],
    pool: PreemptionPool,
) -> tuple[Sequence[DisplacementConcession], Mapping[str, tuple[Booking, ...]]] | None:
    """The displacement for each group of places, and `instead` with the new ends; None if no room.

    `instead` are new bookings, by consumer, of those that move or stay for another period.
    """
    found: dict[int, DisplacementConcession] = {}
    then = dict(instead)
    for number in sorted(range(len(required)), key=lambda i: required[i].period.start):
        gone = _displacement(snapshot, then, required[number], pool)
        if gone is None:
            return None
        found[number] = gone
        then |= ended_bookings(snapshot, gone.displaced)
    return [found[number] for number in range(len(required))], then


def _displacement(
    snapshot: Snapshot,
    instead: Mapping[str, tuple[Booking, ...]],
    one: RequiredPlaces,
    pool: PreemptionPool,
) -> DisplacementConcession | None:
    used = total_demand(one.places).keys()
    there = [who for who in pool.candidates.values() if used & who.providers]
    may_go: Mapping[str, PreemptionCandidate] = {}
    if there and not one.offered:
        view = with_bookings(snapshot, instead)
        every = displaceable(view, one.period, pool.notice, one.own)
        may_go = {who: some for who, some in every.items() if who in pool.candidates}
    bare = with_bookings(snapshot, {**instead, **dict.fromkeys(one.consumers, ())})
    out = victims(bare, one.places, may_go, one.period)
    if out is None:
        return None
    if not out:
        return DisplacementConcession()
    end = last_end(snapshot.taken_at, one.period.start, pool.notice)
    assert end is not None, "nobody may go who cannot be warned"
    return displacement(may_go, out, end)


def ended_bookings(
    snapshot: Snapshot, some: Iterable[DisplacedConsumer]
) -> dict[str, tuple[Booking, ...]]:
    """The bookings of displaced consumers with their new ends."""
    return {one.consumer: bookings_until(snapshot, one.consumer, one.end) for one in some}
