"""Equivalence classes of hosts that are interchangeable in a problem.

Exchanging two hosts of a class in a placement changes no excess, no cost and no fit. So a problem
with n members to place needs at most n hosts of each class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.topology import HOST, OWN_LEVELS
from moorage.policies.primitives import NeverOn, OnlyOn, Skew

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.engine.joint.problem import Problem

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


def equivalence_classes(problem: Problem) -> Ints:
    """[H] the class number of each host; a host with a fixed member is alone in its class."""
    count = len(problem.hosts)
    columns = [problem.free, problem.capacity, problem.allowed.T.astype(np.int64)]
    for level, numbers in sorted(problem.domains.items()):
        if level.name == HOST and problem.hosts_are_domains:
            continue
        domains = numbers if level.name not in OWN_LEVELS else _without_lone_rows(numbers)
        columns.append(domains[:, None].astype(np.int64))
    for one in problem.primitives:
        if isinstance(one, OnlyOn | NeverOn):
            columns.append(_mask(count, one.hosts)[:, None])
        elif isinstance(one, Skew) and one.level.name in OWN_LEVELS:
            among = np.isin(problem.domains[one.level], one.domains)
            columns.append(among[:, None].astype(np.int64))
    columns += [_mask(count, one.hosts)[:, None] for one in problem.cuts]
    alone = np.zeros((count, 1), dtype=np.int64)
    standing = np.unique(problem.fixed[problem.fixed >= 0])
    alone[standing, 0] = 1 + np.arange(len(standing))
    _, found = np.unique(np.hstack([*columns, alone]), axis=0, return_inverse=True)
    return found.reshape(-1).astype(np.int64)


def _without_lone_rows(numbers: Ints) -> Ints:
    """[H] the domains, but the same number for all rows that are alone in theirs."""
    inside = numbers >= 0
    sizes = np.bincount(numbers[inside], minlength=1)
    return np.where(inside & (sizes[numbers] == 1), -2, numbers)


def _mask(count: int, rows: frozenset[int]) -> Ints:
    mask = np.zeros(count, dtype=np.int64)
    mask[list(rows)] = 1
    return mask


def sufficient_hosts(problem: Problem, of_class: Ints, first: Ints) -> Ints:
    """Rows that suffice for an exact answer: per class as many as members are to be placed.

    `of_class` is [H] from `equivalence_classes`; rows with greater values in `first` [H] are taken
    first within their class.

    Returns:
        Row numbers, classes together, in the order of being taken.
    """
    members = int((problem.fixed < 0).sum())
    useful: Bools = np.asarray(problem.allowed.any(axis=0))
    useful[problem.fixed[problem.fixed >= 0]] = True
    order = np.lexsort((np.arange(len(first)), -first, of_class))
    order = order[useful[order]]
    ordered = of_class[order]
    starts = np.searchsorted(ordered, ordered)
    return np.asarray(order[np.arange(len(order)) - starts < max(members, 1)], dtype=np.int64)
