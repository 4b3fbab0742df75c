"""Cuts from devices: pools known before a solve, and cuts learned from a failed proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.policies.primitives import NeverTogether, Pooled

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.engine.devices.proof import DeviceConflict, Proof
    from moorage.engine.joint.problem import Problem
    from moorage.policies.primitives import Cut

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

MAX_SHRINKS: Final = 24
"""Smaller counts tried at most to strengthen one cut."""
MAX_UNIONS: Final = 64
"""Sets of providers looked at for one class of one conflict."""


def pool_cuts(proof: Proof, moving: Mapping[str, int]) -> Iterator[Pooled]:
    """Cuts for hosts with common sharing providers that may have too little of a class together.

    `moving` has, by role, how many of its members are to be placed.
    """
    devices = proof.devices
    for k in range(len(devices.classes)):
        takes = _demand_by_role(proof, k)
        demand = sum(moving.get(role, 0) * amount for role, amount in takes.items())
        for hosts, lenders in _components(proof, k):
            limit = int(_usable(proof, k, lenders)[hosts].sum()) + _lender_free(proof, k, lenders)
            if demand > limit:
                yield Pooled(
                    hosts=frozenset(hosts), amounts=tuple(sorted(takes.items())), limit=limit
                )


@dataclass(frozen=True, slots=True)
class LearnedCuts:
    """Cuts from a failed proof, and whether all of them were proved."""

    cuts: tuple[Cut, ...]
    proved: bool


def learn_cuts(problem: Problem, proof: Proof, rows: Ints, conflict: DeviceConflict) -> LearnedCuts:
    """Cuts that exclude a placement whose members on some hosts could not be served."""
    members = [m for m in problem.to_place.tolist() if int(rows[m]) in conflict.hosts]
    if len(conflict.hosts) > 1:
        return _cuts_on_shared(problem, proof, members, rows, conflict)
    host = conflict.hosts[0]
    counts = _minimal_counts(proof, proof.counts(problem.role_of, members), host)
    judged = proof.feasibility(counts)
    hosts = judged.refused(proof.host_count)
    named = zip(problem.roles, counts, strict=True)
    cut = NeverTogether(
        hosts=frozenset({host, *hosts.tolist()}),
        counts=tuple((role, n) for role, n in named if n),
    )
    return LearnedCuts((cut,), proved=not judged.host(host).undecided)


def _minimal_counts(proof: Proof, counts: tuple[int, ...], host: int) -> tuple[int, ...]:
    """Smaller counts that the host cannot serve either: they make a stronger cut."""
    left = MAX_SHRINKS
    for role in range(len(counts)):
        while counts[role] and left:
            left -= 1
            fewer = tuple(n - (r == role) for r, n in enumerate(counts))
            if not proof.feasibility(fewer).host(host).refused:
                break
            counts = fewer
    return counts


def _cuts_on_shared(
    problem: Problem, proof: Proof, members: list[int], rows: Ints, conflict: DeviceConflict
) -> LearnedCuts:
    """Cuts for members on several hosts that took too much of their sharing providers."""
    cuts = tuple(dict.fromkeys(_pooled(problem, proof, members, rows)))
    if cuts:
        return LearnedCuts(cuts, proved=True)
    hosts = np.array(sorted(conflict.hosts), dtype=np.int64)
    lent = {h: frozenset(_lenders(proof, h)) for h in range(proof.host_count)}
    alike = len({lent[h] for h in hosts.tolist()}) == 1 and not conflict.unproved
    wider = {h for h in range(proof.host_count) if lent[h] == lent[int(hosts[0])]}
    lenders = frozenset().union(*(lent[h] for h in hosts.tolist()))
    for k in range(len(proof.devices.classes)):
        if _demand_by_role(proof, k) and _lender_free(proof, k, lenders):
            usable = _usable(proof, k, lenders)
            alike &= not usable[hosts].any()
            wider -= set(np.flatnonzero(usable).tolist())
    named = zip(problem.roles, proof.counts(problem.role_of, members), strict=True)
    cut = NeverTogether(
        hosts=frozenset(wider if alike else hosts.tolist()),
        counts=tuple((role, n) for role, n in named if n),
        jointly=True,
    )
    return LearnedCuts((cut,), proved=alike)


def _pooled(problem: Problem, proof: Proof, members: list[int], rows: Ints) -> Iterator[Pooled]:
    """Cuts for classes of which some members take more than all their possible givers have."""
    devices, role_of = proof.devices, problem.role_of
    for k in range(len(devices.classes)):
        takes = _demand_by_role(proof, k)
        mine = [m for m in members if problem.roles[role_of[m]] in takes]
        givers = {r: _givers(proof, r, k) for r in {int(role_of[m]) for m in mine}}
        of = {m: givers[int(role_of[m])].get(int(rows[m]), frozenset()) for m in mine}
        for few in _unions(of.values()):
            some = [m for m in mine if of[m] <= few]
            limit = int(np.maximum(devices.free[sorted(few), k], 0).sum())
            if sum(takes[problem.roles[role_of[m]]] for m in some) <= limit:
                continue
            roles = {int(role_of[m]) for m in some}
            # Hosts on which no member of these roles takes of any other giver.
            hosts = {
                h
                for h in range(proof.host_count)
                if all(givers[r].get(h, few) <= few for r in roles if problem.allowed[r, h])
            }
            if hosts.issuperset(int(rows[m]) for m in some):
                amounts = {problem.roles[r]: takes[problem.roles[r]] for r in roles}
                yield Pooled(
                    hosts=frozenset(hosts), amounts=tuple(sorted(amounts.items())), limit=limit
                )


def _givers(proof: Proof, role: int, k: int) -> dict[int, frozenset[int]]:
    """Row -> providers that may give a class to one member of a role there; absent: none."""
    row, position, borrowed = proof.devices.accessible
    able = np.zeros(len(row), dtype=np.bool_)
    for slot in proof.requirements[role].slots:
        for c, amount in slot.amounts:
            if c == k:
                gives = np.where(borrowed, slot.lends[position], slot.own[position])
                able |= gives & (proof.devices.free[position, k] >= amount)
    found: dict[int, set[int]] = {}
    for host, giver in zip(row[able].tolist(), position[able].tolist(), strict=True):
        found.setdefault(host, set()).add(giver)
    return {host: frozenset(some) for host, some in found.items()}


def _unions(sets: Iterable[frozenset[int]]) -> list[frozenset[int]]:
    """Unions of any of these sets; a bounded number."""
    found: dict[frozenset[int], None] = {}
    for one in dict.fromkeys(sets):
        if len(found) < MAX_UNIONS:
            found |= dict.fromkeys([one, *(one | other for other in found)])
    return list(found)


def _demand_by_role(proof: Proof, k: int) -> dict[str, int]:
    """Role -> what one member takes of a class; roles that take none are left out."""
    found = {
        one.role: sum(n for slot in one.slots for c, n in slot.amounts if c == k)
        for one in proof.requirements
    }
    return {role: amount for role, amount in found.items() if amount}


def _usable(proof: Proof, k: int, lenders: frozenset[int]) -> Ints:
    """[H] free amount of a class on the hosts' own providers that can serve some slot alone.

    Without `lenders`, whose amounts are summed apart.
    """
    devices = proof.devices
    free = np.maximum(devices.free[:, k], 0)
    able = np.zeros(len(free), dtype=np.bool_)
    for slot in (slot for one in proof.requirements for slot in one.slots):
        for c, amount in slot.amounts:
            if c == k:
                able |= slot.own & (free >= amount)
    host = devices.trees.host
    own = host >= 0
    own[sorted(lenders)] = False
    found = np.zeros(proof.host_count, dtype=np.int64)
    np.add.at(found, host[own], np.where(able, free, 0)[own])
    return found


def _lender_free(proof: Proof, k: int, lenders: frozenset[int]) -> int:
    """The summed free amount of a class of these providers."""
    return int(np.maximum(proof.devices.free[sorted(lenders), k], 0).sum())


def _lenders(proof: Proof, host: int) -> list[int]:
    trees = proof.devices.trees
    first, last = np.searchsorted(trees.borrower, [host, host + 1])
    found: list[int] = trees.lender[first:last].tolist()
    return found


def _components(proof: Proof, k: int) -> Iterator[tuple[list[int], frozenset[int]]]:
    """Connected components of hosts and the sharing providers of a class."""
    devices, trees = proof.devices, proof.devices.trees
    if not len(trees.lender):
        return
    able = np.zeros(len(devices.uuids), dtype=np.bool_)
    for slot in (slot for one in proof.requirements for slot in one.slots):
        if any(c == k for c, _ in slot.amounts):
            able |= slot.lends
    able &= devices.free[:, k] > 0
    hosts_of: dict[int, list[int]] = {}
    for host, lender in zip(trees.borrower.tolist(), trees.lender.tolist(), strict=True):
        if able[lender]:
            hosts_of.setdefault(lender, []).append(host)
    groups: list[tuple[set[int], set[int]]] = []
    for lender, hosts in hosts_of.items():
        joined = [one for one in groups if one[0] & set(hosts)]
        groups = [one for one in groups if one not in joined]
        groups.append(
            (
                set(hosts).union(*(one[0] for one in joined)),
                {lender}.union(*(one[1] for one in joined)),
            )
        )
    for some, lenders in groups:
        yield sorted(some), frozenset(lenders)
