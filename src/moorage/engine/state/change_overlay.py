"""Overlays what changes of bookings write: the snapshot as it is once they are written.

Only changes of bookings count, of the kinds that decisions write; others leave hosts as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.bookings import BookingState
from moorage.domain.changes import DropBookings, EndBookings, PutBookings
from moorage.domain.period import Period
from moorage.domain.placement import Occupant

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.domain.bookings import Booking
    from moorage.domain.changes import Change
    from moorage.engine.state.columns import ProviderState
    from moorage.engine.state.snapshot import Snapshot


def with_changes(snapshot: Snapshot, changes: Iterable[Change]) -> Snapshot:
    """The snapshot with the places that these changes hold, end or free, in their order."""
    overlay = _Overlay(snapshot)
    for change in changes:
        match change:
            case DropBookings(consumers, decision):
                overlay.drop(consumers, decision)
            case PutBookings(consumer, bookings):
                overlay.drop(frozenset({consumer.uuid}), None)
                overlay.put(Occupant(consumer.uuid, consumer.project_id), bookings)
            case EndBookings():
                overlay.end(change)
    return overlay.laid_over()


def with_moved(snapshot: Snapshot, bookings: Mapping[str, tuple[Booking, ...]]) -> Snapshot:
    """The snapshot in which these consumers (the keys) have only the given bookings.

    They stay the same occupants, as a server does that is built again elsewhere.
    """
    overlay = _Overlay(snapshot)
    for consumer, some in bookings.items():
        overlay.move(consumer, some)
    return overlay.laid_over()


class _Overlay:
    """The states of the providers that changes concern."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._states: dict[int, ProviderState] = {}
        self._rows: dict[str, set[int]] = {}
        """Consumer -> rows on which changes have put bookings of it."""

    def laid_over(self) -> Snapshot:
        """The snapshot with these states."""
        states = self._states.values()
        return self._snapshot.with_states(states) if states else self._snapshot

    def drop(self, consumers: frozenset[str], decision: str | None) -> None:
        """See `DropBookings`."""
        for row in self._rows_of(consumers):
            state = self._state(row)
            stay = [one for one in state.bookings if not _dropped(one, consumers, decision)]
            self._states[row] = _with_bookings(state, stay)

    def put(self, owner: Occupant, bookings: Iterable[Booking]) -> None:
        """See `PutBookings`; what was there is dropped before."""
        for one in bookings:
            row = self._snapshot.row_of[one.provider]
            self._rows.setdefault(owner.consumer, set()).add(row)
            state = self._state(row)
            self._states[row] = _with_bookings(state, (*state.bookings, one), owner)

    def move(self, consumer: str, bookings: Iterable[Booking]) -> None:
        """See `with_moved`."""
        owner: Occupant | None = None
        for row in self._rows_of([consumer]):
            state = self._state(row)
            owner = next((one for one in state.occupants if one.consumer == consumer), owner)
            stay = [one for one in state.bookings if one.consumer != consumer]
            self._states[row] = _with_bookings(state, stay)
        if owner is not None:
            self.put(owner, bookings)

    def end(self, change: EndBookings) -> None:
        """See `EndBookings`."""
        for row in self._rows_of(change.consumers):
            state = self._state(row)
            ended = [
                _ended(one, change) if one.consumer in change.consumers else one
                for one in state.bookings
            ]
            self._states[row] = replace(state, bookings=tuple(ended))

    def _state(self, row: int) -> ProviderState:
        return self._states.get(row) or self._snapshot.state(row)

    def _rows_of(self, consumers: Iterable[str]) -> set[int]:
        return {
            row
            for one in consumers
            for row in (*self._snapshot.rows_of_consumer(one), *self._rows.get(one, ()))
        }


def _with_bookings(
    state: ProviderState, bookings: Iterable[Booking], *owners: Occupant
) -> ProviderState:
    booked = tuple(bookings)
    there = {one.consumer for one in booked}
    known = {one.consumer: one for one in (*owners, *state.occupants) if one.consumer in there}
    return replace(state, bookings=booked, occupants=tuple(known.values()))


def _dropped(booking: Booking, consumers: frozenset[str], decision: str | None) -> bool:
    """Whether `DropBookings` drops a booking."""
    if booking.consumer not in consumers or booking.state is BookingState.ALLOCATED:
        return False
    return decision is None or (
        booking.decision == decision and booking.state is not BookingState.CLAIMED
    )


def _ended(booking: Booking, change: EndBookings) -> Booking:
    """A booking with its new end, which comes after its start."""
    early = change.yields_to is not None
    declared = booking.declared_end if booking.declared_end is not None else booking.period.end
    return replace(
        booking,
        period=Period(booking.period.start, max(change.end, booking.period.start + 1)),
        yields_to=change.yields_to,
        declared_end=declared if early else None,
    )
