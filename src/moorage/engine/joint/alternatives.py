"""Alternatives of members, encoded so that every solver places them as it places anything else.

A member with n choices becomes n members of the problem, one for each choice, and the problem gets
one more row, the *absent* row, on which only these may stand: it has room for all of them, no
capacity that counts, and no domain at any level of the topology, so that no primitive counts who
stands there. Two limits of each member say that exactly one of its n is on a host: at most one is
in the domain of all hosts (`PLACED`), and at most n - 1 in that of the absent row (`ABSENT`). What
the policies post for a member is posted for all of its n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.member_names import MemberName
from moorage.domain.requests import Objective
from moorage.domain.topology import Level
from moorage.policies.primitives import Apart, AtMost, Near, NeverOn, OnlyOn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.domain.requests import EnsembleRequest
    from moorage.engine.joint.problem import Problem
    from moorage.policies.primitives import Primitive

    Ints: TypeAlias = NDArray[np.int64]

PLACED: Final = Level("", "placed")
"""The level at which all hosts are one domain, and the absent row has none."""
ABSENT: Final = Level("", "absent")
"""The level at which the absent row is the one domain."""
CHOICE_LEVELS: Final = frozenset({PLACED, ABSENT})
CHOICES: Final = "alternatives"
"""The policy name of what is posted here."""
_SEPARATOR: Final = "|"
"""No role's name may have it."""


@dataclass(frozen=True, eq=False)
class Alternatives:
    """A request with alternatives, and the same with a role and a member for each choice."""

    plain: EnsembleRequest
    parts: Mapping[MemberName, tuple[MemberName, ...]]
    """Member of the request -> its members in `plain`, by choice; one if it has no choice left."""
    choice_of: Mapping[MemberName, int]
    """Member of `plain` -> which choice it is."""
    roles: Mapping[str, tuple[str, ...]]
    """Role of the request -> its roles in `plain`, by choice."""

    @property
    def open_parts(self) -> Iterator[tuple[MemberName, ...]]:
        """The parts of every member with several."""
        return (some for some in self.parts.values() if len(some) > 1)

    def posted(self, primitives: Iterable[Primitive], hosts: int) -> Iterator[Primitive]:
        """The primitives of the request's policies for the members of `plain`."""
        for one in primitives:
            members = self._parts_of(one.members)
            match one:
                case Apart() | Near():
                    yield replace(one, members=members, others=self._parts_of(one.others))
                case OnlyOn() if len(members) > len(one.members):
                    yield replace(one, members=members, hosts=one.hosts | {hosts})
                case _:
                    yield replace(one, members=members)

    def _parts_of(self, members: Iterable[MemberName]) -> tuple[MemberName, ...]:
        return tuple(part for one in members for part in self.parts[one])

    def _limits(self) -> Iterator[Primitive]:
        for some in self.open_parts:
            yield AtMost(policy=CHOICES, members=some, level=PLACED, limit=1)
            yield AtMost(policy=CHOICES, members=some, level=ABSENT, limit=len(some) - 1)

    def _costs(self, hosts: int) -> Iterator[Primitive]:
        """Each step down costs 1. The first is to be paid when the first choice is given up."""
        if not self.plain.first_choices:
            return
        by_choice: dict[int, list[MemberName]] = {}
        for some in self.open_parts:
            for choice, part in enumerate(some):
                by_choice.setdefault(choice, []).append(part)
        real = frozenset(range(hosts))
        for choice, members in sorted(by_choice.items()):
            named = tuple(members)
            if choice == 0:
                yield OnlyOn(policy=CHOICES, members=named, weight=1, hosts=real)
            elif choice > 1:
                yield NeverOn(policy=CHOICES, members=named, weight=choice - 1, hosts=real)

    def with_absent_row(self, problem: Problem) -> Problem:
        """The problem of `plain` with the absent row, if anybody has a choice."""
        number = problem.position_of
        choices = tuple(tuple(number[part] for part in some) for some in self.open_parts)
        if not choices:
            return problem
        hosts = len(problem.hosts)
        open_ = [part for some in choices for part in some]
        needs = problem.demand[problem.role_of[open_]].sum(axis=0)
        may = np.zeros((len(problem.roles), 1), dtype=np.bool_)
        may[problem.role_of[open_]] = True
        nowhere = np.full(1, -1, dtype=np.int64)
        domains = {level: np.append(numbers, nowhere) for level, numbers in problem.domains.items()}
        domains[PLACED] = np.append(np.zeros(hosts, dtype=np.int64), nowhere)
        domains[ABSENT] = np.append(np.full(hosts, -1, dtype=np.int64), np.zeros(1, dtype=np.int64))
        return replace(
            problem,
            allowed=np.hstack([problem.allowed, may]),
            free=np.vstack([problem.free, needs]),
            capacity=np.vstack([problem.capacity, np.zeros_like(needs)]),
            hosts=(*problem.hosts, ""),
            domains=domains,
            primitives=(*problem.primitives, *self._limits(), *self._costs(hosts)),
            choices=choices,
        )


def alternatives_of(request: EnsembleRequest) -> Alternatives | None:
    """The request with its alternatives spelt out; None: no member has any."""
    used = {member.role for member in request.members}
    if not any(role.alternatives for role in request.roles if role.name in used):
        return None
    roles = {role.name: tuple(_roles(role)) for role in request.roles}
    parts: dict[MemberName, tuple[MemberName, ...]] = {}
    for member in request.members:
        names = [role.name for role in roles[member.role]]
        if member in request.fixed:
            # A role that was changed may have fewer; a fixed member takes nothing in any case.
            names = [names[min(request.choices.get(member, 0), len(names) - 1)]]
        parts[member] = tuple(MemberName(name, member.index) for name in names)
    every = {role.name: i for some in roles.values() for i, role in enumerate(some)}
    plain = replace(
        request,
        roles=tuple(role for some in roles.values() for role in some),
        members=tuple(part for some in parts.values() for part in some),
        fixed=MappingProxyType({parts[one][0]: host for one, host in request.fixed.items()}),
    )
    return Alternatives(
        plain,
        MappingProxyType(parts),
        MappingProxyType({one: every[one.role] for one in plain.members}),
        MappingProxyType({name: tuple(one.name for one in some) for name, some in roles.items()}),
    )


def _roles(role: Role) -> Iterator[Role]:
    if not role.alternatives:
        yield role
        return
    for number, one in enumerate(role.choices):
        name = f"{role.name}{_SEPARATOR}{number}"
        yield replace(one, name=name, alternatives=(), share=role.share)


def role_described(name: str) -> str:
    """The role of the request that a role of the problem stands for."""
    return name.partition(_SEPARATOR)[0]


def constant_cost(problem: Problem) -> int:
    """What the encoding adds to the objective's cost of every placement."""
    if not problem.choices or problem.objective is None:
        return 0
    match problem.objective:
        case Objective.PACK:
            return 1  # the absent row
        case Objective.SPREAD:
            return sum(len(some) - 1 for some in problem.choices) - 1
        case Objective.BALANCE | Objective.ROOM:
            return 0
