"""Which domains have room for several members together, renewed by difference."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.policies.primitives import AtMost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.engine.joint.domain_rows import DomainRows
    from moorage.engine.joint.problem_index import LevelConstraint, ProblemIndex

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class HostLimit:
    """All needed members of some groups, of which a host may hold so many together."""

    groups: frozenset[int]
    limit: int
    constraint: int | None
    """Its number, if it counts other members as well; they take from the limit."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What must find room in one domain; equal where the same domains have it."""

    members: frozenset[tuple[int, int]]
    """(group, number of members); of groups that are alike the first is named."""
    limits: frozenset[HostLimit]


def needs_of(index: ProblemIndex, c: int, row_of: Ints) -> Needs:
    """What the members of a constraint need that are not placed (their row is -1)."""
    needed: Counter[int] = Counter()
    limited: dict[int, Counter[int]] = {}
    for m in index.constraints[c].members:
        if row_of[m] < 0:
            group = index.alike[index.group_of[m]]
            needed[group] += 1
            for number in index.constraints_of[m]:
                if number in index.host_limits:
                    limited.setdefault(number, Counter())[group] += 1
    return Needs(
        frozenset(needed.items()),
        frozenset(
            _host_limit(index.constraints[number], number, mine)
            for number, mine in limited.items()
            if all(needed[group] == count for group, count in mine.items())
        ),
    )


def _host_limit(constraint: LevelConstraint, number: int, mine: Counter[int]) -> HostLimit:
    assert isinstance(constraint.primitive, AtMost)
    alone = mine.total() == len(constraint.members)
    return HostLimit(frozenset(mine), constraint.primitive.limit, None if alone else number)


class SharedRoom:
    """Whether each domain has slots for members that must all be in one domain.

    It is necessary for room, not sufficient: slots are counted per kind of member and per limit of
    a host, and what is free is summed over the hosts.
    """

    def __init__(
        self,
        index: ProblemIndex,
        free: Ints,
        counts: Sequence[Ints],
        domains: DomainRows,
        needs: Needs,
    ) -> None:
        """`free` [K, H] and `counts` per constraint [D] are kept up to date by others."""
        self._index, self._free, self._counts = index, free, counts
        self._domains, self._needs = domains, needs
        self._seen = -1
        self.enough: Bools = np.zeros(domains.count + 1, dtype=np.bool_)
        """[D + 1] per domain; the last is that of hosts without a domain: True."""

    def renew(self, changed: list[int]) -> None:
        """Compute anew the domains of the hosts whose free capacity has changed.

        Args:
            changed: the rows that have changed since the beginning; only added to.
        """
        if self._seen < 0:
            self.enough[:-1] = self._in_domains(None)
            self.enough[-1] = True
        elif self._seen < len(changed):
            of = self._domains.of[changed[self._seen :]]
            some = np.unique(of[of >= 0])
            if len(some):
                self.enough[some] = self._in_domains(some)
        self._seen = len(changed)

    def _in_domains(self, some: Ints | None) -> Bools:
        """Whether these domains (or all, by number) have room."""
        domains, problem = self._domains, self._index.problem
        rows = domains.rows if some is None else domains.rows_in(some)
        free = np.maximum(self._free[:, rows], 0)
        # Domains that were asked for are numbered in ascending order.
        of = domains.of[rows] if some is None else np.searchsorted(some, domains.of[rows])
        count = domains.count if some is None else len(some)
        found = np.ones(count, dtype=np.bool_)
        wanted = np.zeros(len(free), dtype=np.int64)
        needed = dict(self._needs.members)
        slots_of: dict[int, Ints] = {}
        for group, number in needed.items():
            demand = problem.demand[self._index.role_of_group[group]]
            slots = np.where(self._index.allowed[group][rows], number, 0)
            for k in np.flatnonzero(demand).tolist():
                slots = np.minimum(slots, free[k] // demand[k])
            wanted += number * demand
            slots_of[group] = slots
            found &= np.bincount(of, weights=slots, minlength=count) >= number
        for one in self._needs.limits:
            open_slots = np.minimum(
                sum(slots_of[group] for group in one.groups), self._left(one, rows)
            )
            number = sum(needed[group] for group in one.groups)
            found &= np.bincount(of, weights=open_slots, minlength=count) >= number
        for k in np.flatnonzero(wanted).tolist():
            found &= np.bincount(of, weights=free[k], minlength=count) >= wanted[k]
        return found

    def _left(self, limit: HostLimit, rows: Ints) -> Ints | int:
        """How many more members of a limit each host may hold."""
        if limit.constraint is None:
            return limit.limit
        return np.maximum(limit.limit - self._counts[limit.constraint][rows], 0)
