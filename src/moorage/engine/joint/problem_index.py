"""A problem by numbers: what the searching solvers look up in their inner loops.

Primitives that name hosts become masks and costs per member; those that name levels become
`Crowd`s: the members of one primitive, counted per domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.policies.primitives import (
    Apart,
    NeverOn,
    NeverTogether,
    OnlyOn,
    Pooled,
    SameDomain,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import MemberName
    from moorage.engine.joint.problem import Problem
    from moorage.policies.primitives import AtLeastDomains, AtMost, AtMostTogether, Skew

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Counted: TypeAlias = AtMost | AtMostTogether | AtLeastDomains | SameDomain | Skew | Apart


@dataclass(frozen=True, eq=False)
class Crowd:
    """One level primitive. Domain -1 is counted in a last place of its own, and ignored."""

    primitive: Counted
    members: tuple[int, ...]
    others: tuple[int, ...]
    """The other side of an `Apart`; empty for all else."""
    domain_of: Ints
    """[H], -1 for none."""
    size: int
    """How many domains."""

    @property
    def required(self) -> bool:
        """Whether it must hold."""
        return self.primitive.weight is None


@dataclass(frozen=True, eq=False)
class Index:
    """Numbers for one problem."""

    problem: Problem
    crowds: tuple[Crowd, ...]
    crowds_of: tuple[tuple[int, ...], ...]
    """[M] crowds a member is in, as one of `members`."""
    others_of: tuple[tuple[int, ...], ...]
    """[M] crowds a member is in, as one of `others`."""
    group_of: tuple[int, ...]
    """[M] members of one group have the same role and the same named hosts."""
    role_of_group: tuple[int, ...]
    """Per group: the role of its members."""
    may: tuple[Bools, ...]
    """Per group: [H] hosts that pass the role's filters and every required named host."""
    barred: tuple[Bools, ...]
    """Per group: [H] hosts that required named hosts forbid, also to members that stand there."""
    dislike: tuple[Ints, ...]
    """Per group: [H] what preferred named hosts cost there."""
    together: tuple[NeverTogether, ...] = ()
    pools: tuple[Pooled, ...] = ()
    """Cuts: what devices cannot serve."""

    @cached_property
    def moving(self) -> tuple[int, ...]:
        """Members that are to be placed."""
        return tuple(np.flatnonzero(self.problem.fixed < 0).tolist())

    @cached_property
    def misplaced(self) -> bool:
        """Whether a fixed member stands where a required named host forbids it."""
        return any(self.barred[self.group_of[m]][row] for m, row in self.standing)

    @cached_property
    def standing(self) -> tuple[tuple[int, int], ...]:
        """Fixed members with their rows."""
        fixed = self.problem.fixed.tolist()
        return tuple((m, row) for m, row in enumerate(fixed) if row >= 0)

    @cached_property
    def kinds(self) -> tuple[tuple[int, ...], ...]:
        """Members to be placed, by kind: members of one kind may change places freely."""
        found: dict[tuple[object, ...], list[int]] = {}
        for m in self.moving:
            key = (self.group_of[m], self.crowds_of[m], self.others_of[m])
            found.setdefault(key, []).append(m)
        return tuple(tuple(members) for members in found.values())

    @cached_property
    def sizes(self) -> tuple[Ints, Ints]:
        """The demands that differ, a row each, and [R] which of them each role has."""
        demand = self.problem.demand
        if not demand.shape[1]:
            return demand[:1], np.zeros(len(demand), dtype=np.int64)
        distinct, size_of = np.unique(demand, axis=0, return_inverse=True)
        return distinct, size_of.reshape(-1)

    @cached_property
    def _slots(self) -> dict[int, Ints]:
        return {}

    def slots(self, role: int) -> Ints:
        """[H] how many members of the role alone fit on each host, at most M; not to be changed.

        Roles of one size share the answer: a template may have thousands of roles of few sizes.
        """
        size = int(self.sizes[1][role])
        found = self._slots.get(size)
        if found is None:
            found = self._slots[size] = self._fitting(role)
            found.flags.writeable = False
        return found

    def _fitting(self, role: int) -> Ints:
        problem = self.problem
        found = np.full(len(problem.hosts), len(problem.members), dtype=np.int64)
        demand = problem.demand[role]
        # A joint problem has a column for each slot of time, and asks the same of most of them.
        for amount in np.unique(demand[demand != 0]).tolist():
            least = problem.free[:, demand == amount].min(axis=1)
            found = np.minimum(found, np.maximum(least, 0) // amount)
        return found


def index(problem: Problem) -> Index:
    """Number a problem."""
    position = problem.position_of
    crowds = []
    for one in problem.primitives:
        if isinstance(one, OnlyOn | NeverOn):
            continue
        domain_of = problem.domains[one.level]
        crowds.append(
            Crowd(
                primitive=one,
                members=tuple(position[m] for m in one.members),
                others=tuple(position[m] for m in one.others) if isinstance(one, Apart) else (),
                domain_of=domain_of,
                size=int(domain_of.max(initial=-1)) + 1,
            )
        )
    named = [one for one in problem.primitives if isinstance(one, OnlyOn | NeverOn)]
    group_of, barred, dislike = _groups(problem, named, position)
    role_of = [-1] * len(barred)
    for role, group in zip(problem.role_of.tolist(), group_of, strict=True):
        role_of[group] = role
    return Index(
        problem=problem,
        crowds=tuple(crowds),
        crowds_of=_memberships(len(position), [c.members for c in crowds]),
        others_of=_memberships(len(position), [c.others for c in crowds]),
        group_of=group_of,
        role_of_group=tuple(role_of),
        may=tuple(problem.allowed[r] & ~b for r, b in zip(role_of, barred, strict=True)),
        barred=barred,
        dislike=dislike,
        together=tuple(one for one in problem.cuts if isinstance(one, NeverTogether)),
        pools=tuple(one for one in problem.cuts if isinstance(one, Pooled)),
    )


def _memberships(count: int, sets: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    found: list[list[int]] = [[] for _ in range(count)]
    for number, members in enumerate(sets):
        for m in members:
            found[m].append(number)
    return tuple(tuple(numbers) for numbers in found)


def _groups(
    problem: Problem, named: list[OnlyOn | NeverOn], position: Mapping[MemberName, int]
) -> tuple[tuple[int, ...], tuple[Bools, ...], tuple[Ints, ...]]:
    outside = [_outside(problem, one) for one in named]
    sets = [tuple(position[m] for m in one.members) for one in named]
    numbers: dict[tuple[int, tuple[int, ...]], int] = {}
    group_of: list[int] = []
    barred: list[Bools] = []
    dislike: list[Ints] = []
    masks: dict[tuple[int, ...], tuple[Bools, Ints]] = {}
    for m, mine in enumerate(_memberships(len(position), sets)):
        key = (int(problem.role_of[m]), mine)
        if key not in numbers:
            numbers[key] = len(barred)
            if mine not in masks:
                masks[mine] = _masks(problem, mine, named, outside)
            mask, cost = masks[mine]
            barred.append(mask)
            dislike.append(cost)
        group_of.append(numbers[key])
    return tuple(group_of), tuple(barred), tuple(dislike)


def _masks(
    problem: Problem, mine: tuple[int, ...], named: list[OnlyOn | NeverOn], outside: list[Bools]
) -> tuple[Bools, Ints]:
    """[H] hosts that these primitives forbid, and what those that are preferred cost there."""
    mask = np.zeros(len(problem.hosts), dtype=np.bool_)
    cost = np.zeros(len(problem.hosts), dtype=np.int64)
    for number in mine:
        weight = named[number].weight
        if weight is None:
            mask |= outside[number]
        else:
            cost += weight * outside[number]
    return mask, cost


def _outside(problem: Problem, one: OnlyOn | NeverOn) -> Bools:
    """[H] hosts on which the primitive counts a member."""
    mask = np.zeros(len(problem.hosts), dtype=np.bool_)
    mask[list(one.hosts)] = True
    return ~mask if isinstance(one, OnlyOn) else mask
