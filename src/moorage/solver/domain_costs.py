"""What one more member costs in each domain of a constraint, renewed by difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.joint.domain_counters import (
    closed_domains,
    closed_to_others,
    excess_growth,
    fill_preference,
)
from moorage.policies.primitives import Apart, AtMost, Near, SameDomain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.joint.problem_index import LevelConstraint

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]

COST_UNIT: Final = 1_000.0
"""One unit of cost outweighs every preference among equally dear hosts."""
_FEW: Final = 64
"""So many domains at most are coarse."""
_UNEVEN: Final = 10.0
"""One unit of `fill_preference`: more than every preference among the hosts of a domain."""


class DomainCosts:
    """The costs of one constraint, for members on one of its sides.

    `costs` is right after `renew`; `changes` lists the domains whose cost has changed, in the order
    of renewals, so that whoever keeps sums per host learns which hosts to look at again.
    """

    def __init__(
        self, constraint: LevelConstraint, counts: Ints, others: Ints, *, other_side: bool
    ) -> None:
        """`counts` and `others` are the arrays that a partial solution keeps up to date."""
        self.constraint = constraint
        self._counts, self._others, self.other_side = counts, others, other_side
        self.local = isinstance(constraint.primitive, AtMost | Apart)
        """Whether the cost of a domain depends on the counts of this domain alone."""
        self.coarse = constraint.domain_count <= _FEW
        """Whether a change in a domain concerns so many hosts that it is no help to know it."""
        self.costs: Floats = np.zeros(constraint.domain_count + 1)
        """[D + 1] infinite where a required constraint closes the domain. The last is that of hosts
        without a domain: none."""
        self.idle = True
        """Whether no domain costs anything."""
        self.changes: list[Ints] = []
        """Not of a coarse level."""
        self._touched: list[int] = []
        self._fresh = self.coarse or not self.local
        if not self._fresh:
            self._begin_empty()

    def touch(self, domain: int) -> None:
        """A member has come to a domain, or left it; -1: to a host without one."""
        self._touched.append(domain)

    def renew(self, left: int) -> None:
        """Compute anew what has changed; `left` as in `closed_domains`."""
        if not self._fresh and (not self._touched or self._only_fuller()):
            self._touched.clear()
            return
        if self.coarse or not self.local:
            self._renew_all(left)
        else:
            self._renew_touched(left)
        self._touched.clear()
        self._fresh = False

    def _begin_empty(self) -> None:
        """Let every domain cost what an empty one does; those that are not are touched."""
        nobody = np.zeros(1, dtype=np.int64)
        empty = self._of(nobody, nobody, 0)[0]
        if empty:
            self.costs[:-1] = empty
            self.idle = False
        for counts in (self._counts, self._others):
            self._touched += counts.nonzero()[0].tolist()

    def _renew_all(self, left: int) -> None:
        found = self._of(self._counts, self._others, left)
        if not self.coarse:
            self._note((found != self.costs[:-1]).nonzero()[0])
        self.costs[:-1] = found
        self.idle = not found.any()

    def _renew_touched(self, left: int) -> None:
        domains = np.array([d for d in self._touched if d >= 0], dtype=np.int64)
        found = self._of(self._counts[domains], self._others[domains], left)
        self._note(domains[found != self.costs[domains]])
        self.costs[domains] = found
        self.idle = self.idle and not found.any()

    def _note(self, domains: Ints) -> None:
        if len(domains):
            self.changes.append(domains)

    def _only_fuller(self) -> bool:
        """Whether all that has changed is how many members are in the domain that they share."""
        return (
            isinstance(self.constraint.primitive, SameDomain)
            and not self.idle
            and all(
                domain < 0 or (self._counts[domain] > 0 and self.costs[domain] == 0)
                for domain in self._touched
            )
        )

    def _of(self, counts: Ints, others: Ints, left: int) -> Floats:
        """The costs of domains with these counts."""
        found = np.zeros(len(counts))
        weight = self.constraint.primitive.weight
        if self.other_side:
            shut = closed_to_others(self.constraint, counts, others, left)
            found[shut] = np.inf if weight is None else COST_UNIT * weight
            if isinstance(self.constraint.primitive, Near):
                found += _UNEVEN * others  # so that they are in many domains
            return found
        if weight is not None:
            grows = excess_growth(self.constraint, counts, others, left)
            if grows is not None:
                found += COST_UNIT * weight * grows
        uneven = fill_preference(self.constraint, counts)
        if uneven is not None:
            found += _UNEVEN * uneven
        if weight is None:
            closed = closed_domains(self.constraint, counts, others, left)
            if closed is not None:
                found[closed] = np.inf
        return found
