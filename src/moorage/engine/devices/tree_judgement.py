"""Decides which hosts' devices can serve given members: one search per class of equal trees.

Two trees are equal if their providers can serve the same slots, have the same parents, and have the
same amounts free, capped at what the members could use. Free amounts are rounded down to steps of
what is requested, so that loaded fleets have few classes too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
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
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from moorage.engine.devices.device_trees import DeviceTrees
    from moorage.engine.devices.host_trees import Devices
    from moorage.engine.devices.slot_requirements import RoleRequirements
    from moorage.engine.devices.tree_assignment import Assignment

    Ints: TypeAlias = NDArray[np.integer]
    Bools: TypeAlias = NDArray[np.bool_]

Counts: TypeAlias = "tuple[int, ...]"
"""Per role: how many members are on one host."""

_NONE: Final[tuple[Assignment, ...]] = ()
_PARENT, _LENDER = -2, -1
"""Columns of `_Entries.features`, from the end."""
_FACTOR: Final = np.int64(6_364_136_223_846_793_005)
"""Makes one number of a provider's features, wrapping around."""


@dataclass(frozen=True, slots=True)
class TreeAnswer:
    """Whether the devices of a class of equal trees can serve some members."""

    ways: tuple[Assignment, ...]
    """The assignments: per member (role by role), per slot, the number of the provider."""
    undecided: bool = False
    """Whether the search exceeded its budget; then there are no ways."""

    @property
    def serves(self) -> bool:
        """Whether they can serve them, or may."""
        return bool(self.ways) or self.undecided


@dataclass(frozen=True, slots=True)
class HostAnswer:
    """Whether a host's devices, with its sharing providers, can serve some members."""

    ways: tuple[Assignment, ...]
    """The assignments: per member (role by role), per slot, the provider's position."""
    undecided: bool

    @property
    def refused(self) -> bool:
        """Whether it is proved that they cannot."""
        return not self.ways and not self.undecided


class TreeFeasibility:
    """Which hosts could serve some members of each role, if no others were placed."""

    def __init__(
        self, devices: Devices, requirements: Sequence[RoleRequirements], counts: Counts
    ) -> None:
        """Judge so many members of each role; hosts are looked at when they are asked for."""
        pairs = zip(requirements, counts, strict=True)
        self._devices = devices
        self._roles = [(one, n) for one, n in pairs if n]
        self._answers: dict[bytes, TreeAnswer] = {}

    def host(self, row: int) -> HostAnswer:
        """The answer for one host."""
        entries = _entries(self._devices, self._roles, np.array([row]))
        ((_, answer),) = _judged(entries, 1, self._answers)
        positions = entries.position.tolist()
        return HostAnswer(
            tuple(
                tuple(tuple(positions[at] for at in member) for member in way)
                for way in answer.ways
            ),
            answer.undecided,
        )

    def refused(self, hosts: int) -> Ints:
        """Rows, of so many hosts, for which it is proved that they cannot serve them."""
        entries = _entries(self._devices, self._roles, np.arange(hosts))
        judged = _judged(entries, hosts, self._answers)
        return np.array([row for row, one in judged if not one.serves], dtype=np.int64)


def serving(
    devices: Devices,
    requirements: RoleRequirements,
    count: int,
    hosts: Ints,
    answers: dict[tuple[int, bytes], bool],
) -> Bools:
    """[n] which of some hosts (rows, ascending) may serve so many members of one role alone.

    `answers` has what is known of trees for this role, and is added to.
    """
    entries = _entries(devices, [(requirements, count)], hosts).in_any_order()
    found = np.empty(len(hosts), dtype=np.bool_)
    for number, (start, end) in enumerate(entries.bounds(len(hosts))):
        key = count, entries.text(start, end)
        known = answers.get(key)
        if known is None:
            known = answers[key] = _answer(entries, start, end).serves
        found[number] = known
    return found


def _judged(
    entries: _Entries, hosts: int, answers: dict[bytes, TreeAnswer]
) -> Iterator[tuple[int, TreeAnswer]]:
    for number, (start, end) in enumerate(entries.bounds(hosts)):
        key = entries.text(start, end)
        known = answers.get(key)
        if known is None:
            known = answers[key] = _answer(entries, start, end)
        yield number, known


def _answer(entries: _Entries, start: int, end: int) -> TreeAnswer:
    try:
        return TreeAnswer(tuple(picks for _, picks in assignments(entries.pattern(start, end))))
    except BudgetExceeded:
        return TreeAnswer(_NONE, undecided=True)


@dataclass(frozen=True, eq=False)
class _Entries:
    """The providers that can serve any slot, host by host, with the features that are compared."""

    requirements: list[tuple[RoleRequirements, int]]
    number: Ints
    """[E] index of the host, ascending."""
    position: Ints
    features: Ints
    """[E, ...] serves per slot; traits per required set; free; max amount; parent; lender."""
    classes: tuple[int, ...]

    def bounds(self, hosts: int) -> Iterator[tuple[int, int]]:
        """First entry of each of so many hosts, and the one after its last."""
        ends = np.cumsum(np.bincount(self.number, minlength=hosts)).tolist()
        return zip((0, *ends), ends, strict=False)

    def in_any_order(self) -> _Entries:
        """The same, equal for trees that differ only in the order of their providers.

        Which provider is meant is then lost.
        """
        if not len(self.features) or (self.features[:, _PARENT] >= 0).any():
            return self
        # Any number that equal features have in common will do: others only make one class two.
        mark = self.features @ (_FACTOR ** np.arange(self.features.shape[1]))
        return replace(self, features=self.features[np.lexsort((mark, self.number))])

    def text(self, start: int, end: int) -> bytes:
        """What trees with equal features have in common."""
        return self._text[start * self._width : end * self._width]

    @cached_property
    def _text(self) -> bytes:
        return self.features.tobytes()

    @cached_property
    def _width(self) -> int:
        return int(self.features.shape[1]) * self.features.itemsize

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
                    tuple(
                        sorted(_givers(table, slot + n), key=lambda p: (table[p][_LENDER] >= 0, p))
                    ),
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
            parent=tuple(line[_PARENT] for line in table),
            lender=tuple(line[_LENDER] for line in table),
            roles=tuple(roles),
        )


def _givers(table: list[list[int]], column: int) -> list[int]:
    return [at for at, line in enumerate(table) if line[column]]


def _entries(devices: Devices, roles: list[tuple[RoleRequirements, int]], hosts: Ints) -> _Entries:
    """The entries of some hosts (rows, ascending)."""
    trees = devices.trees
    at = trees.entries_of(hosts)
    every_row, every_position, is_borrowed = trees.accessible
    row, position, borrowed = every_row[at], every_position[at], is_borrowed[at]
    slots = [slot for one, _ in roles for slot in one.slots]
    demand, largest, step = total_demand(roles)
    classes = tuple(sorted(demand))
    room = np.empty((len(position), len(classes)), dtype=np.int64)
    most = np.empty_like(room)
    for n, k in enumerate(classes):
        room[:, n] = whole(devices.free[position, k], demand[k], step[k]) * step[k]
        unit = devices.unit_rule("max_unit", k, position)
        most[:, n] = np.minimum(room[:, n], whole(unit, largest[k], step[k]) * step[k])
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
    parent = _parents(trees, row, position, borrowed) if deep else np.full(len(row), -1)
    lender = np.where(trees.lends[position], position, -1)
    columns = [gives, *carries, room, most, parent[:, None], lender[:, None]]
    features = np.ascontiguousarray(np.hstack(columns).astype(np.int64))
    return _Entries(roles, hosts.searchsorted(row), position, features, classes)


def total_demand(
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


def whole(values: Ints, most: int, step: int) -> Ints:
    """[n] how many whole steps there are in values, up to `most`."""
    found: Ints = np.clip(values, 0, most) // step
    return found


def _parents(trees: DeviceTrees, row: Ints, position: Ints, borrowed: Bools) -> Ints:
    """[E] index among the host's entries of the nearest ancestor that is an entry, or -1."""
    own = np.flatnonzero(~borrowed)
    entry = np.full(len(trees.uuids) + 1, -1, dtype=np.int64)
    entry[position[own]] = own
    parent = np.append(trees.parent, -1)
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
