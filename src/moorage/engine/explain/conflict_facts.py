"""Facts of the fleet that a conflict's needs run into: what is there is less than what is needed.

They are read from the problem of the conflict alone, so they name what its own elements leave. A
fact that contradicts no need is not given; where counting shows none, a sentence says that no
placement was found by trying all.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.ensembles import MemberKind, MemberName
from moorage.domain.explain import Element, Fact
from moorage.domain.topology import DEFAULT_TREE, Level
from moorage.engine.explain.conflict_classes import groups_key
from moorage.engine.explain.elements import CLOSED, DEVICES, elements, without_elements
from moorage.engine.joint.alternatives import CHOICES, role_described
from moorage.engine.joint.problem import permitted_hosts
from moorage.policies.levels import domains_text, members_text
from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    NeverOn,
    OnlyOn,
    SameDomain,
    Skew,
)
from moorage.policies.shared_domains import JoinedMembers, domains_needed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.engine.joint.build import BuiltProblem
    from moorage.policies.primitives import Primitive

    Bools: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]

Binding: TypeAlias = "Mapping[str, frozenset[str]]"
"""Role -> the resource classes of it that a conflict needs; see `binding_classes`."""
_MOST_FACTS = 5
"""Facts that are given at most."""
_GIVERS = {MemberKind.SLICE: "server", MemberKind.VOLUME: "provider", MemberKind.PORT: "provider"}
"""Kind of members -> what gives them their resources, if that is no host."""


def giver(role: Role) -> str:
    """What gives a member its resources: a host, a server that offers slices, or a provider."""
    return _GIVERS.get(MemberKind(role.kind), "host")


def conflict_facts(
    built: BuiltProblem, core: tuple[Element, ...], binding: Binding
) -> tuple[Fact, ...]:
    """What the conflict of these elements lacks on this fleet."""
    if all(one.kind == CLOSED for one in core):
        return ()
    part = without_elements(built, frozenset(elements(built)) - frozenset(core))
    lacking = _Lacking(part, core, binding)
    found = tuple(dict.fromkeys(lacking.facts()))[:_MOST_FACTS]
    return found or (Fact(lacking.tried(), None, None),)


@dataclass(eq=False)
class _Lacking:
    """What a problem without a placement lacks, as far as counting shows it."""

    built: BuiltProblem
    core: tuple[Element, ...]
    binding: Binding

    def facts(self) -> Iterator[Fact]:
        """Facts, from those of single hosts to those of all."""
        for lacking in (
            self._without_host,
            self._too_few_members,
            self._too_few_domains,
            self._too_many_in_domains,
            self._uneven,
            self._too_little_in_all,
            self._too_few_places,
            self._without_room_together,
        ):
            found = tuple(lacking())
            yield from found
            if found:
                return

    def tried(self) -> str:
        """The sentence for a conflict of which no count shows that it is one."""
        concerned = dict.fromkeys(
            member
            for one in self._required
            for member in self._described((*one.members, *getattr(one, "others", ())))
        )
        taking = {role.name for role in self.built.request.roles if _takes(role)}
        for member in self.built.request.members:
            if member.role in taking:
                concerned[member] = None
        who = members_text(tuple(concerned) or self.built.request.members)
        return f"every placement of {who} was ruled out: none keeps all of this at once"

    # --- who may be where ------------------------------------------------------------------

    @cached_property
    def _required(self) -> tuple[Primitive, ...]:
        return tuple(
            one
            for one in self.built.problem.primitives
            if one.weight is None and one.policy != CHOICES
        )

    @cached_property
    def _hosts_of(self) -> Mapping[MemberName, Bools]:
        """Member of the request -> [H] hosts that filters and named hosts leave it."""
        problem, hosts = self.built.problem, self.built.terrain.host_count
        limits: dict[MemberName, list[int]] = defaultdict(list)
        named = [one for one in self._required if isinstance(one, OnlyOn | NeverOn)]
        for number, one in enumerate(named):
            for member in one.members:
                limits[member].append(number)
        known: dict[tuple[int, tuple[int, ...]], Bools] = {}
        found: dict[MemberName, Bools] = {}
        for m, member in enumerate(problem.members):
            fixed = int(problem.fixed[m])
            if fixed >= 0:
                mask = np.zeros(hosts, dtype=np.bool_)
                mask[fixed] = True
            else:
                key = int(problem.role_of[m]), tuple(limits[member])
                if key not in known:
                    every = [problem.allowed[key[0]][:hosts]]
                    every += [permitted_hosts(named[n], hosts + 1)[:hosts] for n in key[1]]
                    known[key] = np.logical_and.reduce(every)
                mask = known[key]
            whole = _described(member)
            found[whole] = found[whole] | mask if whole in found else mask
        return found

    @cached_property
    def _moving(self) -> tuple[MemberName, ...]:
        fixed = self.built.request.fixed
        return tuple(one for one in self.built.request.members if one not in fixed)

    def _described(self, members: Iterable[MemberName]) -> tuple[MemberName, ...]:
        return tuple(dict.fromkeys(_described(one) for one in members))

    def _left(self, members: Iterable[MemberName]) -> Bools:
        """[H] the hosts that are left to any of the members."""
        masks = {id(mask): mask for mask in (self._hosts_of[one] for one in members)}
        nowhere = np.zeros(self.built.terrain.host_count, dtype=np.bool_)
        return np.asarray(np.logical_or.reduce([nowhere, *masks.values()]))

    def _who(self, members: Iterable[MemberName]) -> str:
        """The flavors of the members, or their roles: `m1.small and db`."""
        request = self.built.request
        roles = dict.fromkeys(one.role for one in members)
        names = {role.name: role.flavor or role.name for role in request.roles}
        return " and ".join(dict.fromkeys(names[role] for role in roles))

    def _roles(self, members: Iterable[MemberName]) -> str:
        return " and ".join(dict.fromkeys(one.role for one in self._described(members)))

    def _giver(self, members: Iterable[MemberName]) -> str:
        request = self.built.request
        kinds = {giver(one) for member in members for one in request.role_of(member).choices}
        return kinds.pop() if len(kinds) == 1 else "host"

    # --- what lacks ------------------------------------------------------------------------

    def _without_host(self) -> Iterator[Fact]:
        """Members for whom nothing is left."""
        groups: dict[str, list[MemberName]] = defaultdict(list)
        for member in self._moving:
            if not self._hosts_of[member].any():
                groups[member.role].append(member)
        # A single policy asks for domains, in words of its own.
        levels = {
            str(Level(getattr(rule.policy, "tree", DEFAULT_TREE), level))
            for rule in self.built.rules
            if (level := getattr(rule.policy, "level", None))
        }
        noun = levels.pop() if len(self.core) == 1 and len(levels) == 1 else None
        for role, some in groups.items():
            scarce = tuple(self._too_few_devices(role, len(some)))
            where = f"{noun or self._giver(some)}s usable for {self._who(some)}"
            if Element(DEVICES, role) in self.core:
                where = f"hosts that serve all of one {role}"
            usable = Fact(where, 0, 1)
            yield from scarce or (usable,)

    def _too_few_devices(self, role: str, count: int) -> Iterator[Fact]:
        """Fewer providers have room for a group of a role than there are members."""
        proof, groups = self.built.problem.proof, self.binding.get(groups_key(role), frozenset())
        if proof is None or role not in self.built.problem.roles:
            return
        devices = proof.devices
        for slot in proof.requirements[self.built.problem.roles.index(role)].slots:
            if slot.group in groups and slot.amounts:
                able = slot.own | slot.lends
                each = [np.maximum(devices.free[able, k], 0) // n for k, n in slot.amounts]
                places = int(np.minimum.reduce(each).sum())
                if places < count:
                    yield Fact(f"places for {slot.label}", places, count)

    def _too_few_members(self) -> Iterator[Fact]:
        """Policies that so few members cannot meet on any fleet."""
        for one in self._required:
            count, needed = len(self._described(one.members)), 0
            if isinstance(one, AtLeastDomains):
                needed = one.limit
            if isinstance(one, AtMostTogether) and one.limit < one.domains:
                needed = count - one.limit + one.domains
            if count < needed:
                yield Fact(f"members of {self._roles(one.members)}", count, needed)

    def _too_few_domains(self) -> Iterator[Fact]:
        """Fewer domains are left to the members of a policy than it needs."""
        for one in self._required:
            if not isinstance(one, AtMost | AtLeastDomains | AtMostTogether | Apart):
                continue
            members = self._described((*one.members, *getattr(one, "others", ())))
            needed = 2 if isinstance(one, Apart) else domains_needed(one, len(members))
            left = self._domains(one, self._left(members))
            if len(left) < needed:
                yield Fact(f"{one.level}s usable for {self._who(members)}", len(left), needed)

    def _domains(
        self, one: AtMost | AtLeastDomains | AtMostTogether | Apart | Skew, hosts: Bools
    ) -> Ints:
        numbers = self.built.problem.domains[one.level][: len(hosts)][hosts]
        return np.unique(numbers[numbers >= 0])

    def _too_many_in_domains(self) -> Iterator[Fact]:
        """Members that share one domain, and of which some policy wants several."""
        together: dict[object, list[SameDomain]] = defaultdict(list)
        for one in self._required:
            if isinstance(one, SameDomain):
                together[one.level].append(one)
        for one in self._required:
            if not isinstance(one, AtMost | AtMostTogether | AtLeastDomains | Apart):
                continue
            if JoinedMembers.by(together[one.level]).violate(one):
                many = domains_text(one.level, max(domains_needed(one, len(one.members)), 2))
                who = members_text(self._described((*one.members, *getattr(one, "others", ()))))
                yield Fact(f"{who} cannot be in 1 {one.level} and in {many}", None, None)

    def _uneven(self) -> Iterator[Fact]:
        """Members that cannot be as even over their domains as they must."""
        for one in self._required:
            if not isinstance(one, Skew) or self.built.problem.choices:
                continue
            count, domains = len(one.members), len(one.domains)
            left = self._domains(one, self._left(self._described(one.members)))
            if domains and one.limit == 0 and count % domains:
                text = f"{one.level}s over which {members_text(one.members)} cannot be even"
                yield Fact(text, domains, None)
            elif set(one.domains) - set(left.tolist()) and count > one.limit * len(left):
                each = f"so none may hold more than {one.limit}"
                who = self._who(one.members)
                yield Fact(f"a {one.level} that counts has no room for {who}, {each}", None, None)

    def _too_little_in_all(self) -> Iterator[Fact]:
        """Less is free of a class, on all hosts that are left, than all members take of it."""
        problem, terrain = self.built.problem, self.built.terrain
        if problem.choices:
            return
        takers: list[int] = problem.to_place.tolist()
        for k, name in enumerate(terrain.classes):
            some = [m for m in takers if problem.demand[problem.role_of[m], k] > 0]
            members = [problem.members[m] for m in some]
            needed = sum(int(problem.demand[problem.role_of[m], k]) for m in some)
            hosts = self._left(members)
            if (
                self._binds(members, name)
                and (have := self._amount(members, hosts, name, k)) < needed
            ):
                where = f"{self._giver(members)}s usable for {self._who(members)}"
                text = (
                    f"{name} of {where} when empty"
                    if terrain.emptied
                    else f"{name} free on {where}"
                )
                yield Fact(text, have, needed)

    def _binds(self, members: Iterable[MemberName], name: str) -> bool:
        """Whether the conflict needs the class for every role of the members."""
        return all(
            name in self.binding.get(role, ()) or self._of_group(role, name)
            for role in {one.role for one in members}
        )

    def _of_group(self, role: str, name: str) -> bool:
        groups = next(one.groups for one in self.built.request.roles if one.name == role)
        return any(name in one.resources for one in groups)

    def _amount(self, members: Iterable[MemberName], hosts: Bools, name: str, k: int) -> int:
        """What is free of a class for members on some hosts; what several share counts once."""
        problem = self.built.problem
        proof = problem.proof
        if proof is None or name not in proof.devices.classes:
            return int(np.maximum(problem.free[: len(hosts), k][hosts], 0).sum())
        devices = proof.devices
        row, position, borrowed = devices.accessible
        number, gives = devices.classes.index(name), np.zeros(len(row), dtype=np.bool_)
        for role in {problem.roles.index(one.role) for one in members}:
            for slot in proof.requirements[role].slots:
                if any(one == number for one, _ in slot.amounts):
                    gives |= np.where(borrowed, slot.lends[position], slot.own[position])
        free = devices.free[np.unique(position[hosts[row] & gives]), number]
        return int(np.maximum(free, 0).sum())

    def _too_few_places(self) -> Iterator[Fact]:
        """Fewer members of a role fit, host by host and alone, than there are."""
        problem = self.built.problem
        if problem.choices:
            return
        free = np.maximum(problem.free[: self.built.terrain.host_count], 0)
        for number in range(len(problem.roles)):
            demand, mine = problem.demand[number], problem.role_of[problem.to_place] == number
            members = [problem.members[m] for m in problem.to_place[mine].tolist()]
            if not (members and demand.any()):
                continue
            hosts = self._left(members)
            each = (free[hosts][:, demand > 0] // demand[demand > 0]).min(axis=1)
            have = int(np.minimum(each, len(members)).sum())
            if have < len(members):
                bound = self.binding.get(_described(members[0]).role, frozenset())
                taken = [
                    f"{demand[k]} {name}"
                    for k, name in enumerate(problem.classes)
                    if name in bound and demand[k]
                ]
                of = f" of {' and '.join(taken)}" if taken else ""
                text = f"places{of} on {self._giver(members)}s usable for {self._who(members)}"
                yield Fact(text, have, len(members))

    def _without_room_together(self) -> Iterator[Fact]:
        """Members that share a domain, and no domain has room for all of them."""
        problem = self.built.problem
        if problem.choices:
            return
        hosts = self.built.terrain.host_count
        free = np.maximum(problem.free[:hosts], 0)
        number = problem.position_of
        for one in self._required:
            if not isinstance(one, SameDomain):
                continue
            domains = problem.domains[one.level][:hosts]
            size = int(domains.max(initial=-1)) + 1
            fits = np.ones(size, dtype=np.bool_)
            for member in one.members:
                there = domains[self._hosts_of[member]]
                fits &= np.bincount(there[there >= 0], minlength=size) > 0
            moving = [number[m] for m in one.members if problem.fixed[number[m]] < 0]
            needed = problem.demand[problem.role_of[moving]].sum(axis=0)
            left = self._left(problem.members[m] for m in moving) & (domains >= 0)
            for k in np.flatnonzero(needed).tolist():
                sums = np.bincount(domains[left], weights=free[left, k], minlength=size)
                fits &= sums >= needed[k]
            if not fits.any():
                text = f"{one.level}s with room for {members_text(one.members)}"
                yield Fact(text, 0, 1)


def _described(member: MemberName) -> MemberName:
    """The member of the request for which a member of the problem stands."""
    return MemberName(role_described(member.role), member.index)


def _takes(role: Role) -> bool:
    return any(one.resources or one.groups for one in role.choices)
