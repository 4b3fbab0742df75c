"""A snapshot with some bookings changed or removed: what if they ended?

Only occupancy differs; revisions, trees and inventories are those of the snapshot it is made of.
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


def without(snapshot: Snapshot, rows: Iterable[int], gone: Callable[[Booking], bool]) -> Snapshot:
    """The same fleet without some bookings on these rows."""
    changed = []
    for row in rows:
        state = snapshot.state(row)
        rest = tuple(one for one in state.bookings if not gone(one))
        if len(rest) < len(state.bookings):
            changed.append(replace(state, bookings=rest))
    return snapshot.with_states(changed) if changed else snapshot


def exchanged(snapshot: Snapshot, instead: Mapping[str, tuple[Booking, ...]]) -> Snapshot:
    """The same fleet where each of these consumers has the bookings given, and no others."""
    fresh: dict[int, list[Booking]] = {}
    for consumer, bookings in instead.items():
        for row in snapshot.rows_of_consumer(consumer):
            fresh.setdefault(row, [])
        for one in bookings:
            fresh.setdefault(snapshot.row_of[one.provider], []).append(one)
    states = []
    for row, new in fresh.items():
        state = snapshot.state(row)
        rest = tuple(one for one in state.bookings if one.consumer not in instead)
        states.append(replace(state, bookings=(*rest, *new)))
    return snapshot.with_states(states) if states else snapshot


def vacated(snapshot: Snapshot, consumers: Iterable[str]) -> Snapshot:
    """The same fleet without anything that these consumers have booked."""
    return exchanged(snapshot, dict.fromkeys(consumers, ()))


def worsens(snapshot: Snapshot, instead: Mapping[str, tuple[Booking, ...]]) -> bool:
    """Whether giving these consumers other bookings makes an overage worse at any instant."""
    now = snapshot.taken_at
    rows = {row for consumer in instead for row in snapshot.rows_of_consumer(consumer)}
    for row in rows | {snapshot.row_of[b.provider] for some in instead.values() for b in some}:
        state = snapshot.state(row)
        others = [one for one in state.bookings if one.consumer not in instead]
        before = [one for one in state.bookings if one.consumer in instead]
        after = [
            one for some in instead.values() for one in some if one.provider == state.provider.uuid
        ]
        for inventory in state.provider.inventories:
            name = inventory.resource_class
            if (
                shortfall(
                    inventory.capacity,
                    others=spans(others, name, now).and_also(down(state, inventory, now)),
                    before=spans(before, name, now),
                    after=spans(after, name, now),
                    since=now,
                )
                is not None
            ):
                return True
    return False


def overflow(
    state: ProviderState,
    bookings: Iterable[Booking],
    amounts: Amounts,
    period: Period,
    now: Instant,
) -> Instant | None:
    """The first instant of `period` with no room for so much more beside these bookings.

    Args:
        state: of one provider; what counts are its inventories, and when it has no capacity.
        bookings: on it, instead of those it has.
        amounts: what shall be taken besides, all the time.
        period: only from `now` on.
        now: the present instant.

    Returns:
        None where there is room throughout.
    """
    bookings, since = list(bookings), max(period.start, now)
    found: list[Instant] = []
    for inventory in state.provider.inventories:
        amount = amounts.get(inventory.resource_class, 0)
        if not amount:
            continue
        taken = spans(bookings, inventory.resource_class, now)
        taken = taken.and_also(down(state, inventory, now))
        instants = breakpoints((taken,), since)
        instants = instants[instants < period.end]
        short = instants[levels(taken, instants) + amount > inventory.capacity]
        if len(short):
            found.append(int(short[0]))
    return min(found, default=None)


def spans(bookings: Iterable[Booking], resource_class: str, now: Instant) -> Spans:
    """What live bookings take of a class of one provider, and when; the owner is 0."""
    return Spans.of(
        (0, one.period.start, one.occupies_until(now), one.amounts[resource_class])
        for one in bookings
        if one.live(now) and resource_class in one.amounts
    )


def down(state: ProviderState, inventory: Inventory, now: Instant) -> Spans:
    """When a provider has no capacity, as spans that take all of an inventory."""
    return Spans.of(
        (0, one.start, one.end, inventory.capacity) for one in state.down if one.end > now
    )
