"""One resource class over the fleet as columns, and how a few providers' rows are renewed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from moorage.domain.bookings import BookingState
from moorage.domain.period import FOREVER, Period
from moorage.engine.time.load_profile import Course
from moorage.engine.time.occupancy import NOTHING, Spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Instant
    from moorage.domain.placement import Occupant
    from moorage.domain.providers import Inventory, ResourceProvider

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]


_ALLOCATED: Final = BookingState.ALLOCATED


@dataclass(frozen=True, slots=True)
class ProviderState:
    """All a snapshot must know of one provider: what the store's feed hands over."""

    provider: ResourceProvider
    bookings: tuple[Booking, ...] = ()
    """Every stored booking on it, lapsed ones included or not: the snapshot judges."""
    occupants: tuple[Occupant, ...] = ()
    """One per consumer among the bookings."""
    down: tuple[Period, ...] = ()
    """When it has no capacity, whatever its inventories say: its host is planned to be away."""


@dataclass(frozen=True, eq=False)
class ClassColumns:
    """One resource class over the n providers that have it, by provider row.

    Of `used`, `peak`, `base` and `taken`, those that are equal may be one array: in most fleets
    all four are, since servers stay for ever.
    """

    rows: Rows
    """[n] provider rows, ascending."""
    position: Rows
    """[P] index into these columns per provider row, or -1."""
    total: Ints
    reserved: Ints
    min_unit: Ints
    max_unit: Ints
    step_size: Ints
    allocation_ratio: NDArray[np.float64]
    capacity: Ints
    """[n] `int((total - reserved) * allocation_ratio)`."""
    used: Ints
    """[n] sum of allocations: what Placement's wire shows."""
    peak: Ints
    """[n] the highest occupancy at any instant of [taken_at, FOREVER), all live bookings."""
    updated_at: Ints
    base: Ints
    """[n] occupancy by live bookings that have begun and have no end ahead."""
    timed: Spans
    """All other live bookings, and all of `down`; the owner is a provider *row*, ascending."""
    taken: Ints
    """[n] of `base` what servers take, or are being built for."""
    taking: Spans
    """The same of `timed`."""
    down: Spans
    """When providers have no capacity: as if something took all of it."""
    stepped: bool
    """Whether any of them has a least unit or a step other than 1."""

    @cached_property
    def most(self) -> Ints:
        """[n] the largest amount that one more booking without an end can have."""
        found: Ints = np.minimum(self.max_unit, self.capacity - self.peak)
        return found

    @cached_property
    def most_by_row(self) -> Ints:
        """[P] the same per provider row; -1 for those that have not the class."""
        if len(self.rows) == len(self.position):
            return self.most
        found = np.full(len(self.position), -1, dtype=np.int64)
        found[self.rows] = self.most
        return found

    @cached_property
    def course(self) -> Course:
        """`timed` in order, by provider row; once made it is kept in step (see `reoccupied`)."""
        return Course.of(self.timed)

    def with_sums(self, sums: Mapping[str, Ints]) -> ClassColumns:
        """The same with others of `used`, `peak`, `base` and `taken`; what comes and goes stays."""
        # Every commit comes here, and `replace` would look at all fields.
        made = object.__new__(ClassColumns)
        made.__dict__.update(self.__dict__, **sums)
        for derived in ("most", "most_by_row"):
            made.__dict__.pop(derived, None)
        return made

    def peak_over(self, period: Period) -> Ints:
        """[n] the highest occupancy of each inventory at any instant of `period`."""
        if not len(self.timed):
            return self.base
        return self.base + self.course.peaks(len(self.position), period)[self.rows]

    def booked_over(self, period: Period) -> Ints:
        """[n] the same by bookings alone, whether or not there is capacity then."""
        if not len(self.down):
            return self.peak_over(period)
        every = self.timed.and_also(replace(self.down, amount=-self.down.amount))
        return replace(self, timed=every).peak_over(period)


Span: TypeAlias = "tuple[Instant, Instant, int]"
TAKING: Final = frozenset({BookingState.ALLOCATED, BookingState.CLAIMED})
"""States of bookings behind which a server is, or is being built."""
_ROW: Final = itemgetter(0)


@dataclass(slots=True)
class Load:
    """What a provider's bookings of one class come to; see `ClassColumns`."""

    used: int = 0
    base: int = 0
    taken: int = 0
    spans: list[Span] | None = None
    taking: list[Span] | None = None
    down: list[Span] | None = None

    @property
    def every(self) -> list[Span]:
        """What comes or goes: bookings and times without capacity."""
        return [*(self.spans or ()), *(self.down or ())]


def loads(bookings: Iterable[Booking], now: Instant) -> tuple[dict[str, Load], Instant]:
    """Sum one provider's bookings by class, and say when time alone changes the sums next."""
    found: dict[str, Load] = {}
    until = FOREVER
    for booking in bookings:
        # What `Booking.live` and `occupies_until` say, without the calls: all come through here.
        lapses_at, period, state = booking.lapses_at, booking.period, booking.state
        start, end, is_allocated = period.start, period.end, state is _ALLOCATED
        if now >= lapses_at or not (is_allocated or now < end):
            continue
        if end <= now:
            end = FOREVER
        is_lasting = start <= now and end == FOREVER
        taking = is_allocated or state in TAKING
        for name, amount in booking.amounts.items():
            load = found.get(name)
            if load is None:
                load = found[name] = Load()
            if is_allocated:
                load.used += amount
            if is_lasting:
                load.base += amount
                load.taken += amount if taking else 0
                continue
            span = (start, end, amount)
            # There may be thousands of them on one provider: each list grows in place.
            load.spans = load.spans or []
            load.spans.append(span)
            if taking:
                load.taking = load.taking or []
                load.taking.append(span)
        until = min(until, lapses_at, start if start > now else end)
    return found, until


Entry: TypeAlias = "tuple[Inventory, Load]"
_UNLOADED = Load()


def entries(
    state: ProviderState | None, now: Instant
) -> tuple[dict[str, tuple[Inventory, Load]], Instant]:
    """One provider's inventories with their loads, and when these change next."""
    if state is None:
        return {}, FOREVER
    found, until = loads(state.bookings, now)
    if not state.down:
        return {
            inventory.resource_class: (inventory, found.get(inventory.resource_class, _UNLOADED))
            for inventory in state.provider.inventories
        }, until
    ahead = [one for one in state.down if one.end > now]
    for inventory in state.provider.inventories:
        load = found.setdefault(inventory.resource_class, Load())
        load.down = [(one.start, one.end, inventory.capacity) for one in ahead]
    edges = (one.start if one.start > now else one.end for one in ahead)
    return {
        inventory.resource_class: (inventory, found[inventory.resource_class])
        for inventory in state.provider.inventories
    }, min(until, *edges, FOREVER)


def _spans(changed: Iterable[tuple[int, Entry]], field: str) -> Spans:
    return Spans.of(
        (row, *span) for row, (_, load) in changed for span in getattr(load, field) or ()
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def _fresh(changed: Sequence[tuple[int, Entry]], size: int, now: Instant) -> ClassColumns:
    """Columns of these rows alone; `changed` is sorted by row."""
    rows = np.fromiter((row for row, _ in changed), dtype=np.int32)
    inventories, zeros = [entry[0] for _, entry in changed], np.zeros(len(changed), dtype=np.int64)
    return _with_occupancy(
        ClassColumns(
            rows=rows,
            position=_positions(rows, size),
            total=_ints(one.total for one in inventories),
            reserved=_ints(one.reserved for one in inventories),
            min_unit=_ints(one.min_unit for one in inventories),
            max_unit=_ints(one.max_unit for one in inventories),
            step_size=_ints(one.step_size for one in inventories),
            allocation_ratio=np.fromiter(
                (one.allocation_ratio for one in inventories), dtype=np.float64
            ),
            capacity=_ints(one.capacity for one in inventories),
            used=zeros,
            peak=zeros,
            updated_at=_ints(one.updated_at for one in inventories),
            base=zeros,
            timed=NOTHING,
            taken=zeros,
            taking=NOTHING,
            down=NOTHING,
            stepped=any(one.min_unit != 1 or one.step_size != 1 for one in inventories),
        ),
        changed,
        now,
    )


def _positions(rows: Rows, size: int) -> Rows:
    position = np.full(size, -1, dtype=np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    return position


def _with_occupancy(
    columns: ClassColumns, changed: Sequence[tuple[int, Entry]], now: Instant
) -> ClassColumns:
    """The same inventories with new loads for the rows of `changed`, which is sorted by row."""
    rows = _ints(row for row, _ in changed)
    at = columns.position[rows]
    mine = _spans(changed, "every")
    course = Course.of(mine)
    lasting = _ints(entry[1].base for _, entry in changed)
    base = columns.base.copy()
    base[at] = lasting

    def with_these(column: Ints, values: Ints) -> Ints:
        if column is columns.base and np.array_equal(values, lasting):
            return base  # one with it still
        found = column.copy()
        found[at] = values
        return found

    made = replace(
        columns,
        used=with_these(columns.used, _ints(entry[1].used for _, entry in changed)),
        base=base,
        peak=with_these(
            columns.peak, lasting + course.peaks(len(columns.position), Period(now))[rows]
        ),
        timed=columns.timed.exchanged(rows, mine),
        taken=with_these(columns.taken, _ints(entry[1].taken for _, entry in changed)),
        taking=columns.taking.exchanged(rows, _spans(changed, "taking")),
        down=columns.down.exchanged(rows, _spans(changed, "down")),
    )
    known = columns.__dict__.get("course")
    if known is not None:  # somebody asks
        made.__dict__["course"] = known.with_others(rows, course)
    return made


def resized(columns: ClassColumns, size: int) -> ClassColumns:
    """The same inventories in a fleet of `size` provider rows: as many as there are, or more."""
    more = np.full(size - len(columns.position), -1, dtype=np.int32)
    return replace(columns, position=np.concatenate((columns.position, more)))


def reoccupied(columns: ClassColumns, changed: Mapping[int, Entry], now: Instant) -> ClassColumns:
    """Renew the occupancy of some rows whose inventories stayed as they are."""
    return _with_occupancy(columns, sorted(changed.items(), key=_ROW), now)


_COLUMNS = (
    "rows", "total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio",
    "capacity", "used", "peak", "updated_at", "base", "taken",
)  # fmt: skip


def restocked(
    columns: ClassColumns | None,
    changed: Mapping[int, Entry],
    gone: Iterable[int],
    size: int,
    now: Instant,
) -> ClassColumns | None:
    """Renew inventories and occupancy of some rows, and forget the rows of `gone`.

    Returns:
        The new columns in a fleet of `size` rows, or None when no provider has the class.
    """
    new = _fresh(sorted(changed.items(), key=_ROW), size, now)
    if columns is None:
        return new if len(new.rows) else None
    stays = np.ones(size, dtype=np.bool_)
    stays[new.rows] = False
    stays[list(gone)] = False
    keep = stays[columns.rows]
    merged = {name: _merged(getattr(columns, name), keep, getattr(new, name)) for name in _COLUMNS}
    if not len(merged["rows"]):
        return None
    if (np.diff(merged["rows"]) < 0).any():  # not if the new ones stand behind all others
        order = np.argsort(merged["rows"], kind="stable")
        merged = {name: values[order] for name, values in merged.items()}
    for name in ("used", "peak", "taken"):
        if np.array_equal(merged[name], merged["base"]):
            merged[name] = merged["base"]

    touched = np.flatnonzero(~stays)
    return ClassColumns(
        **merged,
        position=_positions(merged["rows"], size),
        timed=columns.timed.exchanged(touched, new.timed),
        taking=columns.taking.exchanged(touched, new.taking),
        down=columns.down.exchanged(touched, new.down),
        stepped=bool((merged["min_unit"] != 1).any() or (merged["step_size"] != 1).any()),
    )


def _merged(old: NDArray[Any], keep: NDArray[np.bool_], new: NDArray[Any]) -> NDArray[Any]:
    # A fleet that is being loaded grows at its end only: then nothing has to be picked out.
    return np.concatenate((old if keep.all() else old[keep], new))
