"""Propagation of level constraints by member counts per domain: closed domains, and costs.

`closed_domains` closes only domains that no completion can use, given the number of members left.
It does not detect every dead end, so the search may have to backtrack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    Near,
    SameDomain,
    Skew,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.joint.problem_index import LevelConstraint

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


def closed_domains(
    constraint: LevelConstraint, counts: Ints, others: Ints, left: int
) -> Bools | None:
    """[D] domains where one more member violates the primitive for good; None: no domain.

    `counts` are [D] the members so far, `others` [D] those of the other side; `left` of those that
    the constraint awaits are still to be placed, a member in question included.
    """
    match constraint.primitive:
        case AtMost(limit=limit):
            return counts >= limit
        case AtMostTogether(domains=lose, limit=limit):
            return _full_domains(counts, lose, limit)
        case AtLeastDomains(limit=limit):
            used = counts > 0
            return used if limit - int(used.sum()) >= left else None
        case SameDomain():
            used = counts > 0
            return ~used if used.any() else None
        case Skew(limit=limit):
            return _unreachable(counts, constraint.eligible, limit, left)
        case Apart() | Near():
            return _closed_by_others(constraint.primitive, counts, others, left)


def _closed_by_others(
    primitive: Apart | Near, counts: Ints, others: Ints, left: int
) -> Bools | None:
    if isinstance(primitive, Apart):
        return others > 0
    alone = (counts > 0) & (others == 0)
    return (counts == 0) & (others == 0) if int(alone.sum()) >= left else None


def closed_to_others(constraint: LevelConstraint, counts: Ints, others: Ints, left: int) -> Bools:
    """[D] domains where one more of the others violates an `Apart` or `Near` for good.

    `left` of the others are still to be placed, the one in question included.
    """
    if isinstance(constraint.primitive, Near):
        alone = (counts > 0) & (others == 0)
        return ~alone if int(alone.sum()) >= left else np.zeros_like(alone)
    return counts > 0


def _full_domains(counts: Ints, lose: int, limit: int) -> Bools | None:
    if len(counts) <= lose:
        return np.full(len(counts), int(counts.sum()) >= limit)
    largest = np.partition(counts, len(counts) - lose)[len(counts) - lose :]
    if int(largest.sum()) < limit:
        return None
    # The sum grows only by domains at least as full as the least of the largest.
    full: Bools = counts >= largest.min()
    return full


def _unreachable(counts: Ints, domains: Ints, limit: int, left: int) -> Bools | None:
    """[D] domains after whose next member the skew bound requires more members than are left."""
    if not len(domains):
        return counts >= limit
    eligible, top = counts[domains], int(counts.max())
    if_higher = int(np.maximum(0, top + 1 - limit - eligible).sum())
    if if_higher < left:
        return None  # so many at most are required, wherever the next member is
    as_high = int(np.maximum(0, top - limit - eligible).sum())
    missing = np.where(counts + 1 > top, if_higher, as_high)
    missing[domains] -= eligible < np.maximum(eligible + 1, top) - limit
    return missing >= left


def excess_growth(
    constraint: LevelConstraint, counts: Ints, others: Ints, left: int
) -> Ints | None:
    """[D] how much one more member adds to the excess of the present counts; None: nothing.

    For `Near` that is what the others that are `left` cannot take away again.
    """
    match constraint.primitive:
        case AtMost(limit=limit):
            return (counts >= limit).astype(np.int64)
        case AtMostTogether(domains=lose, limit=limit):
            shut = _full_domains(counts, lose, limit)
            return None if shut is None else shut.astype(np.int64)
        case AtLeastDomains(limit=limit):
            used = counts > 0
            return used.astype(np.int64) if int(used.sum()) < limit else None
        case SameDomain():
            used = counts > 0
            return (~used).astype(np.int64) if used.any() else None
        case Skew(domains=domains, limit=limit):
            least = int(counts[constraint.eligible].min()) if domains else 0
            return np.asarray(np.maximum(0, counts + 1 - least - limit), dtype=np.int64)
        case Apart() | Near():
            closed = _closed_by_others(constraint.primitive, counts, others, left)
            return None if closed is None else (closed & (counts == 0)).astype(np.int64)


def fill_preference(constraint: LevelConstraint, counts: Ints) -> Ints | None:
    """[D] a heuristic cost of open domains; low values keep later members placeable."""
    match constraint.primitive:
        case AtMostTogether() | Skew():
            return counts
        case AtLeastDomains(limit=limit):
            used = counts > 0
            return used.astype(np.int64) if int(used.sum()) < limit else None
        case _:
            return None
