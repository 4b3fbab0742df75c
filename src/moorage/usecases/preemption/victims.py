"""Decides which preemptible servers end for a lease, and when.

A lease is granted without displacement if possible. Otherwise a placement is searched for as if
consumers that can be warned in time were gone: only those of the lowest priority, then the next as
well (see `displacement`). Of these, provider by provider, the victims are the fewest of the highest
priority, then the fewest of each lower one; among equally many the youngest, then by id. A
placement with the fewest victims overall is preferred but not proved.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from moorage.domain.errors import Busy
from moorage.engine.state.overlay import first_shortage, without_bookings
from moorage.usecases.decide.request import ForcedEnd
from moorage.usecases.decide.search_result import DisplacedConsumer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Duration, Instant, Period
    from moorage.domain.placement import Place
    from moorage.domain.resources import Amounts
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.ports import Store

Answer = TypeVar("Answer")

_MOST_TRIED: Final = 2_000
"""Sets tried on one provider before the search settles for a set that is not the smallest."""


@dataclass(frozen=True, slots=True)
class PreemptionCandidate:
    """A preemptible consumer with bookings in a lease's period, which could end before it."""

    consumer: str
    project_id: str
    since: Instant
    """The start of its latest booking: the youngest consumer is displaced first."""
    end: Instant
    """Its present end, early or not."""
    declared_end: Instant
    providers: frozenset[str]
    priority: int = 0
    decision: str | None = None
    """The decision whose place it has; None for a consumer that is no member."""


def last_end(now: Instant, start: Instant, notice: Duration) -> Instant | None:
    """The end of a consumer displaced for something that begins at `start`.

    At least `notice` before `start` if possible, and at least `notice` from now; None if a warning
    now would be too late.
    """
    end = max(start - notice, now + notice)
    return end if end <= start else None


def displaceable(
    snapshot: Snapshot, period: Period, notice: Duration, own: Collection[str]
) -> Mapping[str, PreemptionCandidate]:
    """Preemptible consumers that could end before `period`, by UUID.

    An overrun consumer is no candidate: it has missed an end before, and counts as open-ended. Nor
    is one that begins at that end or later, as where the clock was set back.
    """
    now = snapshot.taken_at
    end = last_end(now, period.start, notice)
    if end is None:
        return {}
    found: dict[str, list[Booking]] = {}
    project: dict[str, str] = {}
    for row in np.flatnonzero(snapshot.preemptible).tolist():
        for one in snapshot.bookings_of(row):
            if one.preemptible and now < one.period.end and one.consumer not in own:
                found.setdefault(one.consumer, []).append(one)
        project |= {one.consumer: one.project_id for one in snapshot.state(row).occupants}
    return {
        consumer: PreemptionCandidate(
            consumer=consumer,
            project_id=project[consumer],
            since=max(one.period.start for one in some),
            end=max(one.period.end for one in some),
            declared_end=max(one.declared_end or one.period.end for one in some),
            providers=frozenset(one.provider for one in some),
            priority=max(one.priority for one in some),
            decision=some[0].decision,
        )
        for consumer, some in found.items()
        if any(one.period.overlaps(period) for one in some)
        and all(one.period.start < end for one in some)
    }


def without_candidates(snapshot: Snapshot, consumers: Collection[str]) -> Snapshot:
    """The fleet without these preemptible consumers."""
    rows = np.flatnonzero(snapshot.preemptible).tolist()
    return without_bookings(snapshot, rows, lambda one: one.consumer in consumers)


def victims(
    snapshot: Snapshot,
    places: Iterable[Place],
    candidates: Mapping[str, PreemptionCandidate],
    period: Period,
) -> frozenset[str] | None:
    """The candidates to displace for these places.

    The snapshot is with the candidates, and without the consumers that get the places. All places
    are needed together, in `period`.

    Returns:
        None if there is no room even without all candidates.
    """
    out: set[str] = set()
    for provider, amounts in sorted(total_demand(places).items()):
        more = _on(snapshot, provider, amounts, candidates, frozenset(out), period)
        if more is None:
            return None
        out |= more
    return frozenset(out)


def total_demand(places: Iterable[Place]) -> Mapping[str, Amounts]:
    """Provider UUID -> amounts of all places together."""
    found: dict[str, Counter[str]] = {}
    for place in places:
        for provider, amounts in place.allocations.items():
            found.setdefault(provider, Counter()).update(amounts)
    return {provider: dict(amounts) for provider, amounts in found.items()}


def _on(
    snapshot: Snapshot,
    provider: str,
    amounts: Amounts,
    candidates: Mapping[str, PreemptionCandidate],
    out: frozenset[str],
    period: Period,
) -> frozenset[str] | None:
    """The fewest further victims on one provider, the lowest priorities preferred."""
    state = snapshot.state(snapshot.row_of[provider])
    here = sorted(
        (
            one
            for one in candidates.values()
            if provider in one.providers and one.consumer not in out
        ),
        key=lambda one: (-one.since, one.consumer),
    )
    there = [one for one in state.bookings if one.consumer not in out]

    def fits(gone: frozenset[str]) -> bool:
        rest = (one for one in there if one.consumer not in gone)
        return first_shortage(state, rest, amounts, period, snapshot.taken_at) is None

    below = frozenset(one.consumer for one in here)
    if not fits(below):
        return None
    chosen: frozenset[str] = frozenset()
    for priority in sorted({one.priority for one in here}, reverse=True):
        mine = [one.consumer for one in here if one.priority == priority]
        below -= frozenset(mine)
        chosen |= _fewest(mine, chosen | below, fits)
    return chosen


def _fewest(
    consumers: list[str], gone: frozenset[str], fits: Callable[[frozenset[str]], bool]
) -> frozenset[str]:
    """The fewest consumers besides `gone` without which there is room, the first preferred.

    There must be room without all of them.
    """
    for some in islice(_sets(consumers), _MOST_TRIED):
        if fits(gone | some):
            return some
    everyone = frozenset(consumers)
    for one in reversed(consumers):
        if fits(gone | everyone - {one}):
            everyone -= {one}
    return everyone


def _sets(consumers: list[str]) -> Iterator[frozenset[str]]:
    """Subsets: the smallest first, among equally many those of the first consumers."""
    sizes = (combinations(consumers, size) for size in range(len(consumers) + 1))
    return (frozenset(some) for some in chain.from_iterable(sizes))


def with_least_priority(
    candidates: Mapping[str, PreemptionCandidate],
    best: Answer | None,
    find: Callable[[Mapping[str, PreemptionCandidate]], Answer | None],
) -> Answer | None:
    """The answer that displaces only the lowest priorities, found by bisection.

    Bisection is valid because displacing more priorities never makes less room.

    `best` is the answer with all candidates, None if there is none; `find` searches for one with
    some of them.
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


def displacements_of(
    candidates: Mapping[str, PreemptionCandidate], out: Iterable[str], end: Instant
) -> tuple[DisplacedConsumer, ...]:
    """The early ends of chosen victims: the lowest priority first, then the youngest."""
    chosen = sorted(
        (candidates[one] for one in out), key=lambda one: (one.priority, -one.since, one.consumer)
    )
    return tuple(
        DisplacedConsumer(
            consumer=one.consumer,
            project_id=one.project_id,
            end=min(end, one.end),
            declared_end=one.declared_end,
            priority=one.priority,
            decision=one.decision,
        )
        for one in chosen
    )


def required_end(
    lease_of: Callable[[str], str | None],
    snapshot: Snapshot,
    taken: Mapping[str, Amounts],
    stay: Period,
    notice: Duration,
) -> ForcedEnd | None:
    """The latest end of a stay before a lease needs its provider, or the provider is away.

    The snapshot is without the consumer that stays; `taken` are its amounts by provider UUID.
    `lease_of` returns the id of a decision's lease, or None.

    Returns:
        None if there is room for all of `stay`.

    Raises:
        NotALease: the shortage is due to neither, or comes too soon to give notice.
    """
    now = snapshot.taken_at
    found: list[ForcedEnd] = []
    for provider, amounts in taken.items():
        state = snapshot.state(snapshot.row_of[provider])
        at = first_shortage(state, state.bookings, amounts, stay, now)
        if at is None:
            continue
        lease = lease_from(lease_of, (one for one in state.bookings if one.period.start == at))
        # A planned absence needs no notice beforehand: the end of the stay announces it.
        away = lease is None and any(one.start == at for one in state.down)
        end = at if away and at - notice >= now else last_end(now, at, notice)
        if end is None or not (away or lease):
            raise NotALease
        found.append(ForcedEnd(end, lease, frozenset(taken)))
    return min(found, key=by_end, default=None)


def by_end(ending: ForcedEnd) -> tuple[Instant, str]:
    """Sort key: the earlier end first."""
    return ending.end, ending.yields_to or ""


class NotALease(Exception):
    """The obstacle is not a lease that begins later."""


def lease_from(lease_of: Callable[[str], str | None], bookings: Iterable[Booking]) -> str | None:
    """The first lease found among the bookings' decisions, or None."""
    for decision in sorted({one.decision for one in bookings if one.decision is not None}):
        if (lease := lease_of(decision)) is not None:
            return lease
    return None


def displaced_for(store: Store, lease_id: str) -> tuple[DisplacedConsumer, ...]:
    """Consumers that end early for a lease: lowest priority first, then the youngest."""
    found: dict[str, tuple[Instant, DisplacedConsumer]] = {}
    for consumer, booking in store.yielding(lease_id):
        end = booking.period.end
        declared = booking.declared_end or end
        found[consumer.uuid] = (
            booking.period.start,
            DisplacedConsumer(
                consumer.uuid,
                consumer.project_id,
                end,
                declared,
                booking.priority,
                booking.decision,
            ),
        )
    ordered = sorted(found.values(), key=lambda one: (one[1].priority, -one[0], one[1].consumer))
    return tuple(one for _, one in ordered)
