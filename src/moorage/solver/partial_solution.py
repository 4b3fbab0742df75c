"""A partial placement: sums kept up to date by `place` and `undo`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.requests import Objective
from moorage.engine.joint.domain_counters import closed_domains, excess_growth, fill_preference
from moorage.policies.primitives import SameDomain
from moorage.solver.placement_counts import Served

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.joint.problem_index import LevelConstraint, ProblemIndex

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]

COST_UNIT = 1_000.0
"""One unit of cost outweighs every preference among equally dear hosts."""


class Partial:
    """The members placed so far; fixed members are placed from the start."""

    def __init__(self, index: ProblemIndex) -> None:
        problem = index.problem
        self.index = index
        self.row_of = np.full(len(problem.members), -1, dtype=np.int64)
        self.free = problem.free.T.copy()
        self.load = np.zeros(len(problem.hosts), dtype=np.int64)
        self.counts = [
            np.zeros(constraint.domain_count, dtype=np.int64) for constraint in index.constraints
        ]
        self.others = [
            np.zeros(constraint.domain_count, dtype=np.int64) for constraint in index.constraints
        ]
        self.left = [len(constraint.members) for constraint in index.constraints]
        self._needs = [
            [(int(k), int(need[k])) for k in np.flatnonzero(need)] for need in problem.demand
        ]
        self._sizes, self._size_of = index.sizes
        self._none_asked = self._sizes == 0
        self.room = np.ones((len(self._sizes), len(problem.hosts)), dtype=np.bool_)
        """[S, H] per size (see `Index.sizes`): hosts with room for one more member of it."""
        for k, column in enumerate(self.free):
            self.room &= (column >= self._sizes[:, k : k + 1]) | self._none_asked[:, k : k + 1]
        # Columns that only count places have no capacity, and are measured by what is free.
        most = np.maximum(problem.capacity, problem.free).max(axis=0, initial=1)
        self._scale = np.maximum(most, 1).astype(np.float64)
        self._devices = Served(index) if problem.cuts else None
        self.emptiness = (np.maximum(self.free, 0) / self._scale[:, None]).sum(axis=0)
        for m, row in enumerate(problem.fixed.tolist()):
            if row >= 0:
                self._count(m, row, +1)
                self.row_of[m] = row

    # --- moves --------------------------------------------------------------------------

    def place(self, m: int, row: int) -> None:
        """Put a member on a host."""
        if self._devices is not None:
            self._devices.count(m, row, +1)
        self._count(m, row, +1)
        self._take(m, row, +1)
        self.row_of[m] = row

    def undo(self, m: int) -> None:
        """Remove a member from its host."""
        row = int(self.row_of[m])
        if self._devices is not None:
            self._devices.count(m, row, -1)
        self._count(m, row, -1)
        self._take(m, row, -1)
        self.row_of[m] = -1

    def _count(self, m: int, row: int, sign: int) -> None:
        self.load[row] += sign
        for c in self.index.constraints_of[m]:
            domain = self.index.constraints[c].domain_of[row]
            self.left[c] -= sign
            if domain >= 0:
                self.counts[c][domain] += sign
        for c in self.index.other_side_of[m]:
            domain = self.index.constraints[c].domain_of[row]
            if domain >= 0:
                self.others[c][domain] += sign

    def _take(self, m: int, row: int, sign: int) -> None:
        role = int(self.index.problem.role_of[m])
        for k, amount in self._needs[role]:
            self.free[k, row] -= sign * amount
            self.emptiness[row] -= sign * amount / self._scale[k]
        enough = (self.free[:, row] >= self._sizes) | self._none_asked
        self.room[:, row] = enough.all(axis=1)

    # --- looking ------------------------------------------------------------------------

    def hosts_for(self, m: int) -> Bools:
        """[H] hosts that the required rules allow for the member now."""
        problem = self.index.problem
        mask: Bools = (
            self.index.allowed[self.index.group_of[m]]
            & self.room[self._size_of[problem.role_of[m]]]
        )
        for c in self.index.constraints_of[m]:
            constraint = self.index.constraints[c]
            if constraint.required:
                closed = closed_domains(constraint, self.counts[c], self.others[c], self.left[c])
                if closed is not None:
                    _close(mask, constraint, closed)
                elif isinstance(constraint.primitive, SameDomain):
                    _close(mask, constraint, ~self._has_room_for_all(c))
        for c in self.index.other_side_of[m]:
            constraint = self.index.constraints[c]
            if constraint.required:
                _close(mask, constraint, self.counts[c] > 0)
        if self._devices is not None:
            self._devices.shut(m, mask)
        return mask

    def _has_room_for_all(self, c: int) -> Bools:
        """[D] whether a domain has slots for all members of a constraint on one domain."""
        constraint = self.index.constraints[c]
        inside = constraint.domain_of >= 0
        found = np.ones(constraint.domain_count, dtype=np.bool_)
        needed: dict[int, int] = {}
        for m in constraint.members:
            if self.row_of[m] < 0:
                group = self.index.group_of[m]
                needed[group] = needed.get(group, 0) + 1
        wanted = np.zeros(len(self.free), dtype=np.int64)
        for group, count in needed.items():
            role = self.index.role_of_group[group]
            slots = np.where(self.index.allowed[group] & inside, count, 0)
            for k, amount in self._needs[role]:
                slots = np.minimum(slots, np.maximum(self.free[k], 0) // amount)
                wanted[k] += count * amount
            found &= _per_domain(constraint, slots) >= count
        for k in np.flatnonzero(wanted).tolist():
            found &= _per_domain(constraint, np.maximum(self.free[k], 0)) >= wanted[k]
        return found

    def dearness(self, m: int) -> Floats:
        """[H] the added cost of the member on each host, in `COST_UNIT`s, and tie-breakers."""
        problem = self.index.problem
        cost = self.index.preference_cost[self.index.group_of[m]].astype(np.float64)
        taste = np.zeros(len(problem.hosts), dtype=np.float64)
        for c in self.index.constraints_of[m]:
            constraint, counts = self.index.constraints[c], self.counts[c]
            weight = constraint.primitive.weight
            grows = None if weight is None else excess_growth(constraint, counts, self.others[c])
            if grows is not None and weight is not None:
                cost += weight * _at(constraint, grows)
            uneven = fill_preference(constraint, counts)
            if uneven is not None:
                taste += 10.0 * _at(constraint, uneven)
        match problem.objective:
            case Objective.PACK:
                # A newly opened host should have room for the members that follow.
                fresh = self.load == 0
                cost += fresh
                taste += np.where(fresh, -self.emptiness, self.emptiness)
            case Objective.BALANCE:
                taste += 5.0 * self._fill_with(m)
            case _:
                cost += self.load > 0
                taste -= self.emptiness
        return COST_UNIT * cost + taste

    def _fill_with(self, m: int) -> Floats:
        """[H] the fill of each host in percent, including the member."""
        problem = self.index.problem
        capacity = np.maximum(problem.capacity.T, 1)
        demand = problem.demand[problem.role_of[m]][:, None]
        fill = np.where(problem.capacity.T > 0, (capacity - self.free + demand) / capacity, 0.0)
        return np.asarray(100.0 * fill.max(axis=0, initial=0.0), dtype=np.float64)


def _close(mask: Bools, constraint: LevelConstraint, domains: Bools) -> None:
    """Remove the hosts of these domains from a host mask; hosts without a domain stay."""
    if domains.any():
        mask &= ~np.append(domains, False)[constraint.domain_of]


def _at(constraint: LevelConstraint, values: Ints) -> Ints:
    """[H] the value of each host's domain, 0 without a domain."""
    found: Ints = np.append(values, 0)[constraint.domain_of]
    return found


def _per_domain(constraint: LevelConstraint, values: Ints) -> Ints:
    """[D] sums over the hosts of each domain."""
    inside = constraint.domain_of >= 0
    sums = np.bincount(
        constraint.domain_of[inside], weights=values[inside], minlength=constraint.domain_count
    )
    return sums.astype(np.int64)
