"""A request in the making, with the host that each of its members is meant for."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from benchmarks.joint.fleet import MEMORY, VCPU

from moorage.domain.ensembles import Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.testing.problems import PROJECT, statement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.joint.fleet import Fleet
    from numpy.typing import NDArray

    from moorage.domain.ensembles import PolicyStatement

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]

Part: TypeAlias = "tuple[str, str]"
"""A part of a request, as conflicts name it: its kind, and the policy's or role's name."""


class NotPlantable(Exception):
    """This fleet has no answer of the kind that a family plants."""


@dataclass(frozen=True, eq=False)
class Instance:
    """A request of which the generator knows an answer, or why there is none."""

    family: str
    seed: int
    request: EnsembleRequest
    planted: Mapping[MemberName, int] | None = None
    """Member -> host row of an answer; None if there is no answer."""
    conflict: frozenset[Part] = frozenset()
    """The only minimal conflict, if there is no answer."""
    teams: tuple[str, ...] = ()
    """Roles whose members want to be near each other: their hops are counted."""

    @property
    def feasible(self) -> bool:
        """Whether there is an answer."""
        return self.planted is not None


class Draft:
    """Members are put on hosts of a fleet one by one, within what is free there."""

    def __init__(self, fleet: Fleet, dice: np.random.Generator) -> None:
        self.fleet = fleet
        self.dice = dice
        self.free = fleet.free
        self.hosts: dict[MemberName, int] = {}
        self.policies: list[PolicyStatement] = []
        self._roles: dict[str, Role] = {}
        self._counts: dict[str, int] = {}
        self._columns = [fleet.classes.index(VCPU), fleet.classes.index(MEMORY)]

    def role(self, name: str, cores: int, memory: int, *traits: str) -> str:
        """Add a role; memory in GiB."""
        self._roles[name] = Role(
            name,
            MappingProxyType({MEMORY: memory, VCPU: cores}),
            required=tuple(frozenset({trait}) for trait in traits),
        )
        self._counts[name] = 0
        return name

    def policy(
        self, name: str, kind: str, *members: str, weight: int | None = None, **parameters: object
    ) -> None:
        """Add a policy; `zip_` as of `statement`."""
        zipped = bool(parameters.pop("zip_", False))
        self.policies.append(
            statement(name, kind, *members, weight=weight, zip_=zipped, **parameters)
        )

    def slots(self, role: str) -> Ints:
        """[H] how many members of the role alone fit on each host now."""
        amounts = self._amounts(role)
        found = (np.maximum(self.free[:, self._columns], 0) // amounts).min(axis=1)
        traits = (trait for any_of in self._roles[role].required for trait in any_of)
        return np.where(self.fleet.with_trait(*traits) & ~self.fleet.closed, found, 0)

    def _amounts(self, role: str) -> Ints:
        resources = self._roles[role].resources
        return np.array([resources[VCPU], resources[MEMORY]], dtype=np.int64)

    def put(self, role: str, row: int) -> MemberName:
        """Put the role's next member on a host."""
        member = self.without_host(role)
        self.hosts[member] = row
        self.free[row, self._columns] -= self._amounts(role)
        return member

    def without_host(self, role: str) -> MemberName:
        """The role's next member, for which no host is meant."""
        member = MemberName(role, self._counts[role])
        self._counts[role] += 1
        return member

    def choose(self, among: Bools) -> int:
        """Any of these hosts.

        Raises:
            NotPlantable: there is none.
        """
        rows = np.flatnonzero(among)
        if not len(rows):
            raise NotPlantable
        return int(rows[self.dice.integers(len(rows))])

    def plant(
        self,
        role: str,
        count: int,
        *,
        among: Bools | None = None,
        most: Mapping[str, int] | None = None,
        even: str | None = None,
    ) -> None:
        """Put so many members of a role on hosts.

        Each domain of a level gets at most `most` of them, and the domains of the level `even` are
        filled in turn.

        Raises:
            NotPlantable: there is no room.
        """
        limits = dict(most or {})
        domains = {level: self.domains(level) for level in {*limits, *([even] if even else [])}}
        counts = {
            level: np.zeros(int(of.max()) + 1, dtype=np.int64) for level, of in domains.items()
        }
        for _ in range(count):
            mask = self.slots(role) > 0
            if among is not None:
                mask &= among
            for level, limit in limits.items():
                mask &= (counts[level] < limit)[domains[level]]
            if even is not None:
                mask &= (counts[even] == counts[even].min())[domains[even]]
            row = self.choose(mask)
            self.put(role, row)
            for level, of in domains.items():
                counts[level][of[row]] += 1

    def domains(self, level: str) -> Ints:
        """[H] the number of each host's domain."""
        if level == "host":
            return np.arange(len(self.fleet.names))
        return self.fleet.domains[level]

    def fullest(self, role: str, level: str) -> int:
        """How many of the role's members its fullest domain has."""
        return int(np.bincount(self._domains_used(role, level)).max())

    def emptiest(self, role: str, level: str) -> int:
        """How many of the role's members the emptiest of all domains has."""
        every = int(self.domains(level).max()) + 1
        return int(np.bincount(self._domains_used(role, level), minlength=every).min())

    def used(self, role: str, level: str) -> int:
        """How many domains have one of the role's members."""
        return len(np.unique(self._domains_used(role, level)))

    def _domains_used(self, role: str, level: str) -> Ints:
        rows = [row for member, row in self.hosts.items() if member.role == role]
        return self.domains(level)[rows]

    def instance(
        self,
        family: str,
        seed: int,
        *,
        conflict: frozenset[Part] = frozenset(),
        teams: tuple[str, ...] = (),
        objective: Objective = Objective.SPREAD,
    ) -> Instance:
        """The request, with its answer or with its conflict."""
        return Instance(
            family=family,
            seed=seed,
            request=EnsembleRequest(
                project_id=PROJECT,
                roles=tuple(role for name, role in self._roles.items() if self._counts[name]),
                members=tuple(
                    MemberName(name, index)
                    for name, count in self._counts.items()
                    for index in range(count)
                ),
                policies=tuple(self.policies),
                period=Period(0),
                objective=objective,
            ),
            planted=None if conflict else MappingProxyType(self.hosts),
            conflict=conflict,
            teams=teams,
        )
