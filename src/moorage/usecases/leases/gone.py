"""Preemptible users who end for leases that move: whom a lease that moves displaces, and when.

They are chosen as a new lease's are (see `yielding`), for one lease after the other, those that
begin first in front: who ends for one is no longer there when the next begins. An offer that moves
displaces nobody.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from moorage.domain.changes import EndBookings
from moorage.domain.errors import Busy
from moorage.domain.period import FOREVER, Period
from moorage.engine.overlay import exchanged
from moorage.usecases.leases.evict import warnings
from moorage.usecases.leases.yielding import displaceable, displaced, last_end, victims, wanted
from moorage.usecases.standing import bookings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change
    from moorage.domain.period import Duration, Instant
    from moorage.domain.placement import Place
    from moorage.engine.snapshot import Snapshot
    from moorage.usecases.leases.asking import Displaced
    from moorage.usecases.leases.planned import Moved
    from moorage.usecases.leases.yielding import Candidate
    from moorage.usecases.ports import Store

Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class Giving:
    """Who may end, and how long before he is told."""

    candidates: Mapping[str, Candidate]
    notice: Duration

    def soon(self, snapshot: Snapshot) -> Snapshot:
        """The fleet where all of them end as soon as they can be warned."""
        end = snapshot.taken_at + self.notice
        return exchanged(snapshot, {one: until(snapshot, one, end) for one in self.candidates})


@dataclass(frozen=True, eq=False)
class Wanting:
    """Places that are wanted anew, and whose they are."""

    places: Sequence[Place]
    period: Period
    consumers: frozenset[str]
    """Whose bookings are not counted: those of the places themselves, and those given up."""
    own: frozenset[str] = frozenset()
    """Who does not end for it."""
    offered: bool = False


@dataclass(frozen=True, eq=False)
class Gone:
    """Who ends for one of those who want places."""

    displaced: tuple[Displaced, ...] = ()
    evicted: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """The providers that each is booked on."""


def all_who_could(snapshot: Snapshot, notice: Duration, own: frozenset[str]) -> Giving:
    """Everybody who could end for a lease that begins ahead."""
    ahead = Period(snapshot.taken_at + notice, FOREVER)
    return Giving(displaceable(snapshot, ahead, notice, own), notice)


def until(snapshot: Snapshot, consumer: str, end: Instant) -> tuple[Booking, ...]:
    """A consumer's bookings, none of which lasts longer than this."""
    return tuple(
        replace(one, period=Period(one.period.start, min(one.period.end, end)))
        for one in bookings_of(snapshot, consumer)
        if one.period.start < end
    )


def gone_for(
    snapshot: Snapshot,
    instead: Mapping[str, tuple[Booking, ...]],
    wanting: Sequence[Wanting],
    giving: Giving,
) -> tuple[Sequence[Gone], Mapping[str, tuple[Booking, ...]]] | None:
    """Who ends for each, in their order, and `instead` with their ends; None: it is not enough.

    Args:
        snapshot: the fleet as it is.
        instead: what those who move, or stay for another time, are booked for then, by consumer.
        wanting: who wants places.
        giving: who may end.
    """
    found: dict[int, Gone] = {}
    then = dict(instead)
    for number in sorted(range(len(wanting)), key=lambda i: wanting[i].period.start):
        gone = _gone(snapshot, then, wanting[number], giving)
        if gone is None:
            return None
        found[number] = gone
        then |= ended(snapshot, gone.displaced)
    return [found[number] for number in range(len(wanting))], then


def _gone(
    snapshot: Snapshot,
    instead: Mapping[str, tuple[Booking, ...]],
    one: Wanting,
    giving: Giving,
) -> Gone | None:
    used = wanted(one.places).keys()
    there = [who for who in giving.candidates.values() if used & who.providers]
    may_go: Mapping[str, Candidate] = {}
    if there and not one.offered:
        view = exchanged(snapshot, instead)
        every = displaceable(view, one.period, giving.notice, one.own)
        may_go = {who: some for who, some in every.items() if who in giving.candidates}
    bare = exchanged(snapshot, {**instead, **dict.fromkeys(one.consumers, ())})
    out = victims(bare, one.places, may_go, one.period)
    if out is None:
        return None
    if not out:
        return Gone()
    end = last_end(snapshot.taken_at, one.period.start, giving.notice)
    assert end is not None, "nobody may go who cannot be warned"
    return Gone(displaced(may_go, out, end), {who: may_go[who].providers for who in sorted(out)})


def wanted_by(moved: Moved, now: Instant) -> Wanting:
    """The new places of a lease that moves."""
    planned = moved.planned
    period = planned.decision.period
    return Wanting(
        tuple(moved.places.values()),
        Period(max(period.start, now), period.end),
        frozenset(planned.bookings(moved.places)),
        planned.consumers,
        planned.lease.proposed,
    )


def of_least_priority(
    candidates: Mapping[str, Candidate],
    best: Answer | None,
    find: Callable[[Mapping[str, Candidate]], Answer | None],
) -> Answer | None:
    """An answer for which those of the lowest priorities end, if others need not.

    Where those of some priorities make room, they do together with more: found by halves.

    Args:
        candidates: all who may end.
        best: the answer with all of them; None: there is none.
        find: the answer with some of them.
    """
    levels = sorted({one.priority for one in candidates.values()})
    while len(levels) > 1 and best is not None:
        half = len(levels) // 2
        few = {name: one for name, one in candidates.items() if one.priority < levels[half]}
        try:
            found = find(few)
        except Busy:
            break
        best = best if found is None else found
        levels = levels[half:] if found is None else levels[:half]
    return best


def ended(snapshot: Snapshot, some: Iterable[Displaced]) -> dict[str, tuple[Booking, ...]]:
    """The bookings of those who are displaced, with the ends that they get."""
    return {one.consumer: until(snapshot, one.consumer, one.end) for one in some}


def endings(store: Store, moved: Iterable[Moved], now: Instant) -> Iterator[Change]:
    """What is written of those who end for leases that move."""
    for one in moved:
        lease_id = one.planned.lease.id
        for gone in one.displaced:
            yield EndBookings(frozenset({gone.consumer}), gone.end, lease_id)
        yield from warnings(store, one.displaced, replace(one.planned.decision, created_at=now))
