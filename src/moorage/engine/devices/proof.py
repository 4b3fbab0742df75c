"""Assigns devices to the members of a placement, or proves that they cannot be assigned.

Each host's tree is searched alone. Where its assignments use sharing providers, one assignment per
host is chosen for all hosts concerned together, so that sharing providers are not over-allocated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.devices.tree_judgement import TreeFeasibility

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.engine.devices.host_trees import Devices
    from moorage.engine.devices.slot_requirements import RoleRequirements
    from moorage.engine.devices.tree_assignment import Assignment
    from moorage.engine.devices.tree_judgement import Counts

    Ints: TypeAlias = NDArray[np.int64]

BUDGET: Final = 20_000
"""Assignments tried at most, where hosts use the same sharing providers."""

Load: TypeAlias = "tuple[tuple[tuple[int, int], int], ...]"
"""((position, class number), amount) pairs taken from sharing providers."""


@dataclass(frozen=True, slots=True)
class DeviceConflict:
    """The members on `hosts` cannot be served there together."""

    hosts: tuple[int, ...]
    """One host, or several with common sharing providers."""
    unproved: bool = False
    """Whether the search ended without a proof."""


@dataclass(frozen=True, slots=True)
class DeviceAssignment:
    """Placed member -> per slot the provider's position; empty if there are conflicts."""

    providers: Mapping[int, tuple[int, ...]]
    conflicts: tuple[DeviceConflict, ...]


@dataclass(frozen=True, eq=False)
class Proof:
    """Feasibility of devices for one set of roles and one state of the devices; caches answers."""

    devices: Devices
    requirements: tuple[RoleRequirements, ...]
    """Per role of the problem."""
    host_count: int
    _cache: dict[Counts, TreeFeasibility] = field(default_factory=dict)

    def feasibility(self, counts: Counts) -> TreeFeasibility:
        """The hosts that could serve this many members of each role."""
        found = self._cache.get(counts)
        if found is None:
            found = TreeFeasibility(self.devices, self.requirements, counts)
            self._cache[counts] = found
        return found

    def assign(self, role_of: Ints, moving: Ints, rows: Ints) -> DeviceAssignment:
        """Assign devices to every member that is placed now, or return the conflicts.

        `role_of` is [M] the role of each member by number, `rows` [M] the host of each; `moving`
        are the numbers of the members that are placed now.
        """
        standing: dict[int, list[int]] = {}
        for m in moving.tolist():
            standing.setdefault(int(rows[m]), []).append(m)
        refused: list[DeviceConflict] = []
        ways: dict[int, tuple[Assignment, ...]] = {}
        for host, members in standing.items():
            members.sort(key=lambda m: (int(role_of[m]), m))
            judged = self.feasibility(self.counts(role_of, members)).host(host)
            if judged.ways:
                ways[host] = judged.ways
            else:
                refused.append(DeviceConflict((host,), judged.undecided))
        if refused:
            return DeviceAssignment({}, tuple(refused))
        roles = {host: [int(role_of[m]) for m in standing[host]] for host in standing}
        loads = {
            host: tuple(self._load(choice, roles[host]) for choice in some)
            for host, some in ways.items()
        }
        providers: dict[int, tuple[int, ...]] = {}
        for hosts in _sharing(loads):
            chosen = self._choose({host: loads[host] for host in hosts})
            if isinstance(chosen, DeviceConflict):
                refused.append(chosen)
                continue
            for host, choice in chosen.items():
                providers |= dict(zip(standing[host], ways[host][choice], strict=True))
        return DeviceAssignment(MappingProxyType({} if refused else providers), tuple(refused))

    def counts(self, role_of: Ints, members: Sequence[int]) -> Counts:
        """Per role: how many of these members it has."""
        found = np.bincount(role_of[list(members)], minlength=len(self.requirements))
        return tuple(found.tolist())

    def _load(self, choice: Assignment, roles: Sequence[int]) -> Load:
        """What an assignment takes from sharing providers."""
        load: dict[tuple[int, int], int] = {}
        for role, picks in zip(roles, choice, strict=True):
            for slot, provider in zip(self.requirements[role].slots, picks, strict=True):
                if self.devices.trees.lends[provider]:
                    for k, amount in slot.amounts:
                        load[provider, k] = load.get((provider, k), 0) + amount
        return tuple(sorted(load.items()))

    def _choose(self, loads: Mapping[int, tuple[Load, ...]]) -> dict[int, int] | DeviceConflict:
        """Choose one assignment per host, without over-allocating a sharing provider."""
        hosts = sorted(loads, key=lambda host: (len(loads[host]), loads[host], host))
        keys = sorted({key for some in loads.values() for load in some for key, _ in load})
        number = {key: n for n, key in enumerate(keys)}
        left = [max(int(self.devices.free[key]), 0) for key in keys]
        chosen = [-1] * len(hosts)
        closed: set[tuple[int, tuple[int, ...]]] = set()
        depth, budget = 0, BUDGET
        while depth < len(hosts):
            budget -= 1
            if budget < 0:
                return DeviceConflict(tuple(hosts), unproved=True)
            some = loads[hosts[depth]]
            if chosen[depth] >= 0:
                _shift(left, number, some[chosen[depth]], +1)
            chosen[depth] = _next_way(some, chosen[depth] + 1, left, number)
            if chosen[depth] >= 0:
                _shift(left, number, some[chosen[depth]], -1)
                if (depth + 1, tuple(left)) not in closed:
                    depth += 1
            else:
                closed.add((depth, tuple(left)))
                depth -= 1
                if depth < 0:
                    return DeviceConflict(tuple(hosts))
        return dict(zip(hosts, chosen, strict=True))


def _next_way(
    some: Sequence[Load], first: int, left: Sequence[int], number: Mapping[tuple[int, int], int]
) -> int:
    """The next assignment that fits in what is left, or -1."""
    for choice in range(first, len(some)):
        if all(left[number[key]] >= amount for key, amount in some[choice]):
            return choice
    return -1


def _shift(left: list[int], number: Mapping[tuple[int, int], int], load: Load, sign: int) -> None:
    for key, amount in load:
        left[number[key]] += sign * amount


def _sharing(loads: Mapping[int, tuple[Load, ...]]) -> list[list[int]]:
    """The hosts in groups connected by the sharing providers that their assignments use."""
    head = {host: host for host in loads}

    def find(host: int) -> int:
        while head[host] != host:
            head[host] = head[head[host]]
            host = head[host]
        return host

    first: dict[tuple[int, int], int] = {}
    for host, some in loads.items():
        for key in {key for load in some for key, _ in load}:
            head[find(host)] = find(first.setdefault(key, host))
    groups: dict[int, list[int]] = {}
    for host in loads:
        groups.setdefault(find(host), []).append(host)
    return list(groups.values())
