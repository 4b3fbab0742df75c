"""The members of a Heat stack: their paths in it, and which of them stay, leave and come.

A group that numbers its members keeps exactly the numbers of the template. An autoscaling group
gives random names: there only the count matters, and any member may have any of its servers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import InvalidDescription
from moorage.domain.member_names import MemberName
from moorage.usecases.decide.member_places import MemberStatus
from moorage.usecases.ensembles.create import new_members

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.ensembles import Member
    from moorage.heat.expanded_template import ScalingGroup
    from moorage.usecases.decide.member_places import MemberPlaces
    from moorage.usecases.ports import Ids

ANY: Final = "*"
"""Stands for the index in a path."""
_DIGITS: Final = 6
"""Digits of the longest index."""


def role_paths(
    keys: Mapping[MemberName, str], scaling: Mapping[str, ScalingGroup]
) -> Mapping[str, str]:
    """Role -> the path of its members, with `*` for the index.

    A scaling group's role has one even if it has no member by the template.
    """
    empty = {
        role: f"{group.path}/{ANY}{role.removeprefix(str(group.path))}"
        for role, group in scaling.items()
    }
    found = {name.role: _role_path(name, path) for name, path in keys.items()}
    return MappingProxyType(empty | found)


def _role_path(name: MemberName, path: str) -> str:
    """The path with `*` for the step that is the index; the innermost one, as in `heat.paths`."""
    if path == name.role:
        return path
    steps = path.split("/")
    for place in reversed(range(len(steps))):
        rest = "/".join((*steps[:place], *steps[place + 1 :]))
        if steps[place] == str(name.index) and rest == name.role:
            return "/".join((*steps[:place], ANY, *steps[place + 1 :]))
    return path


def heats_names(keys: Mapping[MemberName, str]) -> Mapping[MemberName, MemberName]:
    """Member by the template -> its name by the number that Heat gives it in the stack.

    They differ where removal policies have left out numbers.
    """
    return {name: _heats_name(name, path) for name, path in keys.items()}


def _heats_name(name: MemberName, path: str) -> MemberName:
    steps = path.split("/")
    for place in reversed(range(len(steps))):
        rest = "/".join((*steps[:place], *steps[place + 1 :]))
        if rest == name.role and steps[place].isdecimal() and len(steps[place]) <= _DIGITS:
            return MemberName(name.role, int(steps[place]))
    return name


def unnumbered_roles(
    paths: Mapping[str, str], scaling: Mapping[str, ScalingGroup]
) -> frozenset[str]:
    """The roles whose index is that of a scaling group's member, which Heat does not number."""
    return frozenset(
        role
        for role, path in paths.items()
        if role in scaling and path.startswith(f"{scaling[role].path}/{ANY}")
    )


def member_path(paths: Mapping[str, str], name: MemberName) -> str:
    """Where a member is in its stack."""
    return paths.get(name.role, name.role).replace(ANY, str(name.index))


@dataclass(frozen=True, slots=True)
class StackServers:
    """Servers of a stack by the members they are, as far as they are some role's."""

    numbered: Mapping[MemberName, str]
    unnumbered: Mapping[str, tuple[str, ...]]
    """Role of an autoscaling group -> its servers."""

    @classmethod
    def of(
        cls, paths: Mapping[str, str], scaling: frozenset[str], servers: Mapping[str, str]
    ) -> StackServers:
        """The servers at these paths in the stack; `paths` are those of the roles.

        Members of roles in `scaling` have random names in their paths.

        Raises:
            InvalidDescription: a server is named twice.
        """
        if len(set(servers.values())) < len(servers):
            raise InvalidDescription("a server is named at two paths", path="servers")
        role_of = {path: role for role, path in paths.items()}
        numbered: dict[MemberName, str] = {}
        unnumbered: defaultdict[str, list[str]] = defaultdict(list)
        for path, server in sorted(servers.items()):
            found = _role_and_step(role_of, path)
            if found is None:
                continue
            role, step = found
            if role in scaling:
                unnumbered[role].append(server)
            elif step.isdecimal() and len(step) <= _DIGITS:
                numbered[MemberName(role, int(step))] = server
        return cls(
            MappingProxyType(numbered),
            MappingProxyType({role: tuple(unnumbered[role]) for role in scaling}),
        )


def _role_and_step(role_of: Mapping[str, str], path: str) -> tuple[str, str] | None:
    """The role of which a member is at this path, and the step that is its index."""
    if path in role_of:
        return role_of[path], "0"
    steps = path.split("/")
    for place in reversed(range(len(steps))):
        role = role_of.get("/".join((*steps[:place], ANY, *steps[place + 1 :])))
        if role is not None:
            return role, steps[place]
    return None


def members_after(
    ids: Ids,
    present: Sequence[Member],
    wanted: Iterable[MemberName],
    leaving: Mapping[str, frozenset[MemberName]],
) -> tuple[Member, ...]:
    """The members after an update: of those present who stays, and new ones.

    `wanted` are the names by the template. For a role in `leaving`, whose members have no numbers
    in Heat, only their count matters, and these of them leave.
    """
    by_role: defaultdict[str, list[MemberName]] = defaultdict(list)
    for name in wanted:
        by_role[name.role].append(name)
    known = {member.name: member for member in present}
    names_after: list[MemberName] = []
    for role, names in by_role.items():
        stay = [one for one in known if one.role == role]
        wanted_here = _as_many(names, stay, leaving[role]) if role in leaving else names
        names_after += sorted(wanted_here)
    added = new_members(ids, [name for name in names_after if name not in known])
    every = known | {member.name: member for member in added}
    return tuple(every[name] for name in names_after)


def _as_many(
    wanted: Sequence[MemberName], present: Sequence[MemberName], leaving: frozenset[MemberName]
) -> list[MemberName]:
    """As many names as wanted: those present without those that leave, or with new ones."""
    surplus = len(present) - len(wanted)
    if surplus >= 0:
        return [name for name in present if name not in leaving]
    role = wanted[0].role
    there = set(present)
    free = (MemberName(role, index) for index in range(len(present) + len(wanted)))
    fresh = [name for name in free if name not in there]
    return [*present, *fresh[:-surplus]]


def with_servers(
    members: Sequence[Member],
    servers: StackServers,
    member_places: MemberPlaces,
    hosts: Mapping[str, str],
) -> tuple[Member, ...]:
    """The members with the servers that Heat has for them; `hosts` has the host of each server.

    Servers on no host stay out, as do those of members whose own server is being built. A server
    of a group without numbers becomes a member held on its host, or one without a place, or any.
    """
    given = {
        name: server
        for name, server in servers.numbered.items()
        if server in hosts and member_places.of(name) is not MemberStatus.BUILDING
    }
    for role, some in servers.unnumbered.items():
        taken = {one.server_id for one in members}
        open_ = [
            one.name
            for one in members
            if one.name.role == role
            and one.name not in given
            and member_places.of(one.name) in {MemberStatus.HELD, MemberStatus.UNPLACED}
        ]
        for server in some:
            if server in taken or server not in hosts or not open_:
                continue
            best = min(open_, key=lambda name: _fitness(member_places, name, hosts[server]))
            open_.remove(best)
            given[best] = server
    moved = set(given.values())
    return tuple(
        replace(one, server_id=given[one.name])
        if one.name in given
        else replace(one, server_id=None)
        if one.server_id in moved
        else one
        for one in members
    )


def _fitness(
    member_places: MemberPlaces, name: MemberName, host: str
) -> tuple[bool, bool, MemberName]:
    """The order in which members get a server that stands on this host."""
    place = member_places.places.get(name)
    return place is None or place.host != host, place is not None, name
