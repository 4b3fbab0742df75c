"""Cuts: constraints that devices impose, known before a solve or learned from a failed proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.policies.primitives import NeverTogether, Pooled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.engine.devices.proof import DeviceConflict, Proof
    from moorage.engine.joint.problem import Problem
    from moorage.policies.primitives import Cut

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

SHRINKS: Final = 24
"""Smaller counts that are tried to make one cut stronger."""


def pools(proof: Proof, moving: Mapping[str, int]) -> Iterator[Pooled]:
    """What all hosts that share some providers have of each class, where that may not be enough.

    Args:
        proof: the roles and the devices.
        moving: role -> how many of its members are to be placed.
    """
    devices = proof.devices
    for k in range(len(devices.classes)):
        takes = _takes(proof, k)
        wanted = sum(moving.get(role, 0) * amount for role, amount in takes.items())
        for hosts, lenders in _components(proof, k):
            limit = int(_usable(proof, k)[hosts].sum()) + _lent(proof, k, lenders)
            if wanted > limit:
                yield Pooled(
                    hosts=frozenset(hosts), amounts=tuple(sorted(takes.items())), limit=limit
                )


@dataclass(frozen=True, slots=True)
class Lesson:
    """Cuts from a failed proof, and whether all of them were proved."""

    cuts: tuple[Cut, ...]
    sure: bool


def lesson(problem: Problem, proof: Proof, rows: Ints, refused: DeviceConflict) -> Lesson:
    """What must not be tried again after members on some hosts could not be served."""
    members = [m for m in problem.moving.tolist() if int(rows[m]) in refused.hosts]
    if len(refused.hosts) > 1:
        return _shared(problem, proof, members, refused)
    host = refused.hosts[0]
    counts = _fewest(proof, proof.counts(problem.role_of, members), host)
    judged = proof.feasibility(counts)
    hosts = np.flatnonzero(~judged.feasible & ~judged.undecided)
    named = zip(problem.roles, counts, strict=True)
    cut = NeverTogether(
        hosts=frozenset({host, *hosts.tolist()}),
        counts=tuple((role, n) for role, n in named if n),
    )
    return Lesson((cut,), sure=not judged.undecided[host])


def _fewest(proof: Proof, counts: tuple[int, ...], host: int) -> tuple[int, ...]:
    """Smaller counts that the host cannot serve either: they forbid more."""
    left = SHRINKS
    for role in range(len(counts)):
        while counts[role] and left:
            left -= 1
            fewer = tuple(n - (r == role) for r, n in enumerate(counts))
            judged = proof.feasibility(fewer)
            if judged.feasible[host] or judged.undecided[host]:
                break
            counts = fewer
    return counts


def _shared(problem: Problem, proof: Proof, members: list[int], refused: DeviceConflict) -> Lesson:
    """Members on several hosts took too much of what the hosts share."""
    devices = proof.devices
    hosts = np.array(sorted(refused.hosts), dtype=np.int64)
    lent = {h: frozenset(_lenders(proof, h)) for h in range(proof.host_count)}
    lenders = frozenset().union(*(lent[h] for h in hosts.tolist()))
    counts = proof.counts(problem.role_of, members)
    cuts: list[Cut] = []
    alike = True
    wider = {h for h in range(proof.host_count) if lent[h] == lent[int(hosts[0])]}
    for k in range(len(devices.classes)):
        takes = _takes(proof, k)
        usable = _usable(proof, k)
        if not takes or not _lent(proof, k, lenders):
            continue
        alike &= not usable[hosts].any()
        wider -= set(np.flatnonzero(usable).tolist())
        more = {h for h in range(proof.host_count) if not usable[h] and lent[h] <= lenders}
        limit = int(usable[hosts].sum()) + _lent(proof, k, lenders)
        taken = sum(takes.get(role, 0) * n for role, n in zip(problem.roles, counts, strict=True))
        if taken > limit:
            cuts.append(
                Pooled(
                    hosts=frozenset(hosts.tolist()) | more,
                    amounts=tuple(sorted(takes.items())),
                    limit=limit,
                )
            )
    if cuts:
        return Lesson(tuple(cuts), sure=True)
    alike &= len({lent[h] for h in hosts.tolist()}) == 1 and not refused.unproved
    named = zip(problem.roles, counts, strict=True)
    cut = NeverTogether(
        hosts=frozenset(wider if alike else hosts.tolist()),
        counts=tuple((role, n) for role, n in named if n),
        jointly=True,
    )
    return Lesson((cut,), sure=alike)


def _takes(proof: Proof, k: int) -> dict[str, int]:
    """Role -> what one member takes of a class in all."""
    found = {
        one.role: sum(n for slot in one.slots for c, n in slot.amounts if c == k)
        for one in proof.requirements
    }
    return {role: amount for role, amount in found.items() if amount}


def _usable(proof: Proof, k: int) -> Ints:
    """[H] what hosts' own providers have of a class, where one has enough for any slot."""
    devices = proof.devices
    free = np.maximum(devices.free[:, k], 0)
    able = np.zeros(len(free), dtype=np.bool_)
    for slot in (slot for one in proof.requirements for slot in one.slots):
        for c, amount in slot.amounts:
            if c == k:
                able |= slot.own & (free >= amount)
    own = (devices.host >= 0) & ~devices.lends
    found = np.zeros(proof.host_count, dtype=np.int64)
    np.add.at(found, devices.host[own], np.where(able, free, 0)[own])
    return found


def _lent(proof: Proof, k: int, lenders: frozenset[int]) -> int:
    """What these providers have of a class."""
    return int(np.maximum(proof.devices.free[sorted(lenders), k], 0).sum())


def _lenders(proof: Proof, host: int) -> list[int]:
    devices = proof.devices
    first, last = np.searchsorted(devices.borrower, [host, host + 1])
    found: list[int] = devices.lender[first:last].tolist()
    return found


def _components(proof: Proof, k: int) -> Iterator[tuple[list[int], frozenset[int]]]:
    """Hosts and providers of a class that hang together by sharing it."""
    devices = proof.devices
    able = np.zeros(len(devices.uuids), dtype=np.bool_)
    for slot in (slot for one in proof.requirements for slot in one.slots):
        if any(c == k for c, _ in slot.amounts):
            able |= slot.lends
    able &= devices.free[:, k] > 0
    hosts_of: dict[int, list[int]] = {}
    for host, lender in zip(devices.borrower.tolist(), devices.lender.tolist(), strict=True):
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
