"""Refutes sides that are apart from each other: together they need more domains than there are.

Of sides of which every two are apart, no domain has members of two. So each needs domains of its
own: as many as it takes to hold its members where most of them fit, those of its fixed members
among them. Like every test by counting it is a necessary condition: passing it proves nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from moorage.policies.primitives import Apart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from moorage.domain.topology import Level
    from moorage.engine.joint.problem_index import LevelConstraint, ProblemIndex

    Ints: TypeAlias = NDArray[np.int64]
    Side: TypeAlias = tuple[int, ...]


class SideCounts(Protocol):
    """Per domain of a level: what a side has there, and how much more of it fits."""

    fixed: Ints
    """[D] fixed members."""
    room: Ints
    """[D] members to be placed that fit."""
    least: int
    """How many of the members to be placed are in some domain, whatever is decided."""


def separated_sides_refute(
    numbers: ProblemIndex, count: Callable[[LevelConstraint], SideCounts]
) -> bool:
    """Whether sides that must be apart need more domains than there are.

    `count` counts the members of a constraint by domain.
    """
    by_level: dict[Level, list[LevelConstraint]] = {}
    for one in numbers.constraints:
        if one.required and isinstance(one.primitive, Apart):
            by_level.setdefault(one.primitive.level, []).append(one)
    return any(_level_refutes(some, count) for some in by_level.values())


def _level_refutes(
    some: list[LevelConstraint], count: Callable[[LevelConstraint], SideCounts]
) -> bool:
    needed, usable = 0, np.zeros(some[0].domain_count, dtype=np.bool_)
    for side in _mutually_apart(some):
        counts = count(replace(some[0], members=side, others=()))
        domains = _domains_needed(counts)
        if domains is None:
            return True
        needed += domains
        usable |= (counts.fixed > 0) | (counts.room > 0)
    return needed > int(usable.sum())


def _mutually_apart(some: Iterable[LevelConstraint]) -> list[Side]:
    """Sides of which every two are apart, those first that are apart from most others."""
    apart: dict[Side, set[Side]] = {}
    for one in some:
        apart.setdefault(one.members, set()).add(one.others)
        apart.setdefault(one.others, set()).add(one.members)
    found: list[Side] = []
    for side in sorted(apart, key=lambda side: (-len(apart[side]), side)):
        if apart[side].issuperset(found):
            found.append(side)
    return found


def _domains_needed(counts: SideCounts) -> int | None:
    """In how many domains a side is at least; None: it does not fit into all of them."""
    used = counts.fixed > 0
    rest = counts.least - int(counts.room[used].sum())
    if rest <= 0:
        return int(used.sum())
    most = np.cumsum(np.sort(counts.room[~used])[::-1])
    if not len(most) or most[-1] < rest:
        return None
    return int(used.sum()) + int(np.searchsorted(most, rest)) + 1
