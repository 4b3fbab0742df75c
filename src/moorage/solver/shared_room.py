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
        if row_of[m] < 0 and m not in index.optional:
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
        self._domains, self._limits = domains, sorted(needs.limits, key=str)
        self._needed = dict(needs.members)
        demand = {group: index.problem.demand[index.role_of_group[group]] for group in self._needed}
        self._takes = {
            group: [(k, amount) for k, amount in enumerate(mine.tolist()) if amount]
            for group, mine in demand.items()
        }
        """Per group the classes that a member takes, by number, and how much."""
        wanted = np.zeros(index.problem.demand.shape[1], dtype=np.int64)
        for group, count in self._needed.items():
            wanted += count * demand[group]
        # One group's slots say more than what is free of each class.
        self._classes = np.flatnonzero(wanted) if len(self._needed) > 1 else wanted[:0]
        self._least: Ints = np.array(
            [
                *self._needed.values(),
                *(sum(self._needed[group] for group in one.groups) for one in self._limits),
                *wanted[self._classes],
            ],
            dtype=np.int64,
        )[:, None]
        self._seen = -1
        self._values: Ints = np.zeros((len(self._least), 0), dtype=np.int64)
        """[Q, H] what each host has of each quantity of which `_least` is needed."""
        self._sums: Ints = np.zeros((len(self._least), domains.count + 1), dtype=np.int64)
        """[Q, D + 1] of the hosts of each domain; the last is of those without one."""
        self.enough: Bools = np.zeros(domains.count + 1, dtype=np.bool_)
        """[D + 1] per domain; the last is that of hosts without a domain: True."""

    def renew(self, changed: list[int]) -> None:
        """Compute anew what the hosts have whose free capacity has changed.

        Args:
            changed: the rows that have changed since the beginning; only added to.
        """
        if self._seen == len(changed):
            return
        if self._seen < 0:
            self._values = self._on(slice(None))
            for number, values in enumerate(self._values):
                self._sums[number] = np.bincount(self._domains.bins, values, self._sums.shape[1])
        else:
            rows = self._dirty(changed[self._seen :])
            now = self._on(rows)
            more = now - self._values[:, rows]
            for domain, values in zip(self._domains.of[rows].tolist(), more.T, strict=True):
                self._sums[:, domain] += values
            self._values[:, rows] = now
        np.all(self._sums >= self._least, axis=0, out=self.enough)
        self.enough[-1] = True
        self._seen = len(changed)

    def _dirty(self, changed: list[int]) -> Ints:
        """The changed rows, and all rows of their hosts if a limit counts other members there."""
        rows = np.array(sorted(set(changed)), dtype=np.int64)
        for limit in self._limits:
            if limit.constraint is not None:
                hosts = self._index.domain_rows[limit.constraint]
                if not hosts.own:
                    domains = np.unique(hosts.of[rows])
                    rows = np.union1d(rows, hosts.rows_in(domains[domains >= 0]))
        return rows

    def _on(self, rows: Ints | slice) -> Ints:
        """[Q, n] what these hosts have of each quantity."""
        free = self._free[:, rows]
        slots = {group: self._slots(group, rows, free) for group in self._needed}
        limited = [
            np.minimum(sum(slots[group] for group in one.groups), self._left(one, rows))
            for one in self._limits
        ]
        classes = [np.maximum(free[k], 0) for k in self._classes]
        found = np.empty((len(self._least), free.shape[1]), dtype=np.int64)
        for number, values in enumerate((*slots.values(), *limited, *classes)):
            found[number] = values
        return found

    def _slots(self, group: int, rows: Ints | slice, free: Ints) -> Ints:
        """How many of a group's needed members fit on each of these hosts."""
        found: Ints = self._needed[group] * self._index.allowed[group][rows]
        for k, amount in self._takes[group]:
            np.minimum(found, free[k] // amount, out=found)
        return np.maximum(found, 0, out=found)

    def _left(self, limit: HostLimit, rows: Ints | slice) -> Ints | int:
        """How many more members of a limit each host may hold."""
        if limit.constraint is None:
            return limit.limit
        domains = self._index.constraints[limit.constraint].domain_of[rows]
        left = np.maximum(limit.limit - self._counts[limit.constraint][domains], 0)
        return np.where(domains < 0, len(self._index.problem.members), left)
