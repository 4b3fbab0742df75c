"""Which hosts' trees can serve so many members of each role: one search per class of equal trees.

Two trees are equal to a question when their providers give the same slots, stand below one
another alike, and have as much left as far as the question could use it. What is left is
counted in whole steps of what is asked for, so that fleets under load have few classes too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.devices.tree_assignment import GaveUp, Kind, Pattern, Piece, ways

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.engine.devices.host_trees import Devices
    from moorage.engine.devices.slot_requirements import Wish
    from moorage.engine.devices.tree_assignment import Picks

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

Counts: TypeAlias = "tuple[int, ...]"
"""Per role: how many members stand on one host."""

_NONE: Final[tuple[Picks, ...]] = ()


@dataclass(frozen=True, eq=False)
class Judged:
    """The answer for every host, and how its tree serves the members."""

    serves: Bools
    """[H] whether the host's tree, with all that share with it, can serve them."""
    unsure: Bools
    """[H] hosts of which the search gave up; these do not serve."""
    _class_of: Ints
    _ways: tuple[tuple[Picks, ...], ...]
    _start: Ints
    _position: Ints

    def picks(self, host: int) -> tuple[Picks, ...]:
        """Per way that is worth telling: per member (role by role), per slot, who gives it."""
        positions = self._position[int(self._start[host]) :]
        return tuple(
            tuple(tuple(int(positions[at]) for at in member) for member in way)
            for way in self._ways[int(self._class_of[host])]
        )


def judge(devices: Devices, wishes: Sequence[Wish], counts: Counts, hosts: int) -> Judged:
    """Ask of every host whether it could serve these members, were nobody else placed."""
    asked = [(one, n) for one, n in zip(wishes, counts, strict=True) if n]
    entries = _entries(devices, asked)
    ends = np.searchsorted(entries.row, np.arange(hosts), side="right")
    starts = np.searchsorted(entries.row, np.arange(hosts), side="left")
    width = entries.features.shape[1] * entries.features.itemsize
    text = entries.features.tobytes()
    number: dict[bytes, int] = {}
    class_of = np.empty(hosts, dtype=np.int64)
    first: list[tuple[int, int]] = []
    for host, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        key = text[start * width : end * width]
        known = number.setdefault(key, len(first))
        if known == len(first):
            first.append((start, end))
        class_of[host] = known
    found, unsure = [], []
    for start, end in first:
        try:
            found.append(tuple(picks for _, picks in ways(entries.pattern(start, end))))
            unsure.append(False)
        except GaveUp:
            found.append(_NONE)
            unsure.append(True)
    serves = np.array([bool(one) for one in found], dtype=np.bool_)
    return Judged(
        serves=serves[class_of] if hosts else np.zeros(0, dtype=np.bool_),
        unsure=np.array(unsure, dtype=np.bool_)[class_of] if hosts else np.zeros(0, np.bool_),
        _class_of=class_of,
        _ways=tuple(found),
        _start=starts,
        _position=entries.position,
    )


@dataclass(frozen=True, eq=False)
class _Entries:
    """Everybody who can give anything, host by host, in the numbers that tell trees apart."""

    asked: list[tuple[Wish, int]]
    row: Ints
    position: Ints
    features: Ints
    """[E, ...] gives per slot; traits per required set; room; most; parent; lender."""
    classes: tuple[int, ...]

    def pattern(self, start: int, end: int) -> Pattern:
        """The tree whose entries are these."""
        slots = sum(len(one.slots) for one, _ in self.asked)
        carried = sum(len(one.required) for one, _ in self.asked)
        table: list[list[int]] = self.features[start:end].tolist()
        at, width = slots + carried, len(self.classes)
        local = {k: n for n, k in enumerate(self.classes)}
        kinds, slot, carry = [], 0, slots
        for wish, count in self.asked:
            pieces = tuple(
                Piece(
                    tuple((local[k], amount) for k, amount in one.amounts),
                    tuple(sorted(_givers(table, slot + n), key=lambda p: (table[p][-1] >= 0, p))),
                    bool(one.group),
                )
                for n, one in enumerate(wish.slots)
            )
            carries = tuple(
                tuple(bool(line[carry + n]) for line in table) for n in range(len(wish.required))
            )
            kinds.append(
                Kind(count, pieces, wish.subtrees, wish.beside, wish.own, carries, wish.isolate)
            )
            slot, carry = slot + len(wish.slots), carry + len(wish.required)
        return Pattern(
            room=tuple(tuple(line[at : at + width]) for line in table),
            most=tuple(tuple(line[at + width : at + 2 * width]) for line in table),
            parent=tuple(line[-2] for line in table),
            lender=tuple(line[-1] for line in table),
            kinds=tuple(kinds),
        )


def _givers(table: list[list[int]], column: int) -> list[int]:
    return [at for at, line in enumerate(table) if line[column]]


def _entries(devices: Devices, asked: list[tuple[Wish, int]]) -> _Entries:
    row, position, borrowed = devices.reach
    slots = [slot for one, _ in asked for slot in one.slots]
    wanted, largest, step = _wanted(asked)
    classes = tuple(sorted(wanted))
    room = _whole(devices.free, position, classes, wanted, step)
    most = np.minimum(room, _whole(devices.max_unit, position, classes, largest, step))
    gives = np.zeros((len(row), len(slots)), dtype=np.int64)
    for number, slot in enumerate(slots):
        mask = np.where(borrowed, slot.lends[position], slot.own[position])
        for k, amount in slot.amounts:
            mask &= most[:, classes.index(k)] >= amount
        gives[:, number] = mask
    kept = gives.any(axis=1)
    row, position, borrowed = row[kept], position[kept], borrowed[kept]
    room, most, gives = room[kept], most[kept], gives[kept]
    carries = [mask[position][:, None] for one, _ in asked for mask in one.required]
    deep = any(one.subtrees or one.beside for one, _ in asked)
    parent = _parents(devices, row, position, borrowed) if deep else np.full(len(row), -1)
    lender = np.where(devices.lends[position], position, -1)
    columns = [gives, *carries, room, most, parent[:, None], lender[:, None]]
    features = np.ascontiguousarray(np.hstack(columns).astype(np.int64))
    return _Entries(asked, row, position, features, classes)


def _wanted(
    asked: list[tuple[Wish, int]],
) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Per class: what all want together, what one wants at most, and the common step."""
    wanted: dict[int, int] = {}
    largest: dict[int, int] = {}
    step: dict[int, int] = {}
    for one, count in asked:
        mine: dict[int, int] = {}
        for slot in one.slots:
            for k, amount in slot.amounts:
                mine[k] = mine.get(k, 0) + amount
                step[k] = math.gcd(step.get(k, 0), amount)
        for k, amount in mine.items():
            wanted[k] = wanted.get(k, 0) + count * amount
            largest[k] = max(largest.get(k, 0), amount)
    return wanted, largest, step


def _whole(
    values: Ints,
    position: Ints,
    classes: tuple[int, ...],
    most: dict[int, int],
    step: dict[int, int],
) -> Ints:
    """[E, classes] in whole steps, and no more than could be used."""
    found = np.zeros((len(position), len(classes)), dtype=np.int64)
    for n, k in enumerate(classes):
        found[:, n] = np.clip(values[position, k], 0, most[k]) // step[k] * step[k]
    return found


def _parents(devices: Devices, row: Ints, position: Ints, borrowed: Bools) -> Ints:
    """[E] place among its host's entries of the nearest provider above that is an entry, or -1."""
    own = np.flatnonzero(~borrowed)
    entry = np.full(len(devices.uuids) + 1, -1, dtype=np.int64)
    entry[position[own]] = own
    parent = np.append(devices.parent, -1)
    above = parent[position[own]]
    while True:
        lost = (above >= 0) & (entry[above] < 0)
        if not lost.any():
            break
        above = np.where(lost, parent[above], above)
    start = np.searchsorted(row, row[own])
    found = np.full(len(row), -1, dtype=np.int64)
    found[own] = np.where(above >= 0, entry[above] - start, -1)
    return found
