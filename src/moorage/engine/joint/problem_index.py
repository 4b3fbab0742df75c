"""Index of a problem for the inner loops of search: constraints and members as numbers.

Primitives that name hosts become masks and costs per group of members; those that name levels
become `LevelConstraint`s, for which members are counted per domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.topology import HOST
from moorage.engine.joint.alternatives import CHOICE_LEVELS
from moorage.engine.joint.domain_rows import DomainRows
from moorage.engine.joint.problem import permitted_hosts
from moorage.policies.primitives import (
    AtMost,
    Near,
    NeverOn,
    NeverTogether,
    OnlyOn,
    Pooled,
    SameDomain,
    Sided,
    Skew,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from moorage.domain.member_names import MemberName
    from moorage.domain.topology import Level
    from moorage.engine.joint.problem import Problem
    from moorage.policies.primitives import Apart, AtLeastDomains, AtMostTogether

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    LevelPrimitive: TypeAlias = (
        AtMost | AtMostTogether | AtLeastDomains | SameDomain | Skew | Apart | Near
    )


@dataclass(frozen=True, eq=False)
class LevelConstraint:
    """A primitive on a level, with member and domain numbers. Domain -1 is ignored."""

    primitive: LevelPrimitive
    members: tuple[int, ...]
    others: tuple[int, ...]
    """The other side of an `Apart` or `Near`; empty for all else."""
    domain_of: Ints
    """[H] domain number, or -1."""
    domain_count: int
    """Number of domains."""

    @property
    def required(self) -> bool:
        """Whether it is required, not preferred."""
        return self.primitive.weight is None

    @cached_property
    def is_near(self) -> bool:
        """Whether it is a `Near`."""
        return isinstance(self.primitive, Near)

    @property
    def awaited(self) -> tuple[int, ...]:
        """The members that can still mend it: of a `Near` the others."""
        return self.others if isinstance(self.primitive, Near) else self.members

    @cached_property
    def eligible(self) -> Ints:
        """The domains that a `Skew` compares; none for all else."""
        domains = self.primitive.domains if isinstance(self.primitive, Skew) else ()
        return np.array(domains, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ProblemIndex:
    """The index of one problem."""

    problem: Problem
    constraints: tuple[LevelConstraint, ...]
    constraints_of: tuple[tuple[int, ...], ...]
    """[M] numbers of the constraints with the member in `members`."""
    other_side_of: tuple[tuple[int, ...], ...]
    """[M] numbers of the constraints with the member in `others`."""
    group_of: tuple[int, ...]
    """[M] group number; members of a group have the same role and the same host primitives."""
    role_of_group: tuple[int, ...]
    """Per group: the role of its members."""
    allowed: tuple[Bools, ...]
    """Per group: [H] hosts that pass the role's filters and the required host primitives."""
    forbidden: tuple[Bools, ...]
    """Per group: [H] hosts that required host primitives forbid."""
    preference_cost: tuple[Ints, ...]
    """Per group: [H] the cost of the preferred host primitives."""
    never_together: tuple[NeverTogether, ...] = ()
    pools: tuple[Pooled, ...] = ()
    """The cuts, by type."""

    @cached_property
    def to_place(self) -> tuple[int, ...]:
        """Numbers of the members to be placed."""
        return tuple(np.flatnonzero(self.problem.fixed < 0).tolist())

    @cached_property
    def fixed_rows(self) -> list[int]:
        """[M] `Problem.fixed` as a list, which is quicker to read member by member."""
        rows: list[int] = self.problem.fixed.tolist()
        return rows

    @cached_property
    def fixed_on_forbidden(self) -> bool:
        """Whether a fixed member is on a host that a required primitive forbids."""
        return any(self.forbidden[self.group_of[m]][row] for m, row in self.fixed_members)

    @cached_property
    def fixed_members(self) -> tuple[tuple[int, int], ...]:
        """(member number, host row) of the fixed members."""
        return tuple((m, row) for m, row in enumerate(self.fixed_rows) if row >= 0)

    @cached_property
    def optional(self) -> Mapping[int, tuple[int, Ints]]:
        """Number of a member with alternatives -> which choice it is, and the others' numbers."""
        return {
            m: (choice, np.array([one for one in some if one != m], dtype=np.int64))
            for some in self.problem.choices
            for choice, m in enumerate(some)
        }

    def choice(self, m: int) -> int:
        """Which choice a member is; 0 for one without alternatives."""
        found = self.optional.get(m)
        return 0 if found is None else found[0]

    @cached_property
    def of_choices(self) -> frozenset[int]:
        """Numbers of the constraints that say that one choice of each member is placed."""
        return frozenset(
            c for c, one in enumerate(self.constraints) if one.primitive.level in CHOICE_LEVELS
        )

    @cached_property
    def interchangeable(self) -> tuple[tuple[int, ...], ...]:
        """The members to be placed, in groups within which they are interchangeable."""
        found: dict[tuple[object, ...], list[int]] = {}
        for m in self.to_place:
            key = (self.group_of[m], self.constraints_of[m], self.other_side_of[m])
            found.setdefault(key, []).append(m)
        return tuple(tuple(members) for members in found.values())

    @cached_property
    def alike(self) -> tuple[int, ...]:
        """Per group: the first group with the same demand and the same allowed hosts."""
        sizes = self.sizes[1][list(self.role_of_group)].tolist()
        first: dict[tuple[int, bytes], int] = {}
        return tuple(
            first.setdefault((size, allowed.tobytes()), group)
            for group, (size, allowed) in enumerate(zip(sizes, self.allowed, strict=True))
        )

    def rows_of(self, group: int) -> Ints:
        """The rows that are allowed for a group, ascending; read-only."""
        group = self.alike[group]
        found = self._rows_of.get(group)
        if found is None:
            found = self._rows_of[group] = np.flatnonzero(self.allowed[group])
            found.flags.writeable = False
        return found

    @cached_property
    def _rows_of(self) -> dict[int, Ints]:
        return {}

    @cached_property
    def host_limits(self) -> frozenset[int]:
        """Numbers of the constraints that require at most so many members per host."""
        return frozenset(
            c
            for c, one in enumerate(self.constraints)
            if one.required
            and isinstance(one.primitive, AtMost)
            and one.primitive.level.name == HOST
        )

    def host_limit(self, members: tuple[int, ...]) -> int | None:
        """How many of these members may be on one row, by the required limits on all of them.

        More rows than one may be on one host: then this is more than may be.
        """
        if members not in self._host_limit:
            on_all = self.host_limits.intersection(*(self.constraints_of[m] for m in members))
            limits = (self.constraints[c].primitive for c in on_all)
            least = min((one.limit for one in limits if isinstance(one, AtMost)), default=None)
            self._host_limit[members] = least
        return self._host_limit[members]

    @cached_property
    def _host_limit(self) -> dict[tuple[int, ...], int | None]:
        return {}

    @cached_property
    def domain_rows(self) -> tuple[DomainRows, ...]:
        """Per constraint: the hosts of each domain that it counts."""
        return tuple(self.hosts_by(one.primitive.level) for one in self.constraints)

    def hosts_by(self, level: Level) -> DomainRows:
        """The hosts of each domain of a level that a constraint names."""
        found = self._hosts_by.get(level)
        if found is None:
            problem = self.problem
            own = level.name == HOST and problem.hosts_are_domains and not problem.choices
            found = self._hosts_by[level] = DomainRows(problem.domains[level], own=own)
        return found

    @cached_property
    def _hosts_by(self) -> dict[Level, DomainRows]:
        return {}

    @cached_property
    def sizes(self) -> tuple[Ints, Ints]:
        """The distinct demands, a row each, and [R] the row of each role."""
        demand = self.problem.demand
        number: dict[tuple[int, ...], int] = {}
        size_of = [number.setdefault(tuple(row), len(number)) for row in demand.tolist()]
        distinct = np.array(list(number), dtype=np.int64).reshape(len(number), demand.shape[1])
        return distinct, np.array(size_of, dtype=np.int64)

    @cached_property
    def _slots(self) -> dict[int, Ints]:
        return {}

    def slots(self, role: int) -> Ints:
        """[H] how many members of the role alone fit on each host, at most M; read-only.

        Cached per demand: a template may have thousands of roles with few distinct demands.
        """
        size = int(self.sizes[1][role])
        found = self._slots.get(size)
        if found is None:
            found = self._slots[size] = self.fitting(self.problem.demand[role])
            found.flags.writeable = False
        return found

    def fitting(self, demand: Ints) -> Ints:
        """[H] how many members that take so much [K] fit on each host, at most M."""
        problem = self.problem
        found = np.full(len(problem.hosts), len(problem.members), dtype=np.int64)
        # A problem over several periods has columns per time slot, mostly with equal demand.
        for amount in np.unique(demand[demand != 0]).tolist():
            least = problem.free.T[demand == amount].min(axis=0)
            found = np.minimum(found, np.maximum(least, 0) // amount)
        return found


def index_problem(problem: Problem) -> ProblemIndex:
    """Build the index of a problem."""
    position = problem.position_of
    constraints = []
    known = set()
    for one in problem.primitives:
        if isinstance(one, OnlyOn | NeverOn):
            continue
        stated = LevelConstraint(
            primitive=one,
            members=tuple(position[m] for m in one.members),
            others=tuple(position[m] for m in one.others) if isinstance(one, Sided) else (),
            domain_of=problem.domains[one.level],
            domain_count=problem.domain_counts[one.level],
        )
        if stated.required:
            # What several policies require alike is required once.
            same = one.terms, stated.members, stated.others
            if same in known:
                continue
            known.add(same)
        constraints.append(stated)
    named = [one for one in problem.primitives if isinstance(one, OnlyOn | NeverOn)]
    group_of, barred, dislike = _groups(problem, named, position)
    role_of = [-1] * len(barred)
    for role, group in zip(problem.role_of.tolist(), group_of, strict=True):
        role_of[group] = role
    return ProblemIndex(
        problem=problem,
        constraints=tuple(constraints),
        constraints_of=_memberships(len(position), [c.members for c in constraints]),
        other_side_of=_memberships(len(position), [c.others for c in constraints]),
        group_of=group_of,
        role_of_group=tuple(role_of),
        allowed=tuple(problem.allowed[r] & ~b for r, b in zip(role_of, barred, strict=True)),
        forbidden=barred,
        preference_cost=dislike,
        never_together=tuple(one for one in problem.cuts if isinstance(one, NeverTogether)),
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
    outside = [~permitted_hosts(one, len(problem.hosts)) for one in named]
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
    """[H] hosts that the required primitives forbid, and [H] the cost of the preferred ones."""
    mask = np.zeros(len(problem.hosts), dtype=np.bool_)
    cost = np.zeros(len(problem.hosts), dtype=np.int64)
    for number in mine:
        weight = named[number].weight
        if weight is None:
            mask |= outside[number]
        else:
            cost += weight * outside[number]
    return mask, cost
