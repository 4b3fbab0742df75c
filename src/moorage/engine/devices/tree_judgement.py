"""Decides which hosts' devices can serve given members: one search per class of equal trees.

Two trees are equal if their providers can serve the same slots, have the same parents, and have the
same amounts free, capped at what the members could use. Free amounts are rounded down to steps of
what is requested, so that loaded fleets have few classes too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.devices.tree_assignment import (
    BudgetExceeded,
    Pattern,
    PatternSlot,
    RoleMembers,
    assignments,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.engine.devices.host_trees import Devices
    from moorage.engine.devices.slot_requirements import RoleRequirements
    from moorage.engine.devices.tree_assignment import Assignment

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

Counts: TypeAlias = "tuple[int, ...]"
"""Per role: how many members are on one host."""

_NONE: Final[tuple[Assignment, ...]] = ()


@dataclass(frozen=True, eq=False)
class HostFeasibility:
    """Per host whether its devices can serve the members, and the assignments."""

    feasible: Bools
    """[H] hosts that can serve them, with their sharing providers."""
    undecided: Bools
    """[H] hosts whose search exceeded its budget; these are not in `feasible`."""
    _class_of: Ints
    _assignments: tuple[tuple[Assignment, ...], ...]
    _start: Ints
    _position: Ints

    def assignments(self, host: int) -> tuple[Assignment, ...]:
        """The host's assignments: per member (role by role), per slot, the provider's position."""
        positions = self._position[int(self._start[host]) :]
        return tuple(
            tuple(tuple(int(positions[at]) for at in member) for member in way)
            for way in self._assignments[int(self._class_of[host])]
        )


def host_feasibility(
    devices: Devices, requirements: Sequence[RoleRequirements], counts: Counts, hosts: int
) -> HostFeasibility:
    """Decide for every host whether it could serve these members if no others were placed."""
    roles = [(one, n) for one, n in zip(requirements, counts, strict=True) if n]
    entries = _entries(devices, roles)
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
            found.append(tuple(picks for _, picks in assignments(entries.pattern(start, end))))
            unsure.append(False)
        except BudgetExceeded:
            found.append(_NONE)
            unsure.append(True)
    serves = np.array([bool(one) for one in found], dtype=np.bool_)
    return HostFeasibility(
        feasible=serves[class_of] if hosts else np.zeros(0, dtype=np.bool_),
        undecided=np.array(unsure, dtype=np.bool_)[class_of] if hosts else np.zeros(0, np.bool_),
        _class_of=class_of,
        _assignments=tuple(found),
        _start=starts,
        _position=entries.position,
    )


@dataclass(frozen=True, eq=False)
class _Entries:
    """The providers that can serve any slot, host by host, with the features that are compared."""

    requirements: list[tuple[RoleRequirements, int]]
    row: Ints
    position: Ints
    features: Ints
    """[E, ...] serves per slot; traits per required set; free; max amount; parent; lender."""
    classes: tuple[int, ...]

    def pattern(self, start: int, end: int) -> Pattern:
        """The pattern of the tree with these entries."""
        slots = sum(len(one.slots) for one, _ in self.requirements)
        carried = sum(len(one.required) for one, _ in self.requirements)
        table: list[list[int]] = self.features[start:end].tolist()
        at, width = slots + carried, len(self.classes)
        local = {k: n for n, k in enumerate(self.classes)}
        roles, slot, carry = [], 0, slots
        for one_role, count in self.requirements:
            pattern_slots = tuple(
                PatternSlot(
                    tuple((local[k], amount) for k, amount in one.amounts),
                    tuple(sorted(_givers(table, slot + n), key=lambda p: (table[p][-1] >= 0, p))),
                    bool(one.group),
                )
                for n, one in enumerate(one_role.slots)
            )
            carries = tuple(
                tuple(bool(line[carry + n]) for line in table)
                for n in range(len(one_role.required))
            )
            roles.append(
                RoleMembers(
                    count,
                    pattern_slots,
                    one_role.subtrees,
                    one_role.beside,
                    one_role.own,
                    carries,
                    one_role.isolate,
                )
            )
            slot, carry = slot + len(one_role.slots), carry + len(one_role.required)
        return Pattern(
            free=tuple(tuple(line[at : at + width]) for line in table),
            max_amount=tuple(tuple(line[at + width : at + 2 * width]) for line in table),
            parent=tuple(line[-2] for line in table),
            lender=tuple(line[-1] for line in table),
            roles=tuple(roles),
        )


def _givers(table: list[list[int]], column: int) -> list[int]:
    return [at for at, line in enumerate(table) if line[column]]


def _entries(devices: Devices, roles: list[tuple[RoleRequirements, int]]) -> _Entries:
    row, position, borrowed = devices.accessible
    slots = [slot for one, _ in roles for slot in one.slots]
    demand, largest, step = _total_demand(roles)
    classes = tuple(sorted(demand))
    room = _whole(devices.free, position, classes, demand, step)
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
    carries = [mask[position][:, None] for one, _ in roles for mask in one.required]
    deep = any(one.subtrees or one.beside for one, _ in roles)
    parent = _parents(devices, row, position, borrowed) if deep else np.full(len(row), -1)
    lender = np.where(devices.lends[position], position, -1)
    columns = [gives, *carries, room, most, parent[:, None], lender[:, None]]
    features = np.ascontiguousarray(np.hstack(columns).astype(np.int64))
    return _Entries(roles, row, position, features, classes)


def _total_demand(
    roles: list[tuple[RoleRequirements, int]],
) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Per class: what all request, the most that one member requests, the common divisor."""
    demand: dict[int, int] = {}
    largest: dict[int, int] = {}
    step: dict[int, int] = {}
    for one, count in roles:
        mine: dict[int, int] = {}
        for slot in one.slots:
            for k, amount in slot.amounts:
                mine[k] = mine.get(k, 0) + amount
                step[k] = math.gcd(step.get(k, 0), amount)
        for k, amount in mine.items():
            demand[k] = demand.get(k, 0) + count * amount
            largest[k] = max(largest.get(k, 0), amount)
    return demand, largest, step


def _whole(
    values: Ints,
    position: Ints,
    classes: tuple[int, ...],
    most: dict[int, int],
    step: dict[int, int],
) -> Ints:
    """[E, classes] values rounded down to steps and capped at `most`."""
    found = np.zeros((len(position), len(classes)), dtype=np.int64)
    for n, k in enumerate(classes):
        found[:, n] = np.clip(values[position, k], 0, most[k]) // step[k] * step[k]
    return found


def _parents(devices: Devices, row: Ints, position: Ints, borrowed: Bools) -> Ints:
    """[E] index among the host's entries of the nearest ancestor that is an entry, or -1."""
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
