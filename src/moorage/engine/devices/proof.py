"""Proving a placement's devices: who gives what on every host, those that share counted once.

Hosts are judged one by one; where a way to serve a host takes from providers that share with
others, the ways of all hosts concerned are chosen together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.devices.tree_judgement import judge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.engine.devices.host_trees import Devices
    from moorage.engine.devices.slot_requirements import Wish
    from moorage.engine.devices.tree_assignment import Picks
    from moorage.engine.devices.tree_judgement import Counts, Judged

    Ints: TypeAlias = NDArray[np.int64]

BUDGET: Final = 20_000
"""Choices looked at where hosts share, at most."""
COUNTED: Final = 8
"""Members of a role alone on a host are counted exactly up to here."""

Load: TypeAlias = "tuple[tuple[tuple[int, int], int], ...]"
"""((Position, class number), amount) pairs taken from those who share."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Members that stand together on `hosts` and cannot be served there."""

    hosts: tuple[int, ...]
    """One host, or several that share."""
    unsure: bool = False
    """Whether it was not proved."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """Per placed member, per slot, the position of who gives it; or what is in the way."""

    givers: Mapping[int, tuple[int, ...]]
    refused: tuple[Refused, ...]


@dataclass(frozen=True, eq=False)
class Proof:
    """Answers for one set of roles and one state of the devices; remembers what it has found."""

    devices: Devices
    wishes: tuple[Wish, ...]
    """Per role of the problem."""
    host_count: int
    _judged: dict[Counts, Judged] = field(default_factory=dict)

    def judge(self, counts: Counts) -> Judged:
        """Which hosts could serve so many members of each role."""
        found = self._judged.get(counts)
        if found is None:
            found = judge(self.devices, self.wishes, counts, self.host_count)
            self._judged[counts] = found
        return found

    def alone(self, role: int, count: int) -> Judged:
        """Which hosts could serve so many members of one role, and nobody else."""
        return self.judge(tuple(count * (role == r) for r in range(len(self.wishes))))

    def most(self, role: int, members: int) -> Ints:
        """[H] how many members of the role each host could take; never too few."""
        found = np.zeros(self.host_count, dtype=np.int64)
        for count in range(1, min(members, COUNTED) + 1):
            judged = self.alone(role, count)
            serves = judged.serves | judged.unsure
            found += serves
            if not serves.any():
                return found
        if members > COUNTED:
            found[found == COUNTED] = members
        return found

    def assign(self, role_of: Ints, moving: Ints, rows: Ints) -> Assigned:
        """Who gives what to every member that is placed now, or on which hosts nobody can.

        Args:
            role_of: [M] the role of each member, by number.
            moving: numbers of the members that are placed now.
            rows: [M] the host of each member.
        """
        standing: dict[int, list[int]] = {}
        for m in moving.tolist():
            standing.setdefault(int(rows[m]), []).append(m)
        refused: list[Refused] = []
        ways: dict[int, tuple[Picks, ...]] = {}
        for host, members in standing.items():
            members.sort(key=lambda m: (int(role_of[m]), m))
            judged = self.judge(self.counts(role_of, members))
            if judged.serves[host]:
                ways[host] = judged.picks(host)
            else:
                refused.append(Refused((host,), bool(judged.unsure[host])))
        if refused:
            return Assigned({}, tuple(refused))
        roles = {host: [int(role_of[m]) for m in standing[host]] for host in standing}
        loads = {
            host: tuple(self._load(way, roles[host]) for way in some) for host, some in ways.items()
        }
        givers: dict[int, tuple[int, ...]] = {}
        for hosts in _sharing(loads):
            chosen = self._choose({host: loads[host] for host in hosts})
            if isinstance(chosen, Refused):
                refused.append(chosen)
                continue
            for host, way in chosen.items():
                givers |= dict(zip(standing[host], ways[host][way], strict=True))
        return Assigned(MappingProxyType({} if refused else givers), tuple(refused))

    def counts(self, role_of: Ints, members: Sequence[int]) -> Counts:
        """Per role: how many of these members are of it."""
        found = np.bincount(role_of[list(members)], minlength=len(self.wishes))
        return tuple(found.tolist())

    def _load(self, way: Picks, roles: Sequence[int]) -> Load:
        """What a way takes from those who share."""
        load: dict[tuple[int, int], int] = {}
        for role, picks in zip(roles, way, strict=True):
            for slot, giver in zip(self.wishes[role].slots, picks, strict=True):
                if self.devices.lends[giver]:
                    for k, amount in slot.amounts:
                        load[giver, k] = load.get((giver, k), 0) + amount
        return tuple(sorted(load.items()))

    def _choose(self, loads: Mapping[int, tuple[Load, ...]]) -> dict[int, int] | Refused:
        """One way per host, so that nobody who shares gives more than there is."""
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
                return Refused(tuple(hosts), unsure=True)
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
                    return Refused(tuple(hosts))
        return dict(zip(hosts, chosen, strict=True))


def _next_way(
    some: Sequence[Load], first: int, left: Sequence[int], number: Mapping[tuple[int, int], int]
) -> int:
    """The next way for which there is enough, or -1."""
    for way in range(first, len(some)):
        if all(left[number[key]] >= amount for key, amount in some[way]):
            return way
    return -1


def _shift(left: list[int], number: Mapping[tuple[int, int], int], load: Load, sign: int) -> None:
    for key, amount in load:
        left[number[key]] += sign * amount


def _sharing(loads: Mapping[int, tuple[Load, ...]]) -> list[list[int]]:
    """The hosts, in groups that take from the same providers in some way."""
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
