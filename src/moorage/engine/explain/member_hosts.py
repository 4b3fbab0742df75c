"""The hosts that a part of a request leaves to its members, for the facts of a conflict."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.ensembles import MemberKind
from moorage.domain.member_names import MemberName
from moorage.engine.joint.alternatives import CHOICES, role_described
from moorage.engine.joint.problem import permitted_hosts
from moorage.policies.primitives import NeverOn, OnlyOn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.domain.topology import Level
    from moorage.engine.joint.build import BuiltProblem
    from moorage.policies.primitives import Primitive

    Bools: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]

_GIVERS = {MemberKind.SLICE: "server", MemberKind.VOLUME: "provider", MemberKind.PORT: "provider"}
"""Kind of members -> what gives them their resources, if that is no host."""


def giver_of(role: Role) -> str:
    """What gives a member its resources: a host, a server that offers slices, or a provider."""
    return _GIVERS.get(MemberKind(role.kind), "host")


def described(member: MemberName) -> MemberName:
    """The member of the request for which a member of the problem stands."""
    return MemberName(role_described(member.role), member.index)


@dataclass(frozen=True, eq=False)
class UsableHosts:
    """Which hosts filters, and policies that name hosts, leave to the members of a problem."""

    built: BuiltProblem
    whole: BuiltProblem
    """The problem of the whole request, of which `built` is a part."""

    @cached_property
    def required(self) -> tuple[Primitive, ...]:
        """What required policies post."""
        return tuple(
            one
            for one in self.built.problem.primitives
            if one.weight is None and one.policy != CHOICES
        )

    @cached_property
    def of_parts(self) -> Mapping[MemberName, Bools]:
        """Member of the problem -> [H] hosts that filters and named hosts leave it."""
        problem, hosts = self.built.problem, self.built.terrain.host_count
        limits: dict[MemberName, list[int]] = defaultdict(list)
        named = [one for one in self.required if isinstance(one, OnlyOn | NeverOn)]
        for number, one in enumerate(named):
            for member in one.members:
                limits[member].append(number)
        known: dict[tuple[int, tuple[int, ...]], Bools] = {}
        found: dict[MemberName, Bools] = {}
        for m, member in enumerate(problem.members):
            fixed = int(problem.fixed[m])
            if fixed >= 0:
                found[member] = np.zeros(hosts, dtype=np.bool_)
                found[member][fixed] = True
                continue
            key = int(problem.role_of[m]), tuple(limits[member])
            if key not in known:
                every = [problem.allowed[key[0]][:hosts]]
                every += [permitted_hosts(named[n], hosts + 1)[:hosts] for n in key[1]]
                known[key] = np.logical_and.reduce(every)
            found[member] = known[key]
        return found

    @cached_property
    def hosts_of(self) -> Mapping[MemberName, Bools]:
        """Member of the request -> [H] hosts that are left to it, whatever alternative it is."""
        found: dict[MemberName, Bools] = {}
        for member, mask in self.of_parts.items():
            whole = described(member)
            found[whole] = found[whole] | mask if whole in found else mask
        return found

    def of_choices(self, member: MemberName) -> list[Bools]:
        """[H] the hosts that are left to each alternative of a member of the request."""
        alternatives = self.built.alternatives
        parts = (member,) if alternatives is None else alternatives.parts[member]
        return [self.of_parts[one] for one in parts]

    @cached_property
    def moving(self) -> tuple[MemberName, ...]:
        """The members of the request that are to be placed."""
        fixed = self.built.request.fixed
        return tuple(one for one in self.built.request.members if one not in fixed)

    def of_request(self, members: Iterable[MemberName]) -> tuple[MemberName, ...]:
        """The members of the request for which members of the problem stand."""
        return tuple(dict.fromkeys(described(one) for one in members))

    def left(self, members: Iterable[MemberName]) -> Bools:
        """[H] the hosts that are left to any of the members."""
        nowhere = np.zeros(self.built.terrain.host_count, dtype=np.bool_)
        return np.asarray(np.logical_or.reduce([nowhere, *self.different(members)]))

    def different(self, members: Iterable[MemberName]) -> list[Bools]:
        """[H] the hosts that are left to each of the members; once for those of one kind."""
        every = (self.hosts_of[one] for one in self.of_request(members))
        return list({id(mask): mask for mask in every}.values())

    def who(self, members: Iterable[MemberName]) -> str:
        """The flavors of the members, or their roles: `m1.small and db`."""
        request = self.built.request
        roles = dict.fromkeys(one.role for one in self.of_request(members))
        names = {role.name: role.flavor or role.name for role in request.roles}
        return " and ".join(dict.fromkeys(names[role] for role in roles))

    def roles(self, members: Iterable[MemberName]) -> str:
        """The roles of the members: `web and db`."""
        return " and ".join(dict.fromkeys(one.role for one in self.of_request(members)))

    def giver(self, members: Iterable[MemberName]) -> str:
        """What gives the members their resources, `host` if that differs."""
        request = self.built.request
        some = self.of_request(members)
        kinds = {giver_of(one) for member in some for one in request.role_of(member).choices}
        return kinds.pop() if len(kinds) == 1 else "host"

    def giving(self, member: MemberName) -> Bools:
        """[H] the hosts that have, even if empty, something of what a member could take.

        Bare-metal nodes are no hosts for servers, and hypervisors none for bare-metal servers.
        """
        terrain, role = self.whole.terrain, self.whole.request.role_of(member)
        wanted = {name for one in role.choices for name in one.resources}
        wanted |= {name for one in role.choices for each in one.groups for name in each.resources}
        columns = [k for k, name in enumerate(terrain.classes) if name in wanted]
        if not columns:
            return np.ones(terrain.host_count, dtype=np.bool_)
        return np.asarray((terrain.capacity[:, columns] > 0).any(axis=1))

    def domains(self, level: Level, hosts: Bools) -> Ints:
        """The numbers of the domains of a level in which any of these [H] hosts is."""
        numbers = self.of_hosts(level)[hosts]
        return np.flatnonzero(np.bincount(numbers[numbers >= 0]))

    def of_hosts(self, level: Level) -> Ints:
        """[H] the number of each host's domain of a level, or -1."""
        return self.built.problem.domains[level][: self.built.terrain.host_count]
