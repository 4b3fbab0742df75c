"""A partial placement: sums kept up to date by `place` and `undo`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from moorage.domain.requests import Objective
from moorage.policies.primitives import Near, SameDomain
from moorage.solver.candidate_costs import CandidateCosts
from moorage.solver.domain_costs import COST_UNIT, DomainCosts
from moorage.solver.placement_counts import Served
from moorage.solver.shared_room import SharedRoom, needs_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import NDArray

    from moorage.engine.joint.domain_rows import DomainRows
    from moorage.engine.joint.problem_index import ProblemIndex

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]

ABSENT_FIRST: Final = 10.0
"""By how much less than on a host it costs not to place a choice, if nothing else differs."""
_KEPT: Final = 64
"""So many `CandidateCosts`, and `SharedRoom`s, are kept: one takes some numbers for each host."""


class Candidates(NamedTuple):
    """Hosts for a member. Neither array is to be written to."""

    rows: Ints
    """Ascending; other hosts are not allowed at all."""
    costs: Floats
    """What the member adds there, in `COST_UNIT`s, and tie-breakers; infinite where a required rule
    closes the host."""


class _Others(NamedTuple):
    """The other choices of a member."""

    placed: bool
    """Whether one of them is on a host."""
    open: bool
    """Whether one of them is not decided yet."""


class _Constraints(NamedTuple):
    """The constraints on a member, by number."""

    apart: list[tuple[int, bool]]
    """All but `shared`, and whether the member is on the other side."""
    shared: list[int]
    """The required `SameDomain`s."""
    preferred: list[int]
    """The preferred ones, which are in `apart` as well, the lowest level first."""


class Partial:
    """The members placed so far; fixed members are placed from the start."""

    def __init__(self, index: ProblemIndex, scatter: int | None = None) -> None:
        """`scatter`: see `Greedy`."""
        problem = index.problem
        self.index = index
        self.row_of = np.full(len(problem.members), -1, dtype=np.int64)
        self.free = problem.free.T.copy()
        self.load = np.zeros(len(problem.hosts), dtype=np.int64)
        self.counts = [
            np.zeros(constraint.domain_count, dtype=np.int64) for constraint in index.constraints
        ]
        # Constraints without another side share what is never written to.
        sizes = {one.domain_count for one in index.constraints}
        nobody = {size: np.zeros(size, dtype=np.int64) for size in sizes}
        self.others = [
            np.zeros_like(counts) if constraint.others else nobody[len(counts)]
            for counts, constraint in zip(self.counts, index.constraints, strict=True)
        ]
        self.left = [len(constraint.awaited) for constraint in index.constraints]
        self.changed: list[int] = []
        """Rows to which a member has come, or that it has left, in order."""
        self._domain_costs: list[dict[bool, DomainCosts]] = [{} for _ in index.constraints]
        self._candidate_costs: dict[Hashable, CandidateCosts] = {}
        self._rooms: dict[Hashable, SharedRoom] = {}
        self._split: dict[Hashable, _Constraints] = {}
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
        hosts = slice(problem.host_count)  # without the absent row, which has room for all
        most = np.maximum(problem.capacity[hosts], problem.free[hosts]).max(axis=0, initial=1)
        self._scale = np.maximum(most, 1).astype(np.float64)
        self._devices = Served(index) if problem.cuts else None
        self.emptiness = (np.maximum(self.free, 0) / self._scale[:, None]).sum(axis=0)
        self._own_taste = np.zeros(len(problem.hosts))
        if scatter is not None:
            self._own_taste = np.random.default_rng(scatter).random(len(problem.hosts))
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
            domain = int(self.index.constraints[c].domain_of[row])
            if not isinstance(self.index.constraints[c].primitive, Near):
                self.left[c] -= sign
            if domain >= 0:
                self.counts[c][domain] += sign
            self._touch(c, domain)
        for c in self.index.other_side_of[m]:
            domain = int(self.index.constraints[c].domain_of[row])
            if isinstance(self.index.constraints[c].primitive, Near):
                self.left[c] -= sign
            if domain >= 0:
                self.others[c][domain] += sign
            self._touch(c, domain)

    def _touch(self, c: int, domain: int) -> None:
        for costs in self._domain_costs[c].values():
            costs.touch(domain)

    def _take(self, m: int, row: int, sign: int) -> None:
        role = int(self.index.problem.role_of[m])
        for k, amount in self._needs[role]:
            self.free[k, row] -= sign * amount
            self.emptiness[row] -= sign * amount / self._scale[k]
        self.changed.append(row)
        enough = (self.free[:, row] >= self._sizes) | self._none_asked
        self.room[:, row] = enough.all(axis=1)

    # --- looking ------------------------------------------------------------------------

    def candidates(self, m: int) -> Candidates:
        """The hosts of a member, and what each costs now; see `Candidates`.

        A choice is not placed once another one is, and must be once no other can be.
        """
        if m not in self.index.optional:
            return self._candidates(m)
        absent, others = self.index.problem.host_count, self._others(m)
        if others.placed:
            return Candidates(np.array([absent], dtype=np.int64), np.zeros(1))
        found = self._candidates(m)
        if not others.open:
            found = Candidates(found.rows, np.where(found.rows == absent, np.inf, found.costs))
        return found

    def _others(self, m: int) -> _Others:
        """The state of the member's other choices."""
        rows = self.row_of[self.index.optional[m][1]]
        placed = bool(((rows >= 0) & (rows < self.index.problem.host_count)).any())
        return _Others(placed, bool((rows < 0).any()))

    def _candidates(self, m: int) -> Candidates:
        apart, shared, preferred = self._constraints_of(m)
        parts = [self._costs(c, other_side) for c, other_side in apart]
        met = [c for c in shared if self.counts[c].any()]
        if met:
            found = self._in_one_domain(m, met, parts)
        else:
            kept = self._kept(m, tuple(apart), parts)
            costs = kept.costs(self.changed, partial(self._on_rows, m))
            found = Candidates(kept.rows, costs)
        for c in shared:
            if c not in met:
                room, domains = self._shared_room(c), self.index.domain_rows[c]
                closed = ~room.enough[domains.of[found.rows]]
                found = Candidates(found.rows, np.where(closed, np.inf, found.costs))
        first = [c for c in preferred if not self.counts[c].any()]
        if first:
            found = self._with_preferred_room(found, first)
        return found if self._devices is None else self._served(m, found)

    def _with_preferred_room(self, found: Candidates, first: list[int]) -> Candidates:
        """The same, dearer in domains without room for all that prefer to share one.

        `first`: constraints of which no member is placed, those of the lowest level first.
        """
        domains = self.index.domain_rows
        for c in first:
            weight = self.index.constraints[c].primitive.weight or 0
            lacks = ~self._shared_room(c).enough[domains[c].of[found.rows]]
            found = Candidates(found.rows, found.costs + COST_UNIT * weight * lacks)
            if np.isfinite(found.costs[~lacks]).any():
                break  # and then there is room at the levels above
        return found

    def look_of(self, m: int) -> Hashable:
        """Equal for members with the same candidates, open or closed, as long as nothing moves."""
        apart, shared, _ = self._constraints_of(m)
        active = [c for c in apart if not self._costs(*c)[0].idle]
        rooms = [c if self.counts[c].any() else self._shared_room(c) for c in shared]
        group = (
            self.index.group_of[m] if self._devices else self.index.alike[self.index.group_of[m]]
        )
        others = self._others(m) if m in self.index.optional else None
        return group, tuple(active), tuple(rooms), others

    def share_of(self, members: Iterable[int]) -> float:
        """How much the members take, of each class as a share of the roomiest host's."""
        roles = self.index.problem.role_of[list(members)]
        return float((self.index.problem.demand[roles] / self._scale).sum(axis=0).max(initial=0.0))

    def _constraints_of(self, m: int) -> _Constraints:
        key = self.index.constraints_of[m], self.index.other_side_of[m]
        if key in self._split:
            return self._split[key]
        apart, shared, preferred = list[tuple[int, bool]](), list[int](), list[int]()
        for c in self.index.constraints_of[m]:
            if c in self.index.of_choices:
                continue  # `candidates` sees to it
            constraint = self.index.constraints[c]
            same = isinstance(constraint.primitive, SameDomain)
            if same and constraint.required:
                shared.append(c)
                continue
            apart.append((c, False))
            if same:
                preferred.append(c)
        for c in self.index.other_side_of[m]:
            constraint = self.index.constraints[c]
            if constraint.required or isinstance(constraint.primitive, Near):
                apart.append((c, True))
        preferred.sort(key=lambda c: -self.index.constraints[c].domain_count)
        found = self._split[key] = _Constraints(apart, shared, preferred)
        return found

    def _costs(self, c: int, other_side: bool) -> tuple[DomainCosts, DomainRows]:  # noqa: FBT001 - a part of a key
        found = self._domain_costs[c].get(other_side)
        if found is None:
            found = self._domain_costs[c][other_side] = DomainCosts(
                self.index.constraints[c], self.counts[c], self.others[c], other_side=other_side
            )
        found.renew(self.left[c])
        return found, self.index.domain_rows[c]

    def _kept(
        self,
        m: int,
        key: tuple[tuple[int, bool], ...],
        parts: Sequence[tuple[DomainCosts, DomainRows]],
    ) -> CandidateCosts:
        group = self.index.group_of[m]
        whole = self.index.alike[group], id(self.index.preference_cost[group]), key
        found = self._candidate_costs.pop(whole, None)
        if found is None:
            # Members with other constraints often cost the same where no constraint does.
            base = self._kept(m, (), ()) if parts else None
            while len(self._candidate_costs) >= _KEPT:
                del self._candidate_costs[next(iter(self._candidate_costs))]
            found = CandidateCosts(self.index.rows_of(group), parts, base)
        self._candidate_costs[whole] = found
        return found

    def _in_one_domain(
        self, m: int, met: list[int], parts: Sequence[tuple[DomainCosts, DomainRows]]
    ) -> Candidates:
        """The hosts of the domains in which the others of a member's are already."""
        rows = self._where_others_are(met[0])
        for c in met[1:]:
            rows = np.intersect1d(rows, self._where_others_are(c))
        rows = np.sort(rows[self.index.allowed[self.index.group_of[m]][rows]])
        costs = self._on_rows(m, rows)
        for part, domains in parts:
            if not part.idle:
                costs += part.costs[domains.of[rows]]
        return Candidates(rows, costs)

    def _where_others_are(self, c: int) -> Ints:
        domains = self.index.domain_rows[c]
        inside = domains.rows_in(np.flatnonzero(self.counts[c]))
        return np.concatenate((inside, domains.outside)) if len(domains.outside) else inside

    def _shared_room(self, c: int) -> SharedRoom:
        needs = needs_of(self.index, c, self.row_of)
        domains = self.index.domain_rows[c]
        found = self._rooms.pop((domains, needs), None)
        if found is None:
            while len(self._rooms) >= _KEPT:
                del self._rooms[next(iter(self._rooms))]
            found = SharedRoom(self.index, self.free, self.counts, domains, needs)
        self._rooms[domains, needs] = found
        found.renew(self.changed)
        return found

    def _served(self, m: int, found: Candidates) -> Candidates:
        """Without the hosts whose devices cannot serve the member."""
        assert self._devices is not None
        mask = np.zeros(len(self.load), dtype=np.bool_)
        mask[found.rows] = True
        self._devices.shut(m, mask)
        return Candidates(found.rows, np.where(mask[found.rows], found.costs, np.inf))

    def _on_rows(self, m: int, rows: Ints) -> Floats:
        """What hosts cost by themselves: the objective, preferred hosts, and tie-breakers."""
        problem = self.index.problem
        cost = self.index.preference_cost[self.index.group_of[m]][rows].astype(np.float64)
        load, emptiness = self.load[rows], self.emptiness[rows]
        taste: Floats
        match problem.objective:
            case Objective.PACK:
                # A newly opened host should have room for the members that follow.
                fresh = load == 0
                cost += fresh
                taste = np.where(fresh, -emptiness, emptiness)
            case Objective.BALANCE:
                taste = 5.0 * self._fill_with(m, rows)
            case _:
                cost += load > 0
                taste = self._own_taste[rows] - emptiness
        if problem.choices:
            absent = rows == problem.host_count
            cost[absent] = self.index.preference_cost[self.index.group_of[m]][-1]
            taste = np.where(absent, -ABSENT_FIRST, taste)
        found = COST_UNIT * cost + taste
        found[~self.room[self._size_of[problem.role_of[m]], rows]] = np.inf
        return found

    def _fill_with(self, m: int, rows: Ints) -> Floats:
        """The fill of each of these hosts in percent, including the member."""
        problem = self.index.problem
        whole = problem.capacity[rows].T
        capacity = np.maximum(whole, 1)
        demand = problem.demand[problem.role_of[m]][:, None]
        fill = np.where(whole > 0, (capacity - self.free[:, rows] + demand) / capacity, 0.0)
        return np.asarray(100.0 * fill.max(axis=0, initial=0.0), dtype=np.float64)
