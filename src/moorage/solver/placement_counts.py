"""Cuts during the construction of a placement: counts per role and host."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.joint.problem_index import ProblemIndex

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


class Served:
    """Members placed so far, counted for the cuts; fixed members do not count."""

    def __init__(self, index: ProblemIndex) -> None:
        problem = index.problem
        self._role_of = problem.role_of
        self._placed = np.zeros((len(problem.roles), len(problem.hosts)), dtype=np.int64)
        number = {role: r for r, role in enumerate(problem.roles)}
        self._together = [
            (
                {number[role]: n for role, n in cut.counts if role in number},
                np.array(sorted(cut.hosts), dtype=np.int64),
                cut.jointly,
            )
            for cut in index.never_together
            if all(role in number for role, _ in cut.counts)
        ]
        self._pools = [
            (
                {number[role]: amount for role, amount in cut.amounts if role in number},
                np.array(sorted(cut.hosts), dtype=np.int64),
                cut.limit,
            )
            for cut in index.pools
        ]

    def count(self, m: int, row: int, sign: int) -> None:
        """Count a member placed on a host, or removed from it."""
        self._placed[self._role_of[m], row] += sign

    def shut(self, m: int, mask: Bools) -> None:
        """Remove from a host mask the hosts where one more of the member's role violates a cut."""
        role = int(self._role_of[m])
        for needs, hosts, jointly in self._together:
            if role not in needs:
                continue
            there = self._placed[:, hosts]
            if jointly:
                there = there.sum(axis=1, keepdims=True)
            full = np.logical_and.reduce(
                [there[r] + (r == role) >= number for r, number in needs.items()]
            )
            mask[hosts[np.broadcast_to(full, hosts.shape)]] = False
        for takes, hosts, limit in self._pools:
            if role in takes:
                taken = sum(n * int(self._placed[r, hosts].sum()) for r, n in takes.items())
                if taken + takes[role] > limit:
                    mask[hosts] = False
