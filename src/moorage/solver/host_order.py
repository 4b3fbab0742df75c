"""The order in which the costs of hosts are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.joint.domain_rows import DomainRows

    Ints: TypeAlias = NDArray[np.int64]


class HostOrder:
    """Some hosts, those in each domain of a level together: a change of its cost is one slice."""

    def __init__(self, rows: Ints, hosts: int, level: DomainRows | None) -> None:
        """Of these rows, ascending, of so many hosts; without a level they stay as they are."""
        self.level = level
        self.rows = rows
        """[n]"""
        self._parts: list[slice] = []
        if level is not None:
            of = level.of[rows].astype(np.int16)  # a level of few domains; sorted much faster
            by_domain = np.argsort(of, kind="stable")
            self.rows = rows[by_domain]
            ends = np.searchsorted(of[by_domain], np.arange(level.count + 1)).tolist()
            self._parts = [slice(*ends[domain : domain + 2]) for domain in range(level.count)]
            self._parts.append(slice(ends[0]))
        self._place = np.full(hosts, -1, dtype=np.int64)
        self._place[self.rows] = np.arange(len(rows))

    def places_of(self, rows: Ints) -> Ints:
        """The places of those of the rows that are in the order."""
        found = self._place[rows]
        return found[found >= 0]

    def part(self, domain: int) -> slice:
        """The places of a domain's hosts; the last domain is that of hosts without one."""
        return self._parts[domain]
