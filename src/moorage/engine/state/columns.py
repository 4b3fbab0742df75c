"""The inventories and occupancy of one resource class as columns, and updates of some rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from moorage.domain.bookings import BookingState
from moorage.domain.period import FOREVER, Period
from moorage.engine.time.load_profile import LoadProfile
from moorage.engine.time.occupancy import NO_SPANS, Spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.bookings import Booking
    from moorage.domain.host_states import HostRecord
    from moorage.domain.period import Instant
    from moorage.domain.placement import Occupant
    from moorage.domain.providers import Inventory, ResourceProvider

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]


_ALLOCATED: Final = BookingState.ALLOCATED


@dataclass(frozen=True, slots=True)
class ProviderState:
    """One provider as the store's feed delivers it: the provider, its bookings and occupants."""

    provider: ResourceProvider
    bookings: tuple[Booking, ...] = ()
    """Every stored booking on it; lapsed ones may be included, the snapshot ignores them."""
    occupants: tuple[Occupant, ...] = ()
    """One per consumer among the bookings."""
    down: tuple[Period, ...] = ()
    """Periods without capacity, whatever its inventories say: its host is planned to be away."""
    host: HostRecord | None = None
    """Of a host: what Nova or an operator says against it."""

    @property
    def form(self) -> tuple[object, ...]:
        """All that decides what fits on it and how it serves, but its bookings and counters."""
        one = self.provider
        return (
            one.uuid,
            one.inventories,
            one.traits,
            one.aggregates,
            one.root_uuid,
            self.down,
            self.host,
        )


@dataclass(frozen=True, eq=False)
class ClassColumns:
    """One resource class over the n providers that have it, by provider row.

    Those of `used`, `peak`, `base` and `server_base` that are equal may be the same array. In most
    fleets all four are, since most servers have no end.
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
    """[n] sum of allocations: the usage that Placement's API shows."""
    peak: Ints
    """[n] the highest occupancy by live bookings at any instant of [taken_at, FOREVER)."""
    updated_at: Ints
    base: Ints
    """[n] occupancy by live bookings that have begun and have no end."""
    timed: Spans
    """All other live bookings, and `down`; the owner is a provider *row*, ascending."""
    server_base: Ints
    """[n] the part of `base` in `SERVER_STATES`: allocations, and claims of servers being built."""
    server_spans: Spans
    """The part of `timed` in `SERVER_STATES`."""
    down: Spans
    """Periods without capacity, as spans that occupy the whole capacity."""
    has_unit_rules: bool
    """Whether any inventory has a `min_unit` or a `step_size` other than 1."""

    @cached_property
    def max_addition(self) -> Ints:
        """[n] the largest amount that one more open-ended booking can have."""
        found: Ints = np.minimum(self.max_unit, self.capacity - self.peak)
        return found

    @cached_property
    def max_addition_by_row(self) -> Ints:
        """[P] `max_addition` per provider row; -1 for providers without the class."""
        if len(self.rows) == len(self.position):
            return self.max_addition
        found = np.full(len(self.position), -1, dtype=np.int64)
        found[self.rows] = self.max_addition
        return found

    @cached_property
    def load_profile(self) -> LoadProfile:
        """`timed` as sorted levels by provider row; once made, `with_loads` updates it."""
        return LoadProfile.of(self.timed)

    def with_sums(self, sums: Mapping[str, Ints]) -> ClassColumns:
        """The columns with other sums: any of `used`, `peak`, `base` and `server_base`."""
        # Called at every commit; `dataclasses.replace` would read all fields.
        made = object.__new__(ClassColumns)
        made.__dict__.update(self.__dict__, **sums)
        for derived in ("max_addition", "max_addition_by_row"):
            made.__dict__.pop(derived, None)
        return made

    def peak_over(self, period: Period) -> Ints:
        """[n] the highest occupancy of each inventory at any instant of `period`."""
        if not len(self.timed):
            return self.base
        return self.base + self.load_profile.peaks(len(self.position), period)[self.rows]

    def booked_over(self, period: Period) -> Ints:
        """[n] as `peak_over`, counting bookings only: `down` is left out."""
        if not len(self.down):
            return self.peak_over(period)
        every = self.timed.joined(replace(self.down, amount=-self.down.amount))
        return replace(self, timed=every).peak_over(period)

    def booked_at(self, at: Instant) -> Ints:
        """[n] what bookings occupy of each inventory at an instant, not before the snapshot's."""
        size = len(self.position)
        timed = self.timed.levels_at(at, size) - self.down.levels_at(at, size)
        return self.base + timed[self.rows]

    def served_at(self, at: Instant) -> Ints:
        """[n] the part of `booked_at` that is in `SERVER_STATES`."""
        return self.server_base + self.server_spans.levels_at(at, len(self.position))[self.rows]


Span: TypeAlias = "tuple[Instant, Instant, int]"
SERVER_STATES: Final = frozenset({BookingState.ALLOCATED, BookingState.CLAIMED})
"""States of bookings that belong to a server that exists or is being built."""
_ROW: Final = itemgetter(0)


@dataclass(slots=True)
class Load:
    """Sums and spans of a provider's live bookings of one class; fields as in `ClassColumns`."""

    used: int = 0
    base: int = 0
    server_base: int = 0
    spans: list[Span] | None = None
    server_spans: list[Span] | None = None
    down: list[Span] | None = None

    @property
    def timed(self) -> list[Span]:
        """Spans of bookings that begin or end later, and of times without capacity."""
        return [*(self.spans or ()), *(self.down or ())]


def sum_bookings(bookings: Iterable[Booking], now: Instant) -> tuple[dict[str, Load], Instant]:
    """One provider's loads by class, and the next instant at which time alone changes them."""
    found: dict[str, Load] = {}
    until = FOREVER
    for booking in bookings:
        # `Booking.live` and `occupies_until`, inlined: every booking comes through here.
        lapses_at, period, state = booking.lapses_at, booking.period, booking.state
        start, end, is_allocated = period.start, period.end, state is _ALLOCATED
        if now >= lapses_at or not (is_allocated or now < end):
            continue
        if end <= now:
            end = FOREVER
        is_lasting = start <= now and end == FOREVER
        taking = is_allocated or state in SERVER_STATES
        for name, amount in booking.amounts.items():
            load = found.get(name)
            if load is None:
                load = found[name] = Load()
            if is_allocated:
                load.used += amount
            if is_lasting:
                load.base += amount
                load.server_base += amount if taking else 0
                continue
            span = (start, end, amount)
            # One provider may have thousands: the lists grow in place.
            load.spans = load.spans or []
            load.spans.append(span)
            if taking:
                load.server_spans = load.server_spans or []
                load.server_spans.append(span)
        until = min(until, lapses_at, start if start > now else end)
    return found, until


InventoryLoad: TypeAlias = "tuple[Inventory, Load]"
_NO_LOAD = Load()


def inventory_loads(
    state: ProviderState | None, now: Instant
) -> tuple[dict[str, tuple[Inventory, Load]], Instant]:
    """One provider's inventories with their loads by class, and when time changes these next."""
    if state is None:
        return {}, FOREVER
    found, until = sum_bookings(state.bookings, now)
    if not state.down:
        return {
            inventory.resource_class: (inventory, found.get(inventory.resource_class, _NO_LOAD))
            for inventory in state.provider.inventories
        }, until
    absences = [one for one in state.down if one.end > now]
    for inventory in state.provider.inventories:
        load = found.setdefault(inventory.resource_class, Load())
        load.down = [(one.start, one.end, inventory.capacity) for one in absences]
    edges = (one.start if one.start > now else one.end for one in absences)
    return {
        inventory.resource_class: (inventory, found[inventory.resource_class])
        for inventory in state.provider.inventories
    }, min(until, *edges, FOREVER)


def _spans(changed: Iterable[tuple[int, InventoryLoad]], field: str) -> Spans:
    return Spans.of(
        (row, *span) for row, (_, load) in changed for span in getattr(load, field) or ()
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def _columns_of(
    changed: Sequence[tuple[int, InventoryLoad]], size: int, now: Instant
) -> ClassColumns:
    """Columns of only these rows; `changed` is sorted by row."""
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
            timed=NO_SPANS,
            server_base=zeros,
            server_spans=NO_SPANS,
            down=NO_SPANS,
            has_unit_rules=any(one.min_unit != 1 or one.step_size != 1 for one in inventories),
        ),
        changed,
        now,
    )


def _positions(rows: Rows, size: int) -> Rows:
    position = np.full(size, -1, dtype=np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    return position


def _with_occupancy(
    columns: ClassColumns, changed: Sequence[tuple[int, InventoryLoad]], now: Instant
) -> ClassColumns:
    """Set the loads of the rows in `changed`, which is sorted by row; inventories stay."""
    rows = _ints(row for row, _ in changed)
    at = columns.position[rows]
    timed = _spans(changed, "timed")
    profile = LoadProfile.of(timed)
    lasting = _ints(entry[1].base for _, entry in changed)
    base = columns.base.copy()
    base[at] = lasting

    def replace_at(column: Ints, values: Ints) -> Ints:
        if column is columns.base and np.array_equal(values, lasting):
            return base  # stays the same array as `base`
        found = column.copy()
        found[at] = values
        return found

    made = replace(
        columns,
        used=replace_at(columns.used, _ints(entry[1].used for _, entry in changed)),
        base=base,
        peak=replace_at(
            columns.peak, lasting + profile.peaks(len(columns.position), Period(now))[rows]
        ),
        timed=columns.timed.with_owners(rows, timed),
        server_base=replace_at(
            columns.server_base, _ints(entry[1].server_base for _, entry in changed)
        ),
        server_spans=columns.server_spans.with_owners(rows, _spans(changed, "server_spans")),
        down=columns.down.with_owners(rows, _spans(changed, "down")),
    )
    cached = columns.__dict__.get("load_profile")
    if cached is not None:  # it is in use: update it rather than make it again
        made.__dict__["load_profile"] = cached.with_owners(rows, profile)
    return made


def with_row_count(columns: ClassColumns, size: int) -> ClassColumns:
    """The same columns in a fleet of `size` provider rows, at least as many as now."""
    more = np.full(size - len(columns.position), -1, dtype=np.int32)
    return replace(columns, position=np.concatenate((columns.position, more)))


def with_loads(
    columns: ClassColumns, changed: Mapping[int, InventoryLoad], now: Instant
) -> ClassColumns:
    """Replace the occupancy of some rows whose inventories did not change."""
    return _with_occupancy(columns, sorted(changed.items(), key=_ROW), now)


_COLUMNS = (
    "rows", "total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio",
    "capacity", "used", "peak", "updated_at", "base", "server_base",
)  # fmt: skip


def with_inventories(
    columns: ClassColumns | None,
    changed: Mapping[int, InventoryLoad],
    removed: Iterable[int],
    size: int,
    now: Instant,
) -> ClassColumns | None:
    """Replace inventories and occupancy of some rows, and delete the rows in `removed`.

    Returns:
        The new columns in a fleet of `size` rows, or None when no provider has the class.
    """
    new = _columns_of(sorted(changed.items(), key=_ROW), size, now)
    if columns is None:
        return new if len(new.rows) else None
    unchanged = np.ones(size, dtype=np.bool_)
    unchanged[new.rows] = False
    unchanged[list(removed)] = False
    keep = unchanged[columns.rows]
    merged = {name: _merged(getattr(columns, name), keep, getattr(new, name)) for name in _COLUMNS}
    if not len(merged["rows"]):
        return None
    if (np.diff(merged["rows"]) < 0).any():  # already sorted if the new rows are the last
        order = np.argsort(merged["rows"], kind="stable")
        merged = {name: values[order] for name, values in merged.items()}
    for name in ("used", "peak", "server_base"):
        if np.array_equal(merged[name], merged["base"]):
            merged[name] = merged["base"]

    replaced = np.flatnonzero(~unchanged)
    return ClassColumns(
        **merged,
        position=_positions(merged["rows"], size),
        timed=columns.timed.with_owners(replaced, new.timed),
        server_spans=columns.server_spans.with_owners(replaced, new.server_spans),
        down=columns.down.with_owners(replaced, new.down),
        has_unit_rules=bool((merged["min_unit"] != 1).any() or (merged["step_size"] != 1).any()),
    )


def _merged(old: NDArray[Any], keep: NDArray[np.bool_], new: NDArray[Any]) -> NDArray[Any]:
    # While a fleet is loaded, rows are only appended: then nothing is selected.
    return np.concatenate((old if keep.all() else old[keep], new))
