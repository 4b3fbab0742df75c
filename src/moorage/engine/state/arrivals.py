"""Adds new bookings of known providers to the columns, all at once.

Most commits book something from now on and for ever, on a provider to which nothing else happens.
Such a booking is as much more of what is taken at every instant from now on, so the sums that a
snapshot has of the provider stay good: nobody has to look at all its other bookings again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.bookings import BookingState
from moorage.domain.period import FOREVER
from moorage.engine.state.columns import TAKING

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
class Arrived:
    """A known provider to which bookings came, and nothing happened to it but this."""

    state: ProviderState
    """What it is now, these bookings and the counters included."""
    bookings: Sequence[Booking]


@dataclass(slots=True)
class _More:
    """Amounts of one class in one state that came to rows, some of them perhaps repeated."""

    rows: list[int] = field(default_factory=list)
    amounts: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Arrivals:
    """What came to some rows of a snapshot."""

    rows: list[int] = field(default_factory=list)
    """Each once."""
    bookings: list[Sequence[Booking]] = field(default_factory=list)
    """What came to each."""
    lapses: list[Instant] = field(default_factory=list)
    """When the first of what came to each row lapses; `FOREVER` if none does."""
    preemptible: list[int] = field(default_factory=list)
    """Rows to which something came that may be ended for a lease."""
    _more: dict[BookingState, dict[ResourceClass, _More]] = field(default_factory=dict)

    def note(self, row: int, bookings: Sequence[Booking]) -> None:
        """These came to one row, all of them lasting."""
        lapse = FOREVER
        for booking in bookings:
            lapse = min(lapse, booking.lapses_at)
            if booking.preemptible:
                self.preemptible.append(row)
            of_state = self._more.get(booking.state)
            if of_state is None:
                of_state = self._more[booking.state] = {}
            for name, amount in booking.amounts.items():
                more = of_state.get(name)
                if more is None:
                    more = of_state[name] = _More()
                more.rows.append(row)
                more.amounts.append(amount)
        self.rows.append(row)
        self.bookings.append(bookings)
        self.lapses.append(lapse)

    def added_to(self, classes: Mapping[ResourceClass, ClassColumns]) -> dict[str, ClassColumns]:
        """The columns of every class of which something came."""
        more: dict[ResourceClass, dict[BookingState, _More]] = {}
        for state, of_state in self._more.items():
            for name, some in of_state.items():
                more.setdefault(name, {})[state] = some
        return {name: _added(classes[name], of) for name, of in more.items() if name in classes}


def last(bookings: Iterable[Booking], now: Instant) -> bool:
    """Whether all of them occupy from now on, and end by lapsing alone if they do at all."""
    for booking in bookings:  # without a call for each: all that comes is looked at here
        period = booking.period
        if not (period.start <= now < booking.lapses_at and period.end == FOREVER):
            return False
    return True


def _added(columns: ClassColumns, more: Mapping[BookingState, _More]) -> ClassColumns:
    every = {state: _at(columns, some) for state, some in more.items()}
    base = _plus(columns.base, every.values())
    sums = {"base": base, "peak": base}
    if columns.peak is not columns.base:
        sums["peak"] = _plus(columns.peak, every.values())
    for name, states in (("used", _ALLOCATED), ("taken", TAKING)):
        mine = [some for state, some in every.items() if state in states]
        column = getattr(columns, name)
        # What was one column with `base` is one still: it is copied once.
        one = column is columns.base and len(mine) == len(every)
        sums[name] = base if one else _plus(column, mine)
    return columns.with_sums(sums)


def _at(columns: ClassColumns, some: _More) -> tuple[Rows, Ints]:
    """Positions and amounts."""
    at, amounts = columns.position[some.rows], np.array(some.amounts, dtype=np.int64)
    if at.min() < 0:  # not everybody has an inventory
        at, amounts = at[at >= 0], amounts[at >= 0]
    return at, amounts


def _plus(column: Ints, every: Collection[tuple[Rows, Ints]]) -> Ints:
    if not every:
        return column
    found = column.copy()
    for at, amounts in every:
        np.add.at(found, at, amounts)
    return found
