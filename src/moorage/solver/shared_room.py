"""Which domains have room for several members together, renewed by difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from moorage.engine.joint.domain_rows import DomainRows
    from moorage.engine.joint.problem_index import ProblemIndex

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


class SharedRoom:
    """Whether each domain has slots for members that must all be in one domain.

    It is necessary for room, not sufficient: slots are counted per kind of member, and what is free
    is summed over the hosts.
    """

    def __init__(
        self,
        index: ProblemIndex,
        free: Ints,
        domains: DomainRows,
        needed: Mapping[int, int],
    ) -> None:
        """`free` [K, H] is kept up to date by others; `needed`: group -> number of members."""
        self._index, self._free, self._domains, self._needed = index, free, domains, needed
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
        for group, number in self._needed.items():
            demand = problem.demand[self._index.role_of_group[group]]
            slots = np.where(self._index.allowed[group][rows], number, 0)
            for k in np.flatnonzero(demand).tolist():
                slots = np.minimum(slots, free[k] // demand[k])
            wanted += number * demand
            found &= np.bincount(of, weights=slots, minlength=count) >= number
        for k in np.flatnonzero(wanted).tolist():
            found &= np.bincount(of, weights=free[k], minlength=count) >= wanted[k]
        return found
