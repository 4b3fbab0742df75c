"""Bookings of a snapshot by consumer: added as places are taken, removed as consumers leave."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.bookings import Booking
from moorage.domain.period import Period
from moorage.domain.placement import Occupant
from moorage.engine.state.arrivals import AddedBookings
from moorage.testing.problems import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.resources import Amounts
    from moorage.engine.state.columns import ProviderState
    from moorage.engine.state.snapshot import Snapshot


def with_consumers(snapshot: Snapshot, taken: Mapping[str, Mapping[str, Amounts]]) -> Snapshot:
    """The next snapshot, with what new consumers take: consumer -> provider -> amounts."""
    by_provider: dict[str, list[Booking]] = {}
    for consumer, places in taken.items():
        for uuid, amounts in places.items():
            booking = Booking(consumer, uuid, amounts, Period(0))
            by_provider.setdefault(uuid, []).append(booking)
    added = []
    for uuid, bookings in by_provider.items():
        old = snapshot.state(snapshot.row(uuid))
        occupants = (Occupant(one.consumer, PROJECT) for one in bookings)
        state = _changed(old, (*old.bookings, *bookings), (*old.occupants, *occupants))
        added.append(AddedBookings(state, tuple(bookings)))
    return snapshot.with_states(added, revision=snapshot.revision + 1)


def without_consumers(snapshot: Snapshot, left: Mapping[str, Iterable[str]]) -> Snapshot:
    """The next snapshot, without these consumers: provider -> those that have left it."""
    changed = []
    for uuid, consumers in left.items():
        old, gone = snapshot.state(snapshot.row(uuid)), frozenset(consumers)
        bookings = tuple(one for one in old.bookings if one.consumer not in gone)
        occupants = tuple(one for one in old.occupants if one.consumer not in gone)
        changed.append(_changed(old, bookings, occupants))
    return snapshot.with_states(changed, revision=snapshot.revision + 1)


def _changed(
    old: ProviderState, bookings: tuple[Booking, ...], occupants: tuple[Occupant, ...]
) -> ProviderState:
    provider = replace(old.provider, revision=old.provider.revision + 1)
    return replace(old, provider=provider, bookings=bookings, occupants=occupants)
