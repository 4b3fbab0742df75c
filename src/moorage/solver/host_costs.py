"""What each host costs by itself, kept up to date while members are placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.requests import Objective
from moorage.solver.domain_costs import COST_UNIT
from moorage.solver.room_costs import RoomCosts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from moorage.engine.joint.problem_index import ProblemIndex

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]

_ABSENT_FIRST: Final = 10.0
"""By how much less than on a host it costs not to place a choice, if nothing else differs."""
_TASTE: Final = 0.01
"""The largest difference of own tastes (see `Greedy.scatter`), where others' room comes first."""
_FULLEST: Final = 0.001
"""A class's free share of a host, where others' room comes first: the fullest hosts are preferred,
so whole empty hosts are spared."""
_FILL: Final = 5.0
"""One percent of a host's fill, where the fullest host's is what counts."""


class HostCosts:
    """The capacity of hosts and what each costs: the objective, preferred hosts, tie-breakers."""

    def __init__(self, index: ProblemIndex, scatter: int | None) -> None:
        """`scatter`: see `Greedy`."""
        problem = index.problem
        self._index = index
        self.free: Ints = problem.free.T.copy()
        """[K, H]"""
        self.changed: list[int] = []
        """Rows to which a member has come, or that it has left, in order."""
        self._load: Ints = np.bincount(
            problem.fixed[problem.fixed >= 0], minlength=len(problem.hosts)
        )
        sizes, size_of = index.sizes
        self._size_of: list[int] = size_of.tolist()
        self._least = np.where(sizes == 0, np.iinfo(np.int64).min, sizes)
        """[S, K] what is to be free for a member of each size (see `ProblemIndex.sizes`)."""
        self._room: Bools = np.ones((len(sizes), len(problem.hosts)), dtype=np.bool_)
        """[S, H] per size: hosts with room for one more member of it."""
        for k, column in enumerate(self.free):
            self._room &= column >= self._least[:, k : k + 1]
        # Columns that only count places have no capacity, and are measured by what is free.
        hosts = slice(problem.host_count)  # without the absent row, which has room for all
        most = np.maximum(problem.capacity[hosts], problem.free[hosts]).max(axis=0, initial=1)
        self._scale = np.maximum(most, 1).astype(np.float64)
        self._role_of: list[int] = problem.role_of.tolist()
        self._shares: list[float] = (problem.demand / self._scale).sum(axis=1).tolist()
        """[R] what a member takes, of each class as a share of the roomiest host's, summed."""
        self._emptiness: Floats = (np.maximum(self.free, 0) / self._scale[:, None]).sum(axis=0)
        self._own_taste: Floats = np.zeros(len(problem.hosts))
        if scatter is not None:
            self._own_taste = np.random.default_rng(scatter).random(len(problem.hosts))
        self._harm: RoomCosts | None = None
        if problem.room is not None:
            self._harm = RoomCosts(index, problem.room, self.free, self.changed)
        self._together = _most_together(index)
        """See `_most_together`."""
        self._alike: Floats = self._alike_on(slice(None))
        """[H] what each host costs any member, but for preferred hosts and the fill."""

    def take(self, m: int, row: int, sign: int) -> None:
        """Let a member take its amounts on a host (+1), or give them back (-1)."""
        role = self._role_of[m]
        free = self.free[:, row]
        free -= sign * self._index.problem.demand[role]
        self._room[:, row] = (free >= self._least).all(axis=1)
        self._load[row] += sign
        self._emptiness[row] -= sign * self._shares[role]
        self._alike[row] = self._alike_on(row)
        self.changed.append(row)
        if self._harm is not None:
            self._harm.take(role, row, sign)

    def of(self, group: int, rows: Ints) -> Floats:
        """What these hosts cost one more member of a group; infinite where it has no room."""
        problem, role = self._index.problem, self._index.role_of_group[group]
        dislike = self._index.preference_cost[group]
        found = self._alike[rows] + COST_UNIT * dislike[rows]
        if problem.objective is Objective.BALANCE:
            found += _FILL * self._fill_with(role, rows)
        if problem.objective is Objective.PACK:
            found -= np.where(self._load[rows] == 0, self._slots(group, rows), 0)
        if self._harm is not None:
            found += self._harm.of(role, rows)
        if problem.choices:
            found[rows == problem.host_count] = COST_UNIT * dislike[-1] - _ABSENT_FIRST
        found[~self._room[self._size_of[role]][rows]] = np.inf
        return found

    def share_of(self, members: Iterable[int]) -> float:
        """How much the members take, of each class as a share of the roomiest host's."""
        roles = self._index.problem.role_of[list(members)]
        return float((self._index.problem.demand[roles] / self._scale).sum(axis=0).max(initial=0.0))

    def _alike_on(self, rows: int | slice) -> Floats:
        load, emptiness = self._load[rows], self._emptiness[rows]
        match self._index.problem.objective:
            case Objective.PACK:
                return np.where(load == 0, COST_UNIT, _FULLEST * emptiness)
            case Objective.BALANCE:
                return 0.0 * emptiness
            case Objective.ROOM:
                return _TASTE * self._own_taste[rows] + _FULLEST * emptiness
            case _ if self._harm is None:
                return COST_UNIT * (load > 0) + self._own_taste[rows] - emptiness
            case _:
                tie = _TASTE * self._own_taste[rows] + _FULLEST * emptiness
                return COST_UNIT * (load > 0) + tie

    def _slots(self, group: int, rows: Ints) -> Ints:
        """How many of a group's members each of these hosts can take, if it is newly opened."""
        found = np.full(len(rows), self._together[self._index.alike[group]], dtype=np.int64)
        demand = self._index.problem.demand[self._index.role_of_group[group]]
        for k in np.flatnonzero(demand).tolist():
            np.minimum(found, self.free[k, rows] // demand[k], out=found)
        return found

    def _fill_with(self, role: int, rows: Ints) -> Floats:
        """The fill of each of these hosts in percent, including a member of the role."""
        problem = self._index.problem
        whole = problem.capacity[rows].T
        capacity = np.maximum(whole, 1)
        demand = problem.demand[role][:, None]
        fill = np.where(whole > 0, (capacity - self.free[:, rows] + demand) / capacity, 0.0)
        return np.asarray(100.0 * fill.max(axis=0, initial=0.0), dtype=np.float64)


def _most_together(index: ProblemIndex) -> list[int]:
    """Per group: how many of its members, and of groups alike, required limits allow on one host.

    By the number of the first of groups that are alike; 0 for the others.
    """
    found = [0] * len(index.role_of_group)
    for kind in index.interchangeable:
        group, limit = index.alike[index.group_of[kind[0]]], index.host_limit(kind)
        found[group] += len(kind) if limit is None else min(limit, len(kind))
    return found
