"""What each host costs a member, renewed by difference while members are placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.solver.domain_costs import DomainCosts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from moorage.engine.joint.domain_rows import DomainRows
    from moorage.solver.domain_costs import ConstraintCosts
    from moorage.solver.host_costs import HostCosts
    from moorage.solver.hosts_by_domain import HostsByDomain

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]

_MOST: Final = 4
"""One in so many rows or domains at most is renewed alone; otherwise all rows are."""


class CandidateCosts:
    """The costs of some hosts for members with equal demands, hosts and constraints.

    Sums of what a host costs by itself and of all constraints but those of coarse levels are kept,
    and beside them the same with the constraints of the coarse level by which the hosts are
    ordered. Those of other coarse levels are added at each look.
    """

    def __init__(
        self,
        host_costs: HostCosts,
        group: int,
        hosts: HostsByDomain,
        parts: Sequence[tuple[ConstraintCosts, DomainRows]],
        base: CandidateCosts | None = None,
    ) -> None:
        """For members of a group; `base`, if given, keeps what hosts cost by themselves."""
        self.hosts = hosts
        self._host_costs, self._group, self._base = host_costs, group, base
        self._ordered = [
            costs for costs, of in parts if isinstance(costs, DomainCosts) and of is hosts.level
        ]
        self._coarse = [
            (costs, of.of[hosts.rows])
            for costs, of in parts
            if costs.coarse and of is not hosts.level
        ]
        self._fine = [(costs, of) for costs, of in parts if not costs.coarse]
        self._seen_rows = -1
        self._seen = [0] * len(self._fine)
        self._sums: Floats = np.zeros(0)
        self._costs: Floats = self._sums
        """[n] `_sums` and `_added`; the same array if nothing is added."""
        self._added: Floats = np.zeros(0)
        """[D + 1] what the ordered level's constraints add in each domain."""

    def costs(self) -> Floats:
        """[n] the cost of each row of `hosts` now; infinite where it is closed.

        Not to be written to; it changes with the next look.
        """
        dirty = None if self._seen_rows < 0 else self._dirty()
        if dirty is None:
            self._renew_all()
        elif len(dirty):
            self._renew_rows(dirty)
        self._seen_rows = len(self._host_costs.changed)
        self._seen = [len(part.changes) for part, _ in self._fine]
        if self._ordered:
            self._renew_added()
        found = self._costs
        for part, domains in self._coarse:
            if not part.idle:
                found = found + part.on(domains)
        return found

    def _dirty(self) -> Ints | None:
        """The rows whose costs may have changed since the last look; None: too many."""
        found = [np.array(self._host_costs.changed[self._seen_rows :], dtype=np.int64)]
        for (part, of), seen in zip(self._fine, self._seen, strict=True):
            for domains in part.changes[seen:]:
                if len(domains) * _MOST > of.count:
                    return None
                found.append(of.rows_in(domains))
        dirty = np.concatenate(found) if len(found) > 1 else found[0]
        return dirty if len(dirty) * _MOST <= len(self.hosts.rows) else None

    def _renew_rows(self, dirty: Ints) -> None:
        at = self.hosts.places_of(dirty)
        if not len(at):
            return
        rows = self.hosts.rows[at]
        self._sums[at] = found = self._with_parts(self._host_costs.of(self._group, rows), rows)
        if self.hosts.level is not None and self._ordered:
            self._costs[at] = found + self._added[self.hosts.level.of[rows]]

    def _renew_all(self) -> None:
        rows, base = self.hosts.rows, self._base
        found = self._host_costs.of(self._group, rows) if base is None else base.costs().copy()
        self._sums = self._costs = self._with_parts(found, rows)
        if self._ordered:
            self._costs = np.empty_like(self._sums)
            self._added = np.full(len(self._ordered[0].costs), np.nan)  # all are added anew

    def _renew_added(self) -> None:
        added = np.zeros(len(self._added))
        for part in self._ordered:
            added += part.costs
        for domain in (added != self._added).nonzero()[0].tolist():
            places = self.hosts.places_in(domain)
            np.add(self._sums[places], added[domain], out=self._costs[places])
        self._added = added

    def _with_parts(self, found: Floats, rows: Ints) -> Floats:
        for part, of in self._fine:
            if not part.idle:
                found += part.on(of.of[rows])
        return found
