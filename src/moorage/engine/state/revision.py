"""The next revision of a snapshot: only what differs is copied, all else is shared."""

from __future__ import annotations

from itertools import chain, count
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.period import FOREVER
from moorage.engine.state.arrivals import Arrivals, Arrived, last
from moorage.engine.state.columns import entries, reoccupied, resized, restocked
from moorage.engine.state.consumer_locations import consumers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.period import Instant
    from moorage.engine.state.columns import ClassColumns, Entry, ProviderState
    from moorage.engine.state.ledger_columns import LedgerColumns

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]


class Draft:
    """Collects new provider states over an old snapshot; `fields` tells what becomes of it."""

    def __init__(
        self,
        old: LedgerColumns,
        states: Iterable[ProviderState | Arrived],
        removed: Iterable[str],
        now: Instant,
    ) -> None:
        self.old = old
        self.now = now
        self.row_of: Mapping[str, int] = old.row_of
        self.changed: dict[int, ProviderState | None] = {}
        self.size = len(old.uuids)
        whole: list[ProviderState] = []
        arrived: list[Arrived] = []
        for one in states:
            if isinstance(one, Arrived):
                arrived.append(one)
            else:
                whole.append(one)
        self._place(whole, [uuid for uuid in removed if uuid in old.row_of])
        self._arrivals = Arrivals()
        """Of rows to which lasting bookings came, and nothing else happened."""
        self._receive(arrived)
        self._let_time_pass()
        known, only = len(old.states), set(self._arrivals.rows)
        self._pairs = [
            (row, old.states[row] if row < known else None, state)
            for row, state in self.changed.items()
            if row not in only
        ]
        """The other rows that changed, with what they were and what they are."""

    def _place(self, states: list[ProviderState], removed: list[str]) -> None:
        """Give every provider its row: the one it has, a freed one, or a new one at the end."""
        fresh = [one for one in states if one.provider.uuid not in self.row_of]
        if fresh or removed:
            row_of = dict(self.row_of)
            for uuid in removed:
                self.changed[row_of.pop(uuid)] = None
            # Rows freed in this very revision stay empty for it: a row means one provider.
            free = chain(np.flatnonzero(~self.old.alive).tolist(), count(self.size))
            for uuid in dict.fromkeys(one.provider.uuid for one in fresh):
                row_of[uuid] = next(free)
            self.row_of = row_of
            self.size = max(self.size, max(row_of.values(), default=-1) + 1)
        for state in states:
            self.changed[self.row_of[state.provider.uuid]] = state

    def _receive(self, arrived: Sequence[Arrived]) -> None:
        """Note what came; what does not last, and where time changes more, is judged wholly."""
        old, now = self.old, self.now
        rows = [self.row_of[one.state.provider.uuid] for one in arrived]
        as_it_was = (old.breaks[rows] > now) & (old.taken_at <= now)
        for row, same, one in zip(rows, as_it_was.tolist(), arrived, strict=True):
            self.changed[row] = one.state
            if same and last(one.bookings, now):
                self._arrivals.note(row, one.bookings)

    def _let_time_pass(self) -> None:
        """Take along the rows that time alone has changed since the old snapshot."""
        old = self.old
        if self.now < old.taken_at:
            stale: Iterable[int] = range(len(old.states))
        elif self.now >= old.valid_until:
            stale = np.flatnonzero(old.breaks <= self.now).tolist()
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
            fields["whereabouts"] = old.whereabouts.after(self._consumers())
            fields |= self._counters()
            fields |= self._classes()
            fields["preemptible"] = self._preemptible()
            if self._structure_differs():
                fields |= self._structure()
            fields["traits"] = self._traits()
            fields["aggregates"] = self._aggregates()
        return fields

    # --- per provider ---------------------------------------------------------------------

    def _consumers(self) -> Iterator[tuple[int, Iterable[str]]]:
        """Whom the rows have that may not have been there."""
        for row, _, state in self._pairs:
            yield row, consumers(state)
        for row, bookings in zip(self._arrivals.rows, self._arrivals.bookings, strict=True):
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
        if self._pairs:  # known ones to which bookings came are as old as they were
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
        """Rows with a preemptible booking; the old ones where nothing differs."""
        came = self._arrivals.preemptible
        if not self._pairs and not came:
            return self.old.preemptible
        now = [
            state is not None and any(one.preemptible for one in state.bookings)
            for _, _, state in self._pairs
        ]
        now += [True] * len(came)
        old, rows = self.old.preemptible, [*(row for row, _, _ in self._pairs), *came]
        if len(old) == self.size and np.array_equal(old[rows], now):
            return old
        column = self._grown(old, 0)
        column[rows] = now
        return column.astype(np.bool_, copy=False)

    def _structure_differs(self) -> bool:
        for _, before, state in self._pairs:
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
        """Names and trees. A parent is in the fleet or in this very draft."""
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
        """Columns of every class touched, and when time alone changes something next."""
        if not self._pairs and min(self._arrivals.lapses, default=FOREVER) == FOREVER:
            return {"classes": {**self.old.classes, **self._arrivals.added_to(self.old.classes)}}
        occupied: dict[str, dict[int, Entry]] = {}
        restock: dict[str, set[int]] = {}
        breaks = self._grown(self.old.breaks, np.iinfo(np.int64).max)
        for row, before, state in self._pairs:
            after, until = entries(state, self.now)
            breaks[row] = until
            was = () if before is None else before.provider.inventories
            now = () if state is None else state.provider.inventories
            if was is not now and was != now:
                for one in {*was, *now}:
                    restock.setdefault(one.resource_class, set()).add(row)
            for name, entry in after.items():
                occupied.setdefault(name, {})[row] = entry
        came = self._arrivals.rows
        breaks[came] = np.minimum(breaks[came], self._arrivals.lapses)
        grown = self.size != len(self.old.uuids)
        classes = dict(self.old.classes)
        for name in {*occupied, *restock, *(classes if grown else ())}:
            columns = self._class(
                classes.get(name), occupied.get(name, {}), restock.get(name, set())
            )
            if columns is None:
                classes.pop(name, None)
            else:
                classes[name] = columns
        return {
            "classes": classes | self._arrivals.added_to(classes),
            "breaks": breaks,
            "valid_until": int(breaks.min(initial=np.iinfo(np.int64).max)),
        }

    def _class(
        self, columns: ClassColumns | None, occupied: dict[int, Entry], restock: set[int]
    ) -> ClassColumns | None:
        if columns is not None and len(columns.position) != self.size:
            columns = resized(columns, self.size)
        if restock or columns is None:
            return restocked(columns, occupied, restock.difference(occupied), self.size, self.now)
        return reoccupied(columns, occupied, self.now) if occupied else columns

    def _differing(self, attribute: str) -> dict[str, tuple[list[int], list[int]]]:
        """Trait (or aggregate) -> rows that lost it, rows that got it."""
        found: dict[str, tuple[list[int], list[int]]] = {}
        of = attrgetter(attribute)
        for row, before, state in self._pairs:
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
