"""Computes the next revision of a snapshot: changed columns are copied, all others shared."""

from __future__ import annotations

from itertools import chain, count
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.period import FOREVER
from moorage.engine.state.arrivals import AddedBookings, AdditionBatch, all_open_ended
from moorage.engine.state.columns import (
    inventory_loads,
    with_inventories,
    with_loads,
    with_row_count,
)
from moorage.engine.state.consumer_locations import consumers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.period import Instant
    from moorage.engine.state.columns import ClassColumns, InventoryLoad, ProviderState
    from moorage.engine.state.ledger_columns import LedgerColumns

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]


class RevisionBuilder:
    """Applies new provider states to an old snapshot; `fields` returns the changed fields."""

    def __init__(
        self,
        old: LedgerColumns,
        states: Iterable[ProviderState | AddedBookings],
        removed: Iterable[str],
        now: Instant,
    ) -> None:
        self.old = old
        self.now = now
        self.row_of: Mapping[str, int] = old.row_of
        self.changed: dict[int, ProviderState | None] = {}
        self.size = len(old.uuids)
        whole: list[ProviderState] = []
        additions: list[AddedBookings] = []
        for one in states:
            if isinstance(one, AddedBookings):
                additions.append(one)
            else:
                whole.append(one)
        self._assign_rows(whole, [uuid for uuid in removed if uuid in old.row_of])
        self._additions = AdditionBatch()
        """Rows whose only change is added open-ended bookings."""
        self._collect_additions(additions)
        self._collect_time_changes()
        known, only = len(old.states), set(self._additions.rows)
        self._changes = [
            (row, old.states[row] if row < known else None, state)
            for row, state in self.changed.items()
            if row not in only
        ]
        """All other changed rows: (row, old state, new state)."""

    def _assign_rows(self, states: list[ProviderState], removed: list[str]) -> None:
        """Assign a row to every provider: its present one, a free one, or a new one at the end."""
        fresh = [one for one in states if one.provider.uuid not in self.row_of]
        if fresh or removed:
            row_of = dict(self.row_of)
            for uuid in removed:
                self.changed[row_of.pop(uuid)] = None
            # Rows freed in this revision are not reused in it: a row means one provider.
            free = chain(np.flatnonzero(~self.old.alive).tolist(), count(self.size))
            for uuid in dict.fromkeys(one.provider.uuid for one in fresh):
                row_of[uuid] = next(free)
            self.row_of = row_of
            self.size = max(self.size, max(row_of.values(), default=-1) + 1)
        for state in states:
            self.changed[self.row_of[state.provider.uuid]] = state

    def _collect_additions(self, additions: Sequence[AddedBookings]) -> None:
        """Collect added bookings; a row where time changes more is recomputed as a whole."""
        old, now = self.old, self.now
        rows = [self.row_of[one.state.provider.uuid] for one in additions]
        unexpired = (old.next_change[rows] > now) & (old.taken_at <= now)
        for row, unchanged, one in zip(rows, unexpired.tolist(), additions, strict=True):
            self.changed[row] = one.state
            if unchanged and all_open_ended(one.bookings, now):
                self._additions.add(row, one.bookings)

    def _collect_time_changes(self) -> None:
        """Add the rows that time alone has changed since the old snapshot."""
        old = self.old
        if self.now < old.taken_at:
            stale: Iterable[int] = range(len(old.states))
        elif self.now >= old.valid_until:
            stale = np.flatnonzero(old.next_change <= self.now).tolist()
        else:
            return
        for row in stale:
            self.changed.setdefault(row, old.states[row])

    def fields(self) -> dict[str, object]:
        """The fields of the new snapshot that differ from the old one's."""
        old = self.old
        fields: dict[str, object] = {}
        if self.changed:
            fields["states"] = old.states.replaced(self.changed, length=self.size, filler=None)
            fields["consumer_rows"] = old.consumer_rows.updated(self._consumers())
            fields |= self._counters()
            fields |= self._classes()
            fields["preemptible"] = self._preemptible()
            fields["offered_by"] = self._offered_by()
            fields["noted_hosts"] = self._noted_hosts()
            if self._structure_differs():
                fields |= self._structure()
            fields["traits"] = self._traits()
            fields["aggregates"] = self._aggregates()
        return fields

    # --- per provider ---------------------------------------------------------------------

    def _consumers(self) -> Iterator[tuple[int, Iterable[str]]]:
        """Changed rows with consumers that may be new on them."""
        for row, _, state in self._changes:
            yield row, consumers_of(state)
        for row, bookings in zip(self._additions.rows, self._additions.bookings, strict=True):
            yield row, [booking.consumer for booking in bookings]

    def _grown(self, column: NDArray[np.generic], filler: int) -> NDArray[np.generic]:
        if self.size == len(column):
            return column.copy()
        tail = np.full(self.size - len(column), filler, dtype=column.dtype)
        return np.concatenate((column, tail))

    def _counters(self) -> dict[str, object]:
        fields: dict[str, object] = {}
        living = {row: state.provider for row, state in self.changed.items() if state is not None}
        rows, providers = np.array([*living], dtype=np.int64), living.values()
        counters = [
            ("generation", [one.generation for one in providers]),
            ("revisions", [one.revision for one in providers]),
            ("updated_at", [one.updated_at for one in providers]),
        ]
        if self._changes:  # added bookings alone do not change created_at
            counters.append(("created_at", [one.created_at for one in providers]))
        for field, every in counters:
            old, values = getattr(self.old, field), np.array(every, dtype=np.int64)
            if len(old) == self.size and (old[rows] == values).all():
                continue
            column = self._grown(old, 0)
            column[rows] = values
            fields[field] = column
        return fields

    def _preemptible(self) -> Bools:
        """[P] rows with a preemptible booking; the old column if nothing changed."""
        added = self._additions.preemptible
        if not self._changes and not added:
            return self.old.preemptible
        now = [
            state is not None and any(one.preemptible for one in state.bookings)
            for _, _, state in self._changes
        ]
        now += [True] * len(added)
        old, rows = self.old.preemptible, [*(row for row, _, _ in self._changes), *added]
        if len(old) == self.size and np.array_equal(old[rows], now):
            return old
        column = self._grown(old, 0)
        column[rows] = now
        return column.astype(np.bool_, copy=False)

    def _offered_by(self) -> Mapping[int, str]:
        """Server providers; the old mapping if nothing changed."""
        old = self.old.offered_by
        now = {
            row: None if state is None else state.provider.offered_by
            for row, _, state in self._changes
        }
        if all(old.get(row) == consumer for row, consumer in now.items()):
            return old
        merged = {**old, **now}
        return {row: consumer for row, consumer in merged.items() if consumer is not None}

    def _noted_hosts(self) -> frozenset[int]:
        """Hosts with planned absences or a record; the old set if nothing changed."""
        old = self.old.noted_hosts
        now = {
            row
            for row, _, state in self._changes
            if state is not None
            and (state.down or state.host is not None)
            and state.provider.parent_uuid is None
        }
        changed = {row for row, _, _ in self._changes}
        return old if old & changed == now else (old - changed) | now

    def _structure_differs(self) -> bool:
        for _, before, state in self._changes:
            if before is None or state is None:
                if before is not state:
                    return True
                continue
            was, now = before.provider, state.provider
            if (was.name, was.parent_uuid, was.root_uuid) != (
                now.name,
                now.parent_uuid,
                now.root_uuid,
            ):
                return True
        return False

    def _structure(self) -> dict[str, object]:
        """Names and trees. A parent is known already or among the new states."""
        fill = [""] * (self.size - len(self.old.uuids))
        uuids, names = [*self.old.uuids, *fill], [*self.old.names, *fill]
        parent, root = self._grown(self.old.parent, -1), self._grown(self.old.root, -1)
        alive = self._grown(self.old.alive, 0)
        for row, state in self.changed.items():
            alive[row] = state is not None
            if state is None:
                uuids[row] = names[row] = ""
                parent[row], root[row] = -1, row
                continue
            one = state.provider
            uuids[row], names[row] = one.uuid, one.name
            parent[row] = -1 if one.parent_uuid is None else self.row_of[one.parent_uuid]
            root[row] = self.row_of[one.root_uuid]
        return {
            "uuids": tuple(uuids),
            "names": tuple(names),
            "row_of": self.row_of,
            "parent": parent,
            "root": root,
            "alive": alive,
            "cache": {},
        }

    # --- per class, trait and aggregate -----------------------------------------------------

    def _classes(self) -> dict[str, object]:
        """Columns of every changed class, and when time alone changes something next."""
        if not self._changes and min(self._additions.lapses, default=FOREVER) == FOREVER:
            return {"classes": {**self.old.classes, **self._additions.apply_to(self.old.classes)}}
        occupied: dict[str, dict[int, InventoryLoad]] = {}
        changed_inventories: dict[str, set[int]] = {}
        next_change = self._grown(self.old.next_change, np.iinfo(np.int64).max)
        for row, before, state in self._changes:
            after, until = inventory_loads(state, self.now)
            next_change[row] = until
            was = () if before is None else before.provider.inventories
            now = () if state is None else state.provider.inventories
            if was is not now and was != now:
                for one in {*was, *now}:
                    changed_inventories.setdefault(one.resource_class, set()).add(row)
            for name, entry in after.items():
                occupied.setdefault(name, {})[row] = entry
        added = self._additions.rows
        next_change[added] = np.minimum(next_change[added], self._additions.lapses)
        grown = self.size != len(self.old.uuids)
        classes = dict(self.old.classes)
        for name in {*occupied, *changed_inventories, *(classes if grown else ())}:
            columns = self._class(
                classes.get(name), occupied.get(name, {}), changed_inventories.get(name, set())
            )
            if columns is None:
                classes.pop(name, None)
            else:
                classes[name] = columns
        return {
            "classes": classes | self._additions.apply_to(classes),
            "next_change": next_change,
            "valid_until": int(next_change.min(initial=np.iinfo(np.int64).max)),
        }

    def _class(
        self,
        columns: ClassColumns | None,
        occupied: dict[int, InventoryLoad],
        changed_inventories: set[int],
    ) -> ClassColumns | None:
        if columns is not None and len(columns.position) != self.size:
            columns = with_row_count(columns, self.size)
        if changed_inventories or columns is None:
            return with_inventories(
                columns, occupied, changed_inventories.difference(occupied), self.size, self.now
            )
        return with_loads(columns, occupied, self.now) if occupied else columns

    def _differing(self, attribute: str) -> dict[str, tuple[list[int], list[int]]]:
        """Trait (or aggregate) -> rows that lost it, rows that got it."""
        found: dict[str, tuple[list[int], list[int]]] = {}
        of = attrgetter(attribute)
        for row, before, state in self._changes:
            was = frozenset() if before is None else of(before.provider)
            now = frozenset() if state is None else of(state.provider)
            if was is now or was == now:
                continue
            for name in was - now:
                found.setdefault(name, ([], []))[0].append(row)
            for name in now - was:
                found.setdefault(name, ([], []))[1].append(row)
        return found

    def _traits(self) -> Mapping[str, Bools]:
        differing = self._differing("traits")
        grown = self.size != len(self.old.uuids)
        if not differing and not grown:
            return self.old.traits
        traits = dict(self.old.traits)
        none = np.zeros(self.size, dtype=np.bool_)
        for name in {*differing, *(traits if grown else ())}:
            mask = self._grown(traits[name], 0) if name in traits else none.copy()
            lost, got = differing.get(name, ([], []))
            mask[lost] = False
            mask[got] = True
            traits[name] = mask.astype(np.bool_, copy=False)
            if lost and not mask.any():
                del traits[name]
        return traits

    def _aggregates(self) -> Mapping[str, Rows]:
        differing = self._differing("aggregates")
        if not differing:
            return self.old.aggregates
        aggregates = dict(self.old.aggregates)
        for name, (lost, got) in differing.items():
            members = {*aggregates.get(name, np.empty(0, dtype=np.int32)).tolist(), *got}
            members.difference_update(lost)
            if members:
                aggregates[name] = np.array(sorted(members), dtype=np.int32)
            else:
                del aggregates[name]
        return aggregates
