"""Overlays: snapshots with some bookings changed or removed, to try a change.

Only occupancy differs; revisions, trees and inventories are those of the original snapshot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.engine.time.capacity_check import shortfall
from moorage.engine.time.occupancy import Spans, breakpoints, levels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Instant, Period
    from moorage.domain.providers import Inventory
    from moorage.domain.resources import Amounts
    from moorage.engine.state.columns import ProviderState
    from moorage.engine.state.snapshot import Snapshot


def without_bookings(
    snapshot: Snapshot, rows: Iterable[int], removed: Callable[[Booking], bool]
) -> Snapshot:
    """The snapshot without the bookings on these rows for which `removed` is true."""
    changed = []
    for row in rows:
        state = snapshot.state(row)
        rest = tuple(one for one in state.bookings if not removed(one))
        if len(rest) < len(state.bookings):
            changed.append(replace(state, bookings=rest))
    return snapshot.with_states(changed) if changed else snapshot


def with_bookings(snapshot: Snapshot, replacement: Mapping[str, tuple[Booking, ...]]) -> Snapshot:
    """The snapshot in which these consumers (the keys) have only the given bookings."""
    fresh: dict[int, list[Booking]] = {}
    for consumer, bookings in replacement.items():
        for row in snapshot.rows_of_consumer(consumer):
            fresh.setdefault(row, [])
        for one in bookings:
            fresh.setdefault(snapshot.row_of[one.provider], []).append(one)
    states = []
    for row, new in fresh.items():
        state = snapshot.state(row)
        rest = tuple(one for one in state.bookings if one.consumer not in replacement)
        states.append(replace(state, bookings=(*rest, *new)))
    return snapshot.with_states(states) if states else snapshot


def without_consumers(snapshot: Snapshot, consumers: Iterable[str]) -> Snapshot:
    """The snapshot without the bookings of these consumers."""
    return with_bookings(snapshot, dict.fromkeys(consumers, ()))


def worsens_overage(snapshot: Snapshot, replacement: Mapping[str, tuple[Booking, ...]]) -> bool:
    """Whether replacing the bookings of these consumers makes an overage worse at any instant."""
    now = snapshot.taken_at
    rows = {row for consumer in replacement for row in snapshot.rows_of_consumer(consumer)}
    for row in rows | {snapshot.row_of[b.provider] for some in replacement.values() for b in some}:
        state = snapshot.state(row)
        others = [one for one in state.bookings if one.consumer not in replacement]
        before = [one for one in state.bookings if one.consumer in replacement]
        after = [
            one
            for some in replacement.values()
            for one in some
            if one.provider == state.provider.uuid
        ]
        for inventory in state.provider.inventories:
            name = inventory.resource_class
            if (
                shortfall(
                    inventory.capacity,
                    others=booking_spans(others, name, now).joined(
                        away_spans(state, inventory, now)
                    ),
                    before=booking_spans(before, name, now),
                    after=booking_spans(after, name, now),
                    since=now,
                )
                is not None
            ):
                return True
    return False


def first_shortage(
    state: ProviderState,
    bookings: Iterable[Booking],
    amounts: Amounts,
    period: Period,
    now: Instant,
) -> Instant | None:
    """The first instant of `period` at which `amounts` do not fit beside these bookings.

    The state's inventories and `down` count, its bookings do not. The `amounts` are additional,
    over the whole period, which is judged from `now` on.

    Returns:
        None if they fit throughout.
    """
    bookings, since = list(bookings), max(period.start, now)
    found: list[Instant] = []
    for inventory in state.provider.inventories:
        amount = amounts.get(inventory.resource_class, 0)
        if not amount:
            continue
        taken = booking_spans(bookings, inventory.resource_class, now)
        taken = taken.joined(away_spans(state, inventory, now))
        instants = breakpoints((taken,), since)
        instants = instants[instants < period.end]
        short = instants[levels(taken, instants) + amount > inventory.capacity]
        if len(short):
            found.append(int(short[0]))
    return min(found, default=None)


def booking_spans(bookings: Iterable[Booking], resource_class: str, now: Instant) -> Spans:
    """Spans of live bookings of a class on one provider; the owner is 0."""
    return Spans.of(
        (0, one.period.start, one.occupies_until(now), one.amounts[resource_class])
        for one in bookings
        if one.live(now) and resource_class in one.amounts
    )


def away_spans(state: ProviderState, inventory: Inventory, now: Instant) -> Spans:
    """A provider's periods without capacity, as spans that occupy a whole inventory."""
    return Spans.of(
        (0, one.start, one.end, inventory.capacity) for one in state.down if one.end > now
    )
