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
    from moorage.solver.shared_room import Needs

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]

ABSENT_FIRST: Final = 10.0
"""By how much less than on a host it costs not to place a choice, if nothing else differs."""
_FILL: Final = 5.0
"""One percent of a host's fill, where the fullest host's counts."""
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


class _Kind(NamedTuple):
    """What members of one group with the same constraints have in common."""

    group: int
    apart: list[tuple[int, bool]]
    """The constraints by number, all but `shared`, and whether they are on the other side."""
    parts: list[tuple[DomainCosts, DomainRows]]
    """What each of `apart` adds to the costs of hosts."""
    shared: list[int]
    """The required `SameDomain`s."""
    preferred: list[int]
    """The preferred ones, which are in `apart` as well, the lowest level first."""
    key: Hashable
    """Equal for kinds whose hosts cost the same."""


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
        lengths = {one.domain_count for one in index.constraints}
        nobody = {length: np.zeros(length, dtype=np.int64) for length in lengths}
        self.others = [
            np.zeros_like(counts) if constraint.others else nobody[len(counts)]
            for counts, constraint in zip(self.counts, index.constraints, strict=True)
        ]
        self.left = [len(constraint.awaited) for constraint in index.constraints]
        self._begun = [0] * len(index.constraints)
        """Per constraint: how many members are in a domain."""
        self.changed: list[int] = []
        """Rows to which a member has come, or that it has left, in order."""
        self._domain_costs: list[list[DomainCosts]] = [[] for _ in index.constraints]
        """Per constraint: those for its members, and for the other side, as far as needed."""
        self._candidate_costs: dict[Hashable, CandidateCosts] = {}
        self._rooms: dict[Hashable, SharedRoom] = {}
        self._needs_of_all: dict[int, Needs] = {}
        """What all members of a constraint need."""
        self._kinds: dict[Hashable, _Kind] = {}
        self._kind_of: list[_Kind | None] = [None] * len(problem.members)
        sizes, size_of = index.sizes
        self._size_of: list[int] = size_of.tolist()
        self._least = np.where(sizes == 0, np.iinfo(np.int64).min, sizes)
        """[S, K] what is to be free for a member of each size (see `ProblemIndex.sizes`)."""
        self.room = np.ones((len(sizes), len(problem.hosts)), dtype=np.bool_)
        """[S, H] per size: hosts with room for one more member of it."""
        for k, column in enumerate(self.free):
            self.room &= column >= self._least[:, k : k + 1]
        # Columns that only count places have no capacity, and are measured by what is free.
        hosts = slice(problem.host_count)  # without the absent row, which has room for all
        most = np.maximum(problem.capacity[hosts], problem.free[hosts]).max(axis=0, initial=1)
        self._scale = np.maximum(most, 1).astype(np.float64)
        self._role_of: list[int] = problem.role_of.tolist()
        self._shares: list[float] = (problem.demand / self._scale).sum(axis=1).tolist()
        """[R] what a member takes, of each class as a share of the roomiest host's, summed."""
        self._devices = Served(index) if problem.cuts else None
        self.emptiness = (np.maximum(self.free, 0) / self._scale[:, None]).sum(axis=0)
        self._own_taste = np.zeros(len(problem.hosts))
        if scatter is not None:
            self._own_taste = np.random.default_rng(scatter).random(len(problem.hosts))
        for m, row in enumerate(problem.fixed.tolist()):
            if row >= 0:
                self._count(m, row, +1)
                self.row_of[m] = row
        self._alone: Floats = self._alone_on(slice(None))
        """[H] what each host costs any member, but for preferred hosts and the fill."""

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
            constraint = self.index.constraints[c]
            domain = int(constraint.domain_of[row])
            if not constraint.is_near:
                self.left[c] -= sign
            if domain >= 0:
                self.counts[c][domain] += sign
                self._begun[c] += sign
            for costs in self._domain_costs[c]:
                costs.touch(domain)
        for c in self.index.other_side_of[m]:
            constraint = self.index.constraints[c]
            domain = int(constraint.domain_of[row])
            if constraint.is_near:
                self.left[c] -= sign
            if domain >= 0:
                self.others[c][domain] += sign
            for costs in self._domain_costs[c]:
                costs.touch(domain)

    def _take(self, m: int, row: int, sign: int) -> None:
        role = self._role_of[m]
        free = self.free[:, row]
        free -= sign * self.index.problem.demand[role]
        self.room[:, row] = (free >= self._least).all(axis=1)
        self.emptiness[row] -= sign * self._shares[role]
        self._alone[row] = self._alone_on(row)
        self.changed.append(row)

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
        kind = self._kind(m)
        self._renew(kind)
        met = [c for c in kind.shared if self._begun[c]]
        if met:
            found = self._in_one_domain(kind, met)
        else:
            kept = self._kept(kind.key, kind.group, kind.parts)
            costs = kept.costs(self.changed, partial(self._on_rows, kind.group))
            found = Candidates(kept.rows, costs)
        for c in kind.shared:
            if c not in met:
                closed = np.where(self._shared_room(c).enough, 0.0, np.inf)
                domains = self.index.domain_rows[c].of[found.rows]
                found = Candidates(found.rows, found.costs + closed[domains])
        first = [c for c in kind.preferred if not self._begun[c]]
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
            enough = self._shared_room(c).enough[domains[c].of[found.rows]]
            found = Candidates(found.rows, found.costs + COST_UNIT * weight * ~enough)
            if (enough & np.isfinite(found.costs)).any():
                break  # and then there is room at the levels above
        return found

    def look_of(self, m: int) -> Hashable:
        """Equal for members with the same candidates, open or closed, as long as nothing moves."""
        kind = self._kind(m)
        self._renew(kind)
        active = [
            one for one, (costs, _) in zip(kind.apart, kind.parts, strict=True) if not costs.idle
        ]
        rooms = [c if self._begun[c] else self._shared_room(c) for c in kind.shared]
        group = kind.group if self._devices else self.index.alike[kind.group]
        others = self._others(m) if m in self.index.optional else None
        return group, tuple(active), tuple(rooms), others

    def share_of(self, members: Iterable[int]) -> float:
        """How much the members take, of each class as a share of the roomiest host's."""
        roles = self.index.problem.role_of[list(members)]
        return float((self.index.problem.demand[roles] / self._scale).sum(axis=0).max(initial=0.0))

    def _kind(self, m: int) -> _Kind:
        found = self._kind_of[m]
        if found is None:
            index = self.index
            whole = index.group_of[m], index.constraints_of[m], index.other_side_of[m]
            if whole not in self._kinds:
                self._kinds[whole] = self._kind_with(*whole)
            found = self._kind_of[m] = self._kinds[whole]
        return found

    def _kind_with(self, group: int, own: tuple[int, ...], other_side: tuple[int, ...]) -> _Kind:
        apart, shared, preferred = list[tuple[int, bool]](), list[int](), list[int]()
        for c in own:
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
        for c in other_side:
            constraint = self.index.constraints[c]
            if constraint.required or isinstance(constraint.primitive, Near):
                apart.append((c, True))
        preferred.sort(key=lambda c: -self.index.constraints[c].domain_count)
        parts = [(self._costs(c, side), self.index.domain_rows[c]) for c, side in apart]
        key = self._key(group, tuple(apart))
        return _Kind(group, apart, parts, shared, preferred, key)

    def _costs(self, c: int, other_side: bool) -> DomainCosts:  # noqa: FBT001 - a part of a key
        for found in self._domain_costs[c]:
            if found.other_side is other_side:
                return found
        made = DomainCosts(
            self.index.constraints[c], self.counts[c], self.others[c], other_side=other_side
        )
        self._domain_costs[c].append(made)
        return made

    def _renew(self, kind: _Kind) -> None:
        """Bring up to date what the kind's constraints add to the costs of hosts."""
        for (c, _), (costs, _) in zip(kind.apart, kind.parts, strict=True):
            costs.renew(self.left[c])

    def _kept(
        self, key: Hashable, group: int, parts: Sequence[tuple[DomainCosts, DomainRows]]
    ) -> CandidateCosts:
        found = self._candidate_costs.pop(key, None)
        if found is None:
            # Members with other constraints often cost the same where no constraint does.
            base = self._kept(self._key(group, ()), group, ()) if parts else None
            while len(self._candidate_costs) >= _KEPT:
                del self._candidate_costs[next(iter(self._candidate_costs))]
            found = CandidateCosts(self.index.rows_of(group), parts, base)
        self._candidate_costs[key] = found
        return found

    def _key(self, group: int, apart: tuple[tuple[int, bool], ...]) -> Hashable:
        """Of these constraints; see `_Kind`."""
        return self.index.alike[group], id(self.index.preference_cost[group]), apart

    def _in_one_domain(self, kind: _Kind, met: list[int]) -> Candidates:
        """The hosts of the domains in which the others of a member's are already."""
        rows = self._where_others_are(met[0])
        for c in met[1:]:
            rows = np.intersect1d(rows, self._where_others_are(c))
        rows = rows[self.index.allowed[kind.group][rows]]
        costs = self._on_rows(kind.group, rows)
        for part, domains in kind.parts:
            if not part.idle:
                costs += part.costs[domains.of[rows]]
        return Candidates(rows, costs)

    def _where_others_are(self, c: int) -> Ints:
        """The hosts of the domains that have members, and those without a domain, ascending."""
        (used,), domains = self.counts[c].nonzero(), self.index.domain_rows[c]
        if len(used) == 1 and not len(domains.outside):
            return domains.rows_in(used)
        return np.sort(np.concatenate((domains.rows_in(used), domains.outside)))

    def _shared_room(self, c: int) -> SharedRoom:
        needs, domains = self._needs(c), self.index.domain_rows[c]
        found = self._rooms.pop((domains, needs), None)
        if found is None:
            while len(self._rooms) >= _KEPT:
                del self._rooms[next(iter(self._rooms))]
            found = SharedRoom(self.index, self.free, self.counts, domains, needs)
        self._rooms[domains, needs] = found
        found.renew(self.changed)
        return found

    def _needs(self, c: int) -> Needs:
        """What the members of a constraint need that are not placed."""
        if self.left[c] < len(self.index.constraints[c].members):
            return needs_of(self.index, c, self.row_of)
        if c not in self._needs_of_all:
            self._needs_of_all[c] = needs_of(self.index, c, self.row_of)
        return self._needs_of_all[c]

    def _served(self, m: int, found: Candidates) -> Candidates:
        """Without the hosts whose devices cannot serve the member."""
        assert self._devices is not None
        mask = np.zeros(len(self.load), dtype=np.bool_)
        mask[found.rows] = True
        self._devices.shut(m, mask)
        return Candidates(found.rows, np.where(mask[found.rows], found.costs, np.inf))

    def _on_rows(self, group: int, rows: Ints) -> Floats:
        """What hosts cost by themselves: the objective, preferred hosts, and tie-breakers."""
        problem, role = self.index.problem, self.index.role_of_group[group]
        dislike = self.index.preference_cost[group]
        found = self._alone[rows] + COST_UNIT * dislike[rows]
        if problem.objective is Objective.BALANCE:
            found += _FILL * self._fill_with(role, rows)
        if problem.choices:
            found[rows == problem.host_count] = COST_UNIT * dislike[-1] - ABSENT_FIRST
        found[~self.room[self._size_of[role]][rows]] = np.inf
        return found

    def _alone_on(self, rows: int | slice) -> Floats:
        load, emptiness = self.load[rows], self.emptiness[rows]
        match self.index.problem.objective:
            case Objective.PACK:
                # A newly opened host should have room for the members that follow.
                return np.where(load == 0, COST_UNIT - emptiness, emptiness)
            case Objective.BALANCE:
                return 0.0 * emptiness
            case _:
                return COST_UNIT * (load > 0) + self._own_taste[rows] - emptiness

    def _fill_with(self, role: int, rows: Ints) -> Floats:
        """The fill of each of these hosts in percent, including a member of the role."""
        problem = self.index.problem
        whole = problem.capacity[rows].T
        capacity = np.maximum(whole, 1)
        demand = problem.demand[role][:, None]
        fill = np.where(whole > 0, (capacity - self.free[:, rows] + demand) / capacity, 0.0)
        return np.asarray(100.0 * fill.max(axis=0, initial=0.0), dtype=np.float64)
