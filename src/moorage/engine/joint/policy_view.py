"""The policies' view of the fleet (`domain.placement.PolicyView`), implemented on a terrain."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from moorage.domain.disclosure import said_names
from moorage.engine.joint.problem import permitted_hosts
from moorage.policies.primitives import NeverOn, OnlyOn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.member_names import MemberName
    from moorage.domain.placement import Occupant
    from moorage.domain.topology import Level, Topology
    from moorage.engine.joint.terrain import Terrain
    from moorage.policies.primitives import Primitive
    from moorage.policies.rules import PolicyRule

    Bools: TypeAlias = NDArray[np.bool_]


_ELIGIBLE: Final = "eligible"


class Posted(NamedTuple):
    """The primitives that a rule posted, and whether they depend on the rest of the request."""

    rule: PolicyRule
    primitives: tuple[Primitive, ...]
    depends: bool
    """Whether eligible hosts, so the sizes and filters of roles or other policies, decided them."""


@dataclass(frozen=True, eq=False)
class TerrainView:
    """A terrain with what depends on the request: eligible hosts and foreign consumers."""

    terrain: Terrain
    project_id: str
    """The project of the ensemble that is placed."""
    own: frozenset[str]
    """Consumers that are not foreign: the ensemble's own."""
    find_eligible: Callable[[], Mapping[str, Bools]]
    """Computes `eligible_rows`, which few policies need."""
    fences: tuple[PolicyRule, ...] = ()
    """The required fences and bans of the request."""
    references: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Id of another ensemble to which policies refer -> UUIDs of its members' hosts."""
    larger: TerrainView | None = None
    """The view of the request of which this one is a part, on the same terrain."""
    _cache: dict[object, object] = field(default_factory=dict)
    _posted: dict[str, Posted] = field(default_factory=dict)
    _read: set[str] = field(default_factory=set)
    """`_ELIGIBLE`, if eligible hosts or domains were read since a rule began to post."""
    exact_names: bool = False
    """Whether texts name racks and hosts too: for operators."""
    read_occupants_of: set[int] = field(default_factory=set)
    """Rows whose occupants were read through `foreign_consumers`; the answers depend on them."""
    looked_beside: set[Level] = field(default_factory=set)
    """Levels at which hosts beside foreign consumers were looked for, among all of the hosts."""

    @cached_property
    def eligible_rows(self) -> Mapping[str, Bools]:
        """Role -> [H] hosts that could hold one member if they were empty."""
        return self.find_eligible()

    @property
    def has_read_eligible(self) -> bool:
        """Whether anything has depended on eligible hosts so far."""
        return "eligible_rows" in self.__dict__

    @property
    def topology(self) -> Topology:
        """The topology of the fleet."""
        return self.terrain.topology

    @property
    def host_count(self) -> int:
        """How many hosts there are."""
        return self.terrain.host_count

    def domains(self, level: Level) -> Sequence[int]:
        """Per host the number of its domain, or -1."""
        return self.terrain.domain_list(level)

    def domain_name(self, level: Level, domain: int) -> str:
        """The name of a domain number."""
        return self.terrain.domain_name(level, domain)

    def eligible(self, member: MemberName) -> frozenset[int]:
        """Hosts that could hold the member if they were empty."""
        self._read.add(_ELIGIBLE)
        found = self._cache.get(member.role)
        if found is None:
            rows = np.flatnonzero(self.eligible_rows[member.role])
            found = self._cache[member.role] = frozenset(rows.tolist())
        return found  # type: ignore[return-value]  # sets of rows only under a role

    def hosts_without_domain(self, level: Level) -> frozenset[int]:
        """Hosts that are in no domain of the level."""
        found = self._cache.get(("outside", level))
        if found is None:
            outside = np.flatnonzero(self.terrain.domains(level) < 0)
            found = self._cache["outside", level] = frozenset(outside.tolist())
        return found  # type: ignore[return-value]  # sets of rows only under such a key

    def eligible_domains(
        self, members: Sequence[MemberName], level: Level, *, fenced: bool = False
    ) -> frozenset[int]:
        """Domains with at least one host that is eligible for one of the members."""
        self._read.add(_ELIGIBLE)
        kinds = {(member.role, self._fences_of(member) if fenced else ()) for member in members}
        key = level, frozenset(kinds)
        found = self._cache.get(key)
        if found is None:
            hosts = np.zeros(self.host_count, dtype=np.bool_)
            for role, fences in kinds:
                hosts |= self.eligible_rows[role] & self._inside(fences)
            domains = self.terrain.domains(level)[hosts]
            numbers = np.flatnonzero(np.bincount(domains[domains >= 0]))
            found = self._cache[key] = frozenset(numbers.tolist())
        return found  # type: ignore[return-value]  # sets of domains only under such a key

    def _fences_of(self, member: MemberName) -> tuple[int, ...]:
        return tuple(number for number, mine in enumerate(self._fenced) if member in mine)

    def _inside(self, fences: tuple[int, ...]) -> Bools:
        """[H] hosts that all of these fences permit."""
        found = self._cache.get(fences)
        if found is None:
            mask = np.ones(self.host_count, dtype=np.bool_)
            for number in fences:
                mask &= permitted_hosts(self._fences[number], self.host_count)
            found = self._cache[fences] = mask
        return found  # type: ignore[return-value]  # masks only under numbers of fences

    @cached_property
    def _fenced(self) -> tuple[frozenset[MemberName], ...]:
        return tuple(frozenset(one.members) for one in self._fences)

    @cached_property
    def _fences(self) -> tuple[OnlyOn | NeverOn, ...]:
        posted = (one for rule in self.fences for one in self.posted(rule))
        return tuple(one for one in posted if isinstance(one, OnlyOn | NeverOn))

    def posted(self, rule: PolicyRule) -> tuple[Primitive, ...]:
        """The primitives that a rule posts."""
        return self._posting(rule).primitives

    def depends(self, rule: PolicyRule) -> bool:
        """Whether what a rule posts depends on the rest of the request."""
        return self._posting(rule).depends

    def _posting(self, rule: PolicyRule) -> Posted:
        name = rule.statement.name
        known = self._posted.get(name)
        if known is not None and known.rule == rule:
            return known
        if self.larger is not None:
            known = self.larger._posted.get(name)  # noqa: SLF001 - another of this class
        if known is None or known.rule != rule or known.depends:
            before = frozenset(self._read)
            self._read.clear()
            primitives = tuple(rule.post(self))
            known = Posted(rule, primitives, depends=_ELIGIBLE in self._read)
            self._read.update(before)
        self._posted[name] = known
        return known

    def hosts_in(self, names: frozenset[str]) -> frozenset[int]:
        """Hosts with one of the names, or in a domain or aggregate with one of them."""
        mask = np.zeros(self.host_count, dtype=np.bool_)
        for name in names:
            mask |= self.terrain.rows_named(name)
        return frozenset(np.flatnonzero(mask).tolist())

    def near(self, ensemble: str, level: Level) -> frozenset[int] | None:
        """Hosts in the domains of the level that hold members of another ensemble."""
        if ensemble not in self.references:
            return None
        key = ("near", ensemble, level)
        found = self._cache.get(key)
        if found is None:
            domains = self.terrain.domains(level)
            rows = [
                self.terrain.row_of[host]
                for host in self.references[ensemble]
                if host in self.terrain.row_of
            ]
            taken = np.unique(domains[rows])
            inside = np.flatnonzero(np.isin(domains, taken[taken >= 0]))
            found = self._cache[key] = frozenset(inside.tolist())
        return found  # type: ignore[return-value]  # sets of rows only under such a key

    def names_text(self, names: frozenset[str]) -> str:
        """The names as shown in texts."""
        if self.exact_names:
            return ", ".join(sorted(names))
        return said_names(self.terrain.topology, names)

    def hosts_with_traits(self, traits: frozenset[str]) -> frozenset[int]:
        """Hosts that have every one of the traits, and the servers on them."""
        mask = np.ones(self.host_count, dtype=np.bool_)
        for trait in traits:
            mask &= self.terrain.located(self.terrain.has_trait(trait))
        return frozenset(np.flatnonzero(mask).tolist())

    def hosts_beside_foreign(
        self, forbids: Callable[[Occupant], bool], level: Level
    ) -> frozenset[int]:
        """Hosts in a domain with a foreign consumer that `forbids` tells."""
        self.looked_beside.add(level)
        domains = self.terrain.domains(level)
        taken = np.unique(domains[self.terrain.rows_with(forbids, self.own)])
        rows = np.flatnonzero(np.isin(domains, taken[taken >= 0]))
        return frozenset(rows.tolist())

    def foreign_consumers(self, host: int) -> Sequence[Occupant]:
        """Occupants of the host's tree that do not belong to this ensemble."""
        self.read_occupants_of.add(host)
        return [one for one in self.terrain.occupants_of(host) if one.consumer not in self.own]
