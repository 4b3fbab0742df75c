"""Adds open-ended bookings to the columns of known providers, in one step for all providers.

Most commits add bookings that have begun and have no end, and change nothing else on the provider.
Such a booking raises the occupancy at every instant from now on by its amounts. So the amounts are
added to the provider's sums, and its other bookings are not read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.bookings import BookingState
from moorage.domain.period import FOREVER
from moorage.engine.state.columns import SERVER_STATES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Instant
    from moorage.domain.resources import ResourceClass
    from moorage.engine.state.columns import ClassColumns, ProviderState

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]

_ALLOCATED: Final = frozenset({BookingState.ALLOCATED})


@dataclass(frozen=True, slots=True)
class AddedBookings:
    """A known provider whose only change is that bookings were added."""

    state: ProviderState
    """The new state, with these bookings and the new counters."""
    bookings: Sequence[Booking]


@dataclass(slots=True)
class _AddedAmounts:
    """Added amounts of one class in one booking state, by row; a row may be repeated."""

    rows: list[int] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)


@dataclass(slots=True)
class AdditionBatch:
    """Open-ended bookings added to some rows of a snapshot."""

    rows: list[int] = field(default_factory=list)
    """The rows, each once."""
    bookings: list[Sequence[Booking]] = field(default_factory=list)
    """The bookings added to each row."""
    lapses: list[Instant] = field(default_factory=list)
    """Per row the earliest `lapses_at` of the added bookings; `FOREVER` if none lapses."""
    preemptible: list[int] = field(default_factory=list)
    """Rows to which a preemptible booking was added."""
    _added: dict[BookingState, dict[ResourceClass, _AddedAmounts]] = field(default_factory=dict)

    def add(self, row: int, bookings: Sequence[Booking]) -> None:
        """Record bookings of one row; all of them must pass `all_open_ended`."""
        lapse = FOREVER
        for booking in bookings:
            lapse = min(lapse, booking.lapses_at)
            if booking.preemptible:
                self.preemptible.append(row)
            of_state = self._added.get(booking.state)
            if of_state is None:
                of_state = self._added[booking.state] = {}
            for name, amount in booking.amounts.items():
                more = of_state.get(name)
                if more is None:
                    more = of_state[name] = _AddedAmounts()
                more.rows.append(row)
                more.amounts.append(amount)
        self.rows.append(row)
        self.bookings.append(bookings)
        self.lapses.append(lapse)

    def apply_to(self, classes: Mapping[ResourceClass, ClassColumns]) -> dict[str, ClassColumns]:
        """The new columns of every class of which amounts were added."""
        more: dict[ResourceClass, dict[BookingState, _AddedAmounts]] = {}
        for state, of_state in self._added.items():
            for name, some in of_state.items():
                more.setdefault(name, {})[state] = some
        return {
            name: _with_amounts(classes[name], of) for name, of in more.items() if name in classes
        }


def all_open_ended(bookings: Iterable[Booking], now: Instant) -> bool:
    """Whether all bookings have begun, have no end and have not lapsed."""
    for booking in bookings:  # inlined, without a call each: every added booking comes through here
        period = booking.period
        if not (period.start <= now < booking.lapses_at and period.end == FOREVER):
            return False
    return True


def _with_amounts(
    columns: ClassColumns, added: Mapping[BookingState, _AddedAmounts]
) -> ClassColumns:
    by_state = {state: _positions_of(columns, some) for state, some in added.items()}
    base = _sum_at(columns.base, by_state.values())
    sums = {"base": base, "peak": base}
    if columns.peak is not columns.base:
        sums["peak"] = _sum_at(columns.peak, by_state.values())
    for name, states in (("used", _ALLOCATED), ("server_base", SERVER_STATES)):
        counted = [some for state, some in by_state.items() if state in states]
        column = getattr(columns, name)
        # A column that was the same array as `base` stays the same array: it is copied once.
        is_shared = column is columns.base and len(counted) == len(by_state)
        sums[name] = base if is_shared else _sum_at(column, counted)
    return columns.with_sums(sums)


def _positions_of(columns: ClassColumns, added: _AddedAmounts) -> tuple[Rows, Ints]:
    """Positions in the columns and amounts, without rows that have no inventory of the class."""
    at, amounts = columns.position[added.rows], np.array(added.amounts, dtype=np.int64)
    if at.min() < 0:  # some rows have no inventory of the class
        at, amounts = at[at >= 0], amounts[at >= 0]
    return at, amounts


def _sum_at(column: Ints, additions: Collection[tuple[Rows, Ints]]) -> Ints:
    if not additions:
        return column
    found = column.copy()
    for at, amounts in additions:
        np.add.at(found, at, amounts)
    return found
