"""A partial placement: sums kept up to date by `place` and `undo`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from moorage.policies.primitives import Near, SameDomain
from moorage.solver.bounded_cache import BoundedCache
from moorage.solver.candidate_costs import CandidateCosts
from moorage.solver.domain_costs import COST_UNIT, constraint_costs
from moorage.solver.host_costs import HostCosts
from moorage.solver.hosts_by_domain import HostsByDomain
from moorage.solver.placement_counts import Served
from moorage.solver.shared_room import SharedRoom, needs_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import NDArray

    from moorage.engine.joint.domain_rows import DomainRows
    from moorage.engine.joint.problem_index import ProblemIndex
    from moorage.solver.domain_costs import ConstraintCosts
    from moorage.solver.shared_room import Needs

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]

_KEPT: Final = 64
"""So many `CandidateCosts`, `HostsByDomain`s and `SharedRoom`s are kept: each has numbers for every
host."""


class Candidates(NamedTuple):
    """Hosts for a member. Neither array is to be written to."""

    rows: Ints
    """In no particular order; other hosts are not allowed at all."""
    costs: Floats
    """What the member adds there, in `COST_UNIT`s, and tie-breakers; infinite where a required rule
    closes the host. They change with the next look."""


class _Others(NamedTuple):
    """The other choices of a member."""

    placed: bool
    """Whether one of them is on a host."""
    open: bool
    """Whether one of them is not decided yet."""


class _Kind(NamedTuple):
    """What members of one group with the same constraints have in common."""

    group: int
    apart: tuple[tuple[int, bool], ...]
    """Numbers of the constraints that add to the costs of hosts, and whether the members are on the
    other side."""
    parts: list[tuple[ConstraintCosts, DomainRows]]
    """What each of `apart` adds to the costs of hosts."""
    shared: list[int]
    """The required `SameDomain`s."""
    preferred: list[int]
    """The preferred ones, which are in `apart` as well, the lowest level first."""
    level: DomainRows | None
    """A coarse level of `apart`, if there is one: hosts are kept by its domains."""


class Partial:
    """The members placed so far; fixed members are placed from the start."""

    def __init__(self, index: ProblemIndex, scatter: int | None = None) -> None:
        """`scatter`: see `Greedy`."""
        problem = index.problem
        self.index = index
        self.row_of = np.full(len(problem.members), -1, dtype=np.int64)
        self._host_costs = HostCosts(index, scatter)
        self.counts = [
            np.zeros(constraint.domain_count, dtype=np.int64) for constraint in index.constraints
        ]
        # Constraints without another side share what is never written to.
        lengths = {one.domain_count for one in index.constraints}
        zeros = {length: np.zeros(length, dtype=np.int64) for length in lengths}
        self.others = [
            np.zeros_like(counts) if constraint.others else zeros[len(counts)]
            for counts, constraint in zip(self.counts, index.constraints, strict=True)
        ]
        self.left = [len(constraint.awaited) for constraint in index.constraints]
        self._used: list[set[int]] = [set() for _ in index.constraints]
        """Per constraint: the domains that hold members."""
        self._domain_costs: list[list[ConstraintCosts]] = [[] for _ in index.constraints]
        """Per constraint: those for its members, and for the other side, as far as needed."""
        self._candidate_costs = BoundedCache[CandidateCosts](_KEPT)
        self._hosts = BoundedCache[HostsByDomain](_KEPT)
        self._rooms = BoundedCache[SharedRoom](_KEPT)
        self._needs_of_all: dict[int, Needs] = {}
        """What all members of a constraint need."""
        self._kinds: dict[Hashable, _Kind] = {}
        self._kind_of: list[_Kind | None] = [None] * len(problem.members)
        self._devices = Served(index) if problem.cuts else None
        for m, row in enumerate(problem.fixed.tolist()):
            if row >= 0:
                self._count(m, row, +1)
                self.row_of[m] = row

    @property
    def free(self) -> Ints:
        """[K, H] what is free on each host now."""
        return self._host_costs.free

    # --- moves --------------------------------------------------------------------------

    def place(self, m: int, row: int) -> None:
        """Put a member on a host."""
        if self._devices is not None:
            self._devices.count(m, row, +1)
        self._count(m, row, +1)
        self._host_costs.take(m, row, +1)
        self.row_of[m] = row

    def undo(self, m: int) -> None:
        """Remove a member from its host."""
        row = int(self.row_of[m])
        if self._devices is not None:
            self._devices.count(m, row, -1)
        self._count(m, row, -1)
        self._host_costs.take(m, row, -1)
        self.row_of[m] = -1

    def _count(self, m: int, row: int, sign: int) -> None:
        for c in self.index.constraints_of[m]:
            constraint = self.index.constraints[c]
            domain = int(constraint.domain_of[row])
            if not constraint.is_near:
                self.left[c] -= sign
            if domain >= 0:
                self.counts[c][domain] += sign
                if self.counts[c][domain]:
                    self._used[c].add(domain)
                else:
                    self._used[c].remove(domain)
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
        met = [c for c in kind.shared if self._used[c]]
        if met:
            found = self._in_one_domain(kind, met)
        else:
            kept = self._kept(kind.group, kind.level, kind.apart, kind.parts)
            found = Candidates(kept.hosts.rows, kept.costs())
        for c in kind.shared:
            if c not in met:
                closed = np.where(self._shared_room(c).enough, 0.0, np.inf)
                domains = self.index.domain_rows[c].of[found.rows]
                found = Candidates(found.rows, found.costs + closed[domains])
        first = [c for c in kind.preferred if not self._used[c]]
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
        rooms = [c if self._used[c] else self._shared_room(c) for c in kind.shared]
        group = kind.group if self._devices else self.index.alike[kind.group]
        others = self._others(m) if m in self.index.optional else None
        return group, tuple(active), tuple(rooms), others

    def share_of(self, members: Iterable[int]) -> float:
        """How much the members take, of each class as a share of the roomiest host's."""
        return self._host_costs.share_of(members)

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
        parts = [(self._costs(c, other_side=side), self.index.domain_rows[c]) for c, side in apart]
        level = next((of for costs, of in parts if costs.coarse), None)
        return _Kind(group, tuple(apart), parts, shared, preferred, level)

    def _costs(self, c: int, *, other_side: bool) -> ConstraintCosts:
        for found in self._domain_costs[c]:
            if found.other_side is other_side:
                return found
        made = constraint_costs(
            self.index.constraints[c],
            self.index.domain_rows[c],
            self.counts[c],
            self.others[c],
            other_side=other_side,
        )
        self._domain_costs[c].append(made)
        return made

    def _renew(self, kind: _Kind) -> None:
        """Bring up to date what the kind's constraints add to the costs of hosts."""
        for (c, _), (costs, _) in zip(kind.apart, kind.parts, strict=True):
            costs.renew(self.left[c])

    def _kept(
        self,
        group: int,
        level: DomainRows | None,
        apart: tuple[tuple[int, bool], ...],
        parts: Sequence[tuple[ConstraintCosts, DomainRows]],
    ) -> CandidateCosts:
        alike = self.index.alike[group]

        def hosts() -> HostsByDomain:
            return HostsByDomain(self.index.rows_of(group), len(self.index.problem.hosts), level)

        def costs() -> CandidateCosts:
            # Members with other constraints often cost the same where no constraint does.
            base = self._kept(group, level, (), ()) if parts else None
            rows = self._hosts.get((alike, level), hosts)
            return CandidateCosts(self._host_costs, group, rows, parts, base)

        key = alike, id(self.index.preference_cost[group]), level, apart
        return self._candidate_costs.get(key, costs)

    def _in_one_domain(self, kind: _Kind, met: list[int]) -> Candidates:
        """The hosts of the domains in which the others of a member's are already."""
        rows = self._where_others_are(met[0])
        for c in met[1:]:
            rows = np.intersect1d(rows, self._where_others_are(c))
        rows = rows[self.index.allowed[kind.group][rows]]
        costs = self._host_costs.of(kind.group, rows)
        for part, domains in kind.parts:
            if not part.idle:
                costs += part.on(domains.of[rows])
        return Candidates(rows, costs)

    def _where_others_are(self, c: int) -> Ints:
        """The hosts of the domains that have members, and those without a domain, ascending."""
        domains = self.index.domain_rows[c]
        inside = domains.rows_in(np.array(list(self._used[c]), dtype=np.int64))
        if len(self._used[c]) == 1 and not len(domains.outside):
            return inside
        return np.sort(np.concatenate((inside, domains.outside)))

    def _shared_room(self, c: int) -> SharedRoom:
        needs, domains = self._needs(c), self.index.domain_rows[c]

        def room() -> SharedRoom:
            return SharedRoom(self.index, self.free, self.counts, domains, needs)

        found = self._rooms.get((domains, needs), room)
        found.renew(self._host_costs.changed)
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
        mask = np.zeros(len(self.index.problem.hosts), dtype=np.bool_)
        mask[found.rows] = True
        self._devices.shut(m, mask)
        return Candidates(found.rows, np.where(mask[found.rows], found.costs, np.inf))
