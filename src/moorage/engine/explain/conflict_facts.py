"""Facts of the fleet that a conflict's needs run into: what is there is less than what is needed.

They are read from the problem of the conflict alone, so they name what its own elements leave. A
fact that contradicts no need is not given; where counting shows none, a sentence says that no
placement was found by trying all.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.explain import Element, Fact
from moorage.domain.member_names import MemberName
from moorage.domain.topology import DEFAULT_TREE, Level
from moorage.engine.explain.conflict_classes import groups_key
from moorage.engine.explain.domain_facts import domains_with_too_little, domains_without_room
from moorage.engine.explain.elements import DEVICES, elements, without_elements
from moorage.engine.explain.hosts_by_element import narrowing_facts
from moorage.engine.explain.member_hosts import UsableHosts, described, giver_of
from moorage.policies.levels import domains_text, members_text
from moorage.policies.primitives import (
    Apart,
    AtLeastDomains,
    AtMost,
    AtMostTogether,
    SameDomain,
    Skew,
)
from moorage.policies.shared_domains import JoinedMembers, domains_needed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.engine.joint.build import BuiltProblem

    Bools: TypeAlias = NDArray[np.bool_]
    Ints: TypeAlias = NDArray[np.int64]

Binding: TypeAlias = "Mapping[str, frozenset[str]]"
"""Role -> the resource classes of it that a conflict needs; see `binding_classes`."""
_MOST_FACTS = 5
"""Facts that are given at most."""


def conflict_facts(
    built: BuiltProblem, core: tuple[Element, ...], binding: Binding
) -> tuple[Fact, ...]:
    """What the conflict of these elements lacks on this fleet."""
    part = without_elements(built, frozenset(elements(built)) - frozenset(core))
    lacking = _Lacking(UsableHosts(part, built), core, binding)
    found = tuple(dict.fromkeys(lacking.facts()))
    if len(found) > _MOST_FACTS:
        # First what contradicts a need, then what leads to it.
        found = tuple(sorted(found, key=lambda one: one.needed is None))[:_MOST_FACTS]
    return found or (Fact(lacking.tried(), None, None),)


@dataclass(eq=False)
class _Lacking:
    """What a problem without a placement lacks, as far as counting shows it."""

    usable: UsableHosts
    core: tuple[Element, ...]
    binding: Binding

    @property
    def built(self) -> BuiltProblem:
        """The problem of the conflict."""
        return self.usable.built

    def facts(self) -> Iterator[Fact]:
        """Facts, from those of single hosts to those of all."""
        for lacking in (
            self._without_host,
            self._too_few_members,
            self._too_few_domains,
            self._too_many_in_domains,
            self._uneven,
            lambda: domains_without_room(self.usable),
            self._too_little_in_all,
            self._too_few_places,
            self._too_few_places_in_all,
            lambda: domains_with_too_little(self.usable),
        ):
            found = tuple(lacking())
            yield from found
            if found:
                return

    def tried(self) -> str:
        """The sentence for a conflict of which no count shows that it is one."""
        concerned = dict.fromkeys(
            member
            for one in self.usable.required
            for member in self.usable.of_request((*one.members, *getattr(one, "others", ())))
        )
        taking = {role.name for role in self.built.request.roles if _takes(role)}
        for member in self.built.request.members:
            if member.role in taking:
                concerned[member] = None
        who = members_text(tuple(concerned) or self.built.request.members)
        return f"every placement of {who} was ruled out: none keeps all of this at once"

    # --- what lacks ------------------------------------------------------------------------

    def _without_host(self) -> Iterator[Fact]:
        """Members for whom nothing is left."""
        groups: dict[str, list[MemberName]] = defaultdict(list)
        for member in self.usable.moving:
            if not self.usable.hosts_of[member].any():
                groups[member.role].append(member)
        # A single policy asks for domains, in words of its own.
        levels = {
            str(Level(getattr(rule.policy, "tree", DEFAULT_TREE), level))
            for rule in self.built.rules
            if (level := getattr(rule.policy, "level", None))
        }
        noun = levels.pop() if len(self.core) == 1 and len(levels) == 1 else None
        for role, some in islice(groups.items(), _MOST_FACTS):
            scarce = tuple(self._too_few_devices(role, len(some)))
            yield from () if scarce else narrowing_facts(self.usable, self.core, some)
            where = f"{noun or self.usable.giver(some)}s usable for {self.usable.who(some)}"
            if Element(DEVICES, role) in self.core:
                where = f"hosts that serve all of one {role}"
            usable = Fact(where, 0, 1)
            yield from scarce or (*self._largest_hosts(role), usable)

    def _largest_hosts(self, role: str) -> Iterator[Fact]:
        """What the largest host gives one member of a class of which no host has enough."""
        terrain, hosts = self.built.terrain, self.built.of_kind
        asked = self.built.request.role_of(described(MemberName(role, 0)))
        plain = not asked.alternatives and terrain.devices is None
        if not plain or giver_of(asked) != "host" or not hosts.any():
            return
        for k, name in enumerate(terrain.classes):
            amount = asked.resources.get(name, 0)
            if name not in self.binding.get(role, ()):
                continue
            most = int(np.minimum(terrain.capacity[hosts, k], terrain.max_unit[hosts, k]).max())
            if most < amount:
                yield Fact(f"the largest host gives one server {most} {name}", None)

    def _too_few_devices(self, role: str, count: int) -> Iterator[Fact]:
        """No provider has enough for a group of a role, or fewer have than there are members."""
        proof, groups = self.built.problem.proof, self.binding.get(groups_key(role), frozenset())
        if proof is None or role not in self.built.problem.roles:
            return
        devices, bound = proof.devices, self.binding.get(role, frozenset())
        where = (
            "of one provider when empty" if self.built.terrain.emptied else "free of one provider"
        )
        for slot in proof.requirements[self.built.problem.roles.index(role)].slots:
            amounts = [(devices.classes[k], k, n) for k, n in slot.amounts]
            of_group = slot.group in groups
            if not (amounts and (of_group or any(name in bound for name, _, _ in amounts))):
                continue
            able = slot.own | slot.lends
            free = [np.maximum(devices.free[able, k], 0) for _, k, _ in amounts]
            most = [int(some.max(initial=0)) for some in free]
            lacking = [
                Fact(f"most {name} {where}, for {slot.label}", have, n)
                for (name, _, n), have in zip(amounts, most, strict=True)
                if 0 < have < n
            ]
            yield from lacking
            each = [some // n for some, (_, _, n) in zip(free, amounts, strict=True)]
            places = int(np.minimum.reduce(each).sum())
            if of_group and places < count and not lacking:
                yield Fact(f"places for {slot.label}", places, count)

    def _too_few_members(self) -> Iterator[Fact]:
        """Policies that so few members cannot meet on any fleet."""
        for one in self.usable.required:
            count, needed = len(self.usable.of_request(one.members)), 0
            if isinstance(one, AtLeastDomains):
                needed = one.limit
            if isinstance(one, AtMostTogether) and one.limit < one.domains:
                needed = count - one.limit + one.domains
            if count < needed:
                yield Fact(f"members of {self.usable.roles(one.members)}", count, needed)

    def _too_few_domains(self) -> Iterator[Fact]:
        """Fewer domains are left to the members of a policy than it needs."""
        for one in self.usable.required:
            if not isinstance(one, AtMost | AtLeastDomains | AtMostTogether | Apart):
                continue
            members = self.usable.of_request((*one.members, *getattr(one, "others", ())))
            needed = 2 if isinstance(one, Apart) else domains_needed(one, len(members))
            left = self.usable.domains(one.level, self.usable.left(members))
            if len(left) < needed:
                yield Fact(f"{one.level}s usable for {self.usable.who(members)}", len(left), needed)
            elif isinstance(one, AtMost):
                yield from self._too_few_domains_for_some(one, members)

    def _too_few_domains_for_some(
        self, one: AtMost, members: tuple[MemberName, ...]
    ) -> Iterator[Fact]:
        """Fewer domains are left to a part of the members, as to those of one kind."""
        for hosts in self.usable.different(members):
            some = [m for m in members if not (self.usable.hosts_of[m] & ~hosts).any()]
            left, needed = self.usable.domains(one.level, hosts), domains_needed(one, len(some))
            if len(left) < needed:
                yield Fact(f"{one.level}s usable for {self.usable.who(some)}", len(left), needed)

    def _too_many_in_domains(self) -> Iterator[Fact]:
        """Members that share one domain, and of which some policy wants several."""
        together: dict[object, list[SameDomain]] = defaultdict(list)
        for one in self.usable.required:
            if isinstance(one, SameDomain):
                together[one.level].append(one)
        for one in self.usable.required:
            if not isinstance(one, AtMost | AtMostTogether | AtLeastDomains | Apart):
                continue
            if JoinedMembers.by(together[one.level]).violate(one):
                many = domains_text(one.level, max(domains_needed(one, len(one.members)), 2))
                who = members_text(
                    self.usable.of_request((*one.members, *getattr(one, "others", ())))
                )
                yield Fact(f"{who} cannot be in 1 {one.level} and in {many}", None, None)

    def _uneven(self) -> Iterator[Fact]:
        """Members that cannot be as even over their domains as they must."""
        for one in self.usable.required:
            if not isinstance(one, Skew) or self.built.problem.choices:
                continue
            count, domains = len(one.members), len(one.domains)
            left = self.usable.domains(
                one.level, self.usable.left(self.usable.of_request(one.members))
            )
            if domains and one.limit == 0 and count % domains:
                some = members_text(self.usable.of_request(one.members))
                text = f"{one.level}s over which {some} cannot be even"
                yield Fact(text, domains, None)
            elif set(one.domains) - set(left.tolist()) and count > one.limit * len(left):
                who = self.usable.who(one.members)
                text = f"places for {who} if no {one.level} holds over {one.limit}"
                none = f"as one {one.level} that counts can hold none"
                yield Fact(f"{text}, {none}", one.limit * len(left), count)

    def _too_little_in_all(self) -> Iterator[Fact]:
        """Less is free of a class, on all hosts that are left, than all members take of it."""
        problem, terrain = self.built.problem, self.built.terrain
        # Members with alternatives may take something else.
        takers = [
            m
            for m in problem.to_place.tolist()
            if described(problem.members[m]) == problem.members[m]
        ]
        for k, name in enumerate(terrain.classes):
            some = [m for m in takers if problem.demand[problem.role_of[m], k] > 0]
            members = [problem.members[m] for m in some]
            needed = sum(int(problem.demand[problem.role_of[m], k]) for m in some)
            hosts = self.usable.left(members)
            if (
                self._binds(members, name)
                and (have := self._amount(members, hosts, name, k)) < needed
            ):
                where = f"{self.usable.giver(members)}s usable for {self.usable.who(members)}"
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
        movers: dict[str, dict[int, list[MemberName]]] = defaultdict(lambda: defaultdict(list))
        for m in problem.to_place.tolist():
            member, number = problem.members[m], int(problem.role_of[m])
            movers[described(member).role][number].append(member)
        for role, parts in movers.items():
            if not all(problem.demand[number].any() for number in parts):
                continue
            members = self.usable.of_request(one for some in parts.values() for one in some)
            # Of each alternative at most so many, whatever is placed beside them.
            have = sum(self._places(number, len(members)) for number in parts)
            if have < len(members):
                of = self._bound_amounts(role, *parts) if len(parts) == 1 else ""
                where = f"{self.usable.giver(members)}s usable for {self.usable.who(members)}"
                yield Fact(f"places{of} on {where}", have, len(members))

    def _places(self, number: int, count: int) -> int:
        """How many of `count` members fit on all hosts, if there were no others."""
        problem, hosts = self.built.problem, self.built.terrain.host_count
        demand = problem.demand[number]
        mine = [m for m in problem.to_place.tolist() if problem.role_of[m] == number]
        left = np.logical_or.reduce([self.usable.of_parts[problem.members[m]] for m in mine])
        free = np.maximum(problem.free[:hosts][left], 0)[:, demand > 0]
        return int(np.minimum((free // demand[demand > 0]).min(axis=1), count).sum())

    def _bound_amounts(self, role: str, number: int) -> str:
        """What a member of a role takes that the conflict needs: ` of 2 VCPU`."""
        problem, bound = self.built.problem, self.binding.get(role, frozenset())
        taken = [
            f"{problem.demand[number, k]} {name}"
            for k, name in enumerate(problem.classes)
            if name in bound and problem.demand[number, k]
        ]
        return f" of {' and '.join(taken)}" if taken else ""

    def _too_few_places_in_all(self) -> Iterator[Fact]:
        """Fewer members of all roles fit, host by host, even if each took the least of any."""
        problem = self.built.problem
        moving = problem.to_place
        if problem.choices or not len(moving):
            return
        hosts = self.built.terrain.host_count
        free = np.maximum(problem.free[:hosts], 0)
        roles = sorted(
            {int(problem.role_of[m]) for m in moving if problem.demand[problem.role_of[m]].any()}
        )
        members = [problem.members[m] for m in moving.tolist() if int(problem.role_of[m]) in roles]
        if len(roles) < 2:  # noqa: PLR2004 - one role is told by itself
            return
        least = problem.demand[roles].min(axis=0)
        taken = least > 0
        if not taken.any():
            return
        each = (free[:, taken] // least[taken]).min(axis=1)[self.usable.left(members)]
        have = int(np.minimum(each, len(members)).sum())
        if have < len(members):
            who = self.usable.who(members)
            where = f"{self.usable.giver(members)}s usable for {who}"
            yield Fact(f"places for {who} together on {where}", have, len(members))


def _takes(role: Role) -> bool:
    return any(one.resources or one.groups for one in role.choices)
