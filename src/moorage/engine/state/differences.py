"""What differs between two snapshots of one ledger, for those who act on changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Period
    from moorage.domain.placement import Occupant
    from moorage.engine.state.columns import ProviderState
    from moorage.engine.state.snapshot import Snapshot


@dataclass(slots=True)
class Differences:
    """The providers and consumers that differ between two snapshots."""

    rows: set[int] = field(default_factory=set)
    """Rows, of either snapshot, where consumers have come, gone, or changed owner, tags or
    period."""
    consumers: set[str] = field(default_factory=set)
    """Consumers that have come to a provider or left one, or whose booking names another decision.
    """
    decisions: set[str] = field(default_factory=set)
    """The decisions that the bookings of such consumers name."""
    providers: set[int] = field(default_factory=set)
    """Rows of providers that are new or gone, or have other inventories, traits or aggregates."""


def differences(old: Snapshot, new: Snapshot) -> Differences:
    """Compare two snapshots; providers whose state is the same object cost nothing."""
    found = Differences()
    for row, before, after in _changed_states(old, new):
        if before is None or after is None or before.form != after.form:
            found.providers.add(row)
        moved = _bookers(before) ^ _bookers(after)
        beside = _occupants(before) != _occupants(after) or _periods(before) != _periods(after)
        if moved or beside:
            found.rows.add(row)
            found.consumers.update(consumer for consumer, _ in moved)
            found.decisions.update(decision for _, decision in moved if decision is not None)
    return found


def _changed_states(
    old: Snapshot, new: Snapshot
) -> Iterator[tuple[int, ProviderState | None, ProviderState | None]]:
    """Row, and its state in each snapshot, where these are different objects."""
    before, after = old.states.chunks, new.states.chunks
    row = 0
    for number in range(max(len(before), len(after))):
        was = before[number] if number < len(before) else ()
        now = after[number] if number < len(after) else ()
        size = max(len(was), len(now))
        if was is not now:
            for at in range(size):
                one = was[at] if at < len(was) else None
                other = now[at] if at < len(now) else None
                if one is not other:
                    yield row + at, one, other
        row += size


def _occupants(state: ProviderState | None) -> set[Occupant]:
    return set() if state is None else set(state.occupants)


def _bookers(state: ProviderState | None) -> set[tuple[str, str | None]]:
    bookings: tuple[Booking, ...] = () if state is None else state.bookings
    return {(one.consumer, one.decision) for one in bookings}


def _periods(state: ProviderState | None) -> set[tuple[str, Period]]:
    bookings: tuple[Booking, ...] = () if state is None else state.bookings
    return {(one.consumer, one.period) for one in bookings}
