"""Counts members by domain: where one more may be placed, and what that costs.

`closed` never shuts a domain that some completion could still use, except where the number of
members left says otherwise; the search may still run into a dead end, and undoes its steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    SameDomain,
    Skew,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.joint.problem_index import Crowd

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


def closed(crowd: Crowd, counts: Ints, others: Ints, left: int) -> Bools | None:
    """[D] domains where one more member breaks the primitive for good; None: nowhere.

    Args:
        crowd: the primitive.
        counts: [D] members so far.
        others: [D] members of the other side so far (`Apart` only).
        left: members still to be placed, the one in question included.
    """
    match crowd.primitive:
        case AtMost(limit=limit):
            return counts >= limit
        case AtMostTogether(domains=lose, limit=limit):
            return _together(counts, lose, limit)
        case AtLeastDomains(limit=limit):
            used = counts > 0
            return used if limit - int(used.sum()) >= left else None
        case SameDomain():
            used = counts > 0
            return ~used if used.any() else None
        case Skew(domains=domains, limit=limit):
            return _missing(counts, domains, limit) > left - 1 if domains else counts >= limit
        case Apart():
            return others > 0


def _together(counts: Ints, lose: int, limit: int) -> Bools | None:
    if len(counts) <= lose:
        return np.full(len(counts), int(counts.sum()) >= limit)
    largest = np.partition(counts, len(counts) - lose)[len(counts) - lose :]
    if int(largest.sum()) < limit:
        return None
    # Only a domain as full as the least of the largest makes their sum grow.
    full: Bools = counts >= largest.min()
    return full


def _missing(counts: Ints, domains: tuple[int, ...], limit: int) -> Ints:
    """[D] how many further members a bounded skew needs, if the next one went there."""
    eligible = counts[list(domains)]
    top = int(counts.max(initial=0))
    levels = {need: np.maximum(0, need - limit - eligible).sum() for need in (top, top + 1)}
    found = np.where(counts + 1 > top, levels[top + 1], levels[top])
    goal = np.maximum(counts + 1, top) - limit
    mask = np.zeros(len(counts), dtype=np.bool_)
    mask[list(domains)] = True
    return np.asarray(found - (mask & (counts < goal)), dtype=np.int64)


def growth(crowd: Crowd, counts: Ints, others: Ints) -> Ints | None:
    """[D] by how much one more member adds to the excess, judged by the counts so far."""
    match crowd.primitive:
        case AtMost(limit=limit):
            return (counts >= limit).astype(np.int64)
        case AtMostTogether(domains=lose, limit=limit):
            shut = _together(counts, lose, limit)
            return None if shut is None else shut.astype(np.int64)
        case AtLeastDomains(limit=limit):
            used = counts > 0
            return used.astype(np.int64) if int(used.sum()) < limit else None
        case SameDomain():
            used = counts > 0
            return (~used).astype(np.int64) if used.any() else None
        case Skew(domains=domains, limit=limit):
            least = int(counts[list(domains)].min()) if domains else 0
            return np.asarray(np.maximum(0, counts + 1 - least - limit), dtype=np.int64)
        case Apart():
            return np.asarray((others > 0) & (counts == 0), dtype=np.int64)


def evenness(crowd: Crowd, counts: Ints) -> Ints | None:
    """[D] a preference among open domains that keeps later members placeable."""
    match crowd.primitive:
        case AtMostTogether() | Skew():
            return counts
        case AtLeastDomains(limit=limit):
            used = counts > 0
            return used.astype(np.int64) if int(used.sum()) < limit else None
        case _:
            return None
