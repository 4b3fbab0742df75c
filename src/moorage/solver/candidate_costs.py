"""What each host costs a member, renewed by difference while members are placed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from moorage.engine.joint.domain_rows import DomainRows
    from moorage.solver.domain_costs import DomainCosts

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]
    RowCosts: TypeAlias = Callable[[Ints], Floats]

_MOST: Final = 4
"""One in so many rows or domains at most is renewed alone; otherwise all rows are."""


class CandidateCosts:
    """The costs of some hosts for members with equal demands, hosts and constraints."""

    def __init__(
        self,
        rows: Ints,
        parts: Sequence[tuple[DomainCosts, DomainRows]],
        base: CandidateCosts | None = None,
    ) -> None:
        """Of these rows, ascending; `base`, if given, keeps what they cost by themselves."""
        self.rows = rows
        self._base = base
        self._coarse = [(costs, of.of[rows]) for costs, of in parts if costs.coarse]
        """Added at each look."""
        self._fine = [(costs, of) for costs, of in parts if not costs.coarse]
        # What a host costs by its own members alone changes only with its row.
        self._followed = [(costs, of) for costs, of in self._fine if not (costs.local and of.own)]
        self._seen_rows = -1
        self._seen = [0] * len(self._followed)
        self._sums: Floats = np.zeros(0)

    def costs(self, changed: list[int], on_rows: RowCosts) -> Floats:
        """[n] the cost of each row now; infinite where it is closed. Not to be written to.

        Args:
            changed: the rows that have changed since the beginning; only added to.
            on_rows: what rows cost by themselves. It is not kept: it knows the search that keeps
                these costs, and a cycle of both would hold their arrays long after the search.
        """
        self._renew(changed, on_rows)
        found = self._sums
        for part, domains in self._coarse:
            if not part.idle:
                found = found + part.costs[domains]
        return found

    def _renew(self, changed: list[int], on_rows: RowCosts) -> None:
        dirty = None if self._seen_rows < 0 else self._dirty(changed)
        if dirty is None:
            self._sums = self._whole(changed, on_rows)
        elif len(dirty):
            self._renew_rows(dirty, on_rows)
        self._seen_rows = len(changed)
        self._seen = [len(part.changes) for part, _ in self._followed]

    def _dirty(self, changed: list[int]) -> Ints | None:
        """The rows whose costs may have changed since the last look; None: too many."""
        found = [np.array(changed[self._seen_rows :], dtype=np.int64)]
        for (part, of), seen in zip(self._followed, self._seen, strict=True):
            for domains in part.changes[seen:]:
                if len(domains) * _MOST > of.count:
                    return None
                found.append(of.rows_in(domains))
        dirty = np.concatenate(found) if len(found) > 1 else found[0]
        return dirty if len(dirty) * _MOST <= len(self.rows) else None

    def _renew_rows(self, dirty: Ints, on_rows: RowCosts) -> None:
        at = self.rows.searchsorted(dirty)
        at = at[self.rows[np.minimum(at, len(self.rows) - 1)] == dirty]
        if len(at):
            rows = self.rows[at]
            self._sums[at] = self._with_parts(on_rows(rows), rows)

    def _whole(self, changed: list[int], on_rows: RowCosts) -> Floats:
        base = self._base
        found = on_rows(self.rows) if base is None else base.costs(changed, on_rows).copy()
        return self._with_parts(found, self.rows)

    def _with_parts(self, found: Floats, rows: Ints) -> Floats:
        for part, of in self._fine:
            if not part.idle:
                found += part.costs[of.of[rows]]
        return found
