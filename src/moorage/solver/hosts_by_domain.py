"""Hosts, those of each domain of a level together."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.joint.domain_rows import DomainRows

    Ints: TypeAlias = NDArray[np.int64]


class HostsByDomain:
    """Rows of hosts, those of each domain of a level together: its hosts are one slice."""

    def __init__(self, rows: Ints, hosts: int, level: DomainRows | None) -> None:
        """Of these rows, ascending, of so many hosts; without a level they stay in that order."""
        self.level = level
        self.rows = rows
        """[n]"""
        self._slices: list[slice] = []
        if level is not None:
            of = level.of[rows].astype(np.int16)  # a level of few domains; sorted much faster
            by_domain = np.argsort(of, kind="stable")
            self.rows = rows[by_domain]
            ends = np.searchsorted(of[by_domain], np.arange(level.count + 1)).tolist()
            self._slices = [slice(*ends[domain : domain + 2]) for domain in range(level.count)]
            self._slices.append(slice(ends[0]))
        self._place = np.full(hosts, -1, dtype=np.int64)
        self._place[self.rows] = np.arange(len(rows))

    def places_of(self, rows: Ints) -> Ints:
        """Where in `rows` these rows are, as far as they are there."""
        found = self._place[rows]
        return found[found >= 0]

    def places_in(self, domain: int) -> slice:
        """Where in `rows` a domain's hosts are; the last domain is that of hosts without one."""
        return self._slices[domain]
