"""What one more member costs in each domain of a constraint."""

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

    from moorage.engine.joint.domain_rows import DomainRows
    from moorage.engine.joint.problem_index import LevelConstraint

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]

COST_UNIT: Final = 1_000.0
"""One unit of cost outweighs every preference among equally dear hosts."""
_FEW: Final = 64
"""A level of at most so many domains is coarse."""
_UNEVEN: Final = 10.0
"""One unit of `fill_preference`: more than every preference among the hosts of a domain."""


class DomainCosts:
    """The costs of one constraint, for members on one of its sides, renewed by difference."""

    def __init__(
        self, constraint: LevelConstraint, counts: Ints, others: Ints, *, other_side: bool
    ) -> None:
        """`counts` and `others` are the arrays that a partial solution keeps up to date."""
        self.constraint = constraint
        self._counts, self._others, self.other_side = counts, others, other_side
        self.coarse = _is_coarse(constraint)
        """Whether a change in a domain concerns so many hosts that it is no help to know it."""
        self.costs: Floats = np.zeros(constraint.domain_count + 1)
        """[D + 1] infinite where a required constraint closes the domain. The last is that of hosts
        without a domain: none. Right after `renew`."""
        self.idle = True
        """Whether no domain costs anything."""
        self.changes: list[Ints] = []
        """The domains whose cost has changed, in the order of renewals, so that sums per host are
        renewed for their hosts alone; none of a coarse level."""
        self._touched: list[int] = []
        self._fresh = True

    def touch(self, domain: int) -> None:
        """A member has come to a domain, or left it; -1: to a host without one."""
        self._touched.append(domain)

    def renew(self, left: int) -> None:
        """Compute anew what has changed; `left` as in `closed_domains`."""
        if self._fresh or (self._touched and not self._only_fuller()):
            found = _added(
                self.constraint, self._counts, self._others, left, other_side=self.other_side
            )
            if not self.coarse:
                self.changes.append((found != self.costs[:-1]).nonzero()[0])
            self.costs[:-1] = found
            self.idle = not found.any()
        self._touched.clear()
        self._fresh = False

    def on(self, domains: Ints) -> Floats:
        """[n] the costs of these domains; -1: without a domain."""
        return self.costs[domains]

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


class LocalCosts:
    """The costs of a constraint that depend in each domain on its own members alone.

    They are worked out when a domain is looked at. It has `idle`, `changes`, `touch`, `renew` and
    `on` of `DomainCosts`; changes in domains of one host are not listed, as `HostCosts.changed` has
    the host.
    """

    coarse: Final = False

    def __init__(
        self,
        constraint: LevelConstraint,
        level: DomainRows,
        counts: Ints,
        others: Ints,
        *,
        other_side: bool,
    ) -> None:
        self.constraint = constraint
        self._level, self._counts, self._others = level, counts, others
        self.other_side = other_side
        zero = np.zeros(1, dtype=np.int64)
        empty = _added(constraint, zero, zero, 0, other_side=other_side)
        used = np.concatenate((counts.nonzero()[0], others.nonzero()[0]))
        self.idle = not empty.any() and not self.on(used).any()
        self.changes: list[Ints] = []

    def touch(self, domain: int) -> None:
        """A member has come to a domain, or left it; -1: to a host without one."""
        self.idle = False
        if domain >= 0 and not self._level.own:
            self.changes.append(np.array([domain], dtype=np.int64))

    def renew(self, left: int) -> None:
        """Nothing is kept."""

    def on(self, domains: Ints) -> Floats:
        """[n] the costs of these domains; -1: without a domain."""
        counts, others = self._counts[domains], self._others[domains]
        found = _added(self.constraint, counts, others, 0, other_side=self.other_side)
        if not self._level.own:
            found[domains < 0] = 0.0
        return found


ConstraintCosts: TypeAlias = DomainCosts | LocalCosts


def constraint_costs(
    constraint: LevelConstraint,
    level: DomainRows,
    counts: Ints,
    others: Ints,
    *,
    other_side: bool,
) -> ConstraintCosts:
    """The costs of a constraint, kept as its type needs it.

    Args:
        constraint: of which one side's costs are asked.
        level: the hosts of its domains.
        counts: [D] the members in each domain, which others keep up to date.
        others: [D] those of the other side.
        other_side: whether the costs are those of members of the other side.
    """
    if isinstance(constraint.primitive, AtMost | Apart) and not _is_coarse(constraint):
        return LocalCosts(constraint, level, counts, others, other_side=other_side)
    return DomainCosts(constraint, counts, others, other_side=other_side)


def _is_coarse(constraint: LevelConstraint) -> bool:
    return constraint.domain_count <= _FEW


def _added(
    constraint: LevelConstraint,
    counts: Ints,
    others: Ints,
    left: int,
    *,
    other_side: bool,
) -> Floats:
    """What one more member costs in domains with these counts."""
    found = np.zeros(len(counts))
    weight = constraint.primitive.weight
    if other_side:
        shut = closed_to_others(constraint, counts, others, left)
        found[shut] = np.inf if weight is None else COST_UNIT * weight
        if isinstance(constraint.primitive, Near):
            found += _UNEVEN * others  # so that they are in many domains
        return found
    if weight is not None:
        grows = excess_growth(constraint, counts, others, left)
        if grows is not None:
            found += COST_UNIT * weight * grows
    uneven = fill_preference(constraint, counts)
    if uneven is not None:
        found += _UNEVEN * uneven
    if weight is None:
        closed = closed_domains(constraint, counts, others, left)
        if closed is not None:
            found[closed] = np.inf
    return found
