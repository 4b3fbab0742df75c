"""The sides between which a policy holds: roles, groups, or named ones.

A side names roles, groups and copies, and never a single member: for a policy, members of one role
differ by their hosts only. It may also name another ensemble, whose members stay where they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from moorage.domain.ensembles import Selector
from moorage.domain.errors import InvalidDescription
from moorage.domain.references import REFERENCE, referenced
from moorage.domain.role_paths import PathTree, group_of
from moorage.domain.words import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from moorage.domain.member_names import MemberName
    from moorage.policies.contract import Edge

MEMBERS: Final = "members"
ROLES: Final = "roles"
GROUPS: Final = "groups"
Sides: TypeAlias = tuple[frozenset[str], ...]
Between: TypeAlias = str | Sides

REST: Final = "what is in no group"


def split(edge: Edge, between: Between) -> dict[str, Edge]:
    """Side -> those of the members that are on it; sides without members are left out."""
    found: dict[str, list[MemberName]] = {}
    side_of: dict[str, str] = {}
    named = None if isinstance(between, str) else _Named(between)
    for member in edge:
        if member.role not in side_of:
            side_of[member.role] = _side(member.role, between, named)
        if side_of[member.role]:
            found.setdefault(side_of[member.role], []).append(member)
    return {side: tuple(some) for side, some in found.items()}


def single(sides: Mapping[str, Edge]) -> bool:
    """Whether there are several sides, of one member each: then no two members may be together."""
    return len(sides) > 1 and all(len(side) == 1 for side in sides.values())


class _Named:
    """Named sides, by the paths of what they name."""

    def __init__(self, between: Sides) -> None:
        self._number_of: dict[str, int] = {}
        for number, side in enumerate(between):
            for path in filter(None, map(_path, side)):
                self._number_of.setdefault(path, number)
        self._tree = PathTree.of(self._number_of)

    def paths_of(self, role: str) -> frozenset[str]:
        """The paths that mean the role, or a group or copy that it is in."""
        return self._tree.names_of(role)

    def numbers_of(self, role: str) -> list[int]:
        """The numbers of the sides that the role is on, ascending."""
        return sorted({self._number_of[path] for path in self.paths_of(role)})


def _side(role: str, between: Between, named: _Named | None) -> str:
    """The side of a role's members, as a phrase; empty: none."""
    if between == ROLES:
        return role
    if between == GROUPS:
        return group_of(role) or REST
    on = [] if named is None else named.numbers_of(role)
    return " with ".join(sorted(between[on[0]])) if on else ""


def on_side(edge: Edge, side: frozenset[str]) -> Edge:
    """Those of the members that are on a named side."""
    return next(iter(split(edge, (side,)).values()), ())


def opposed(edge: Edge, between: Between) -> Iterator[tuple[str, Edge]]:
    """Each other ensemble in a side, by its id, with the members of the sides beside that one."""
    if isinstance(between, str):
        return
    for i, side in enumerate(between):
        for ensemble in sorted(referenced(side)):
            others = (*between[:i], *between[i + 1 :])
            members = tuple(one for some in split(edge, others).values() for one in some)
            if members:
                yield ensemble, members


def _path(name: str) -> str:
    """The group, copy or role that a side's name means; empty: it means none."""
    return "" if name.startswith(REFERENCE) else Selector.parse(name).group or ""


def check_form(between: Between, path: str) -> None:
    """Check named sides by themselves.

    Raises:
        InvalidDescription: a name that is no role, group or copy, or is on two sides.
    """
    if isinstance(between, str):
        return
    seen: set[str] = set()
    for i, side in enumerate(between):
        where = f"{path}[{i}]"
        for name in sorted(side):
            if not _path(name) and not referenced([name]):
                raise InvalidDescription(
                    f"a side names roles, groups or copies, such as east[1], not {name}", path=where
                )
            if name in seen:
                raise InvalidDescription(f"{name} is on two sides", path=where)
            seen.add(name)


def check_ensembles(between: Sides, path: str) -> None:
    """Check that the first side names no other ensemble, and no other side both it and roles.

    Raises:
        InvalidDescription: it is not so.
    """
    if referenced(between[0]):
        raise InvalidDescription("the first side names roles, groups or copies", path=f"{path}[0]")
    for i, side in enumerate(between[1:], start=1):
        if 0 < len(referenced(side)) < len(side):
            raise InvalidDescription(
                "a side names roles, groups and copies, or else other ensembles",
                path=f"{path}[{i}]",
            )


def check_roles(between: Between, roles: Collection[str], path: str) -> None:
    """Check that named sides name roles that there are, and each role on one side only.

    Raises:
        InvalidDescription: they do not.
    """
    if not isinstance(between, tuple):
        return
    named = _Named(between)
    known = frozenset[str]().union(*map(named.paths_of, roles))
    for i, side in enumerate(between):
        for name in sorted(side):
            if _path(name) and _path(name) not in known:
                raise InvalidDescription(
                    f"{name} is no role, group or copy{did_you_mean(name, roles)}",
                    path=f"{path}[{i}]",
                )
    for role in sorted(roles):
        on = named.numbers_of(role)
        if len(on) > 1:
            raise InvalidDescription(f"role {role} is on two sides", path=f"{path}[{on[1]}]")
