"""Paths in the names of roles, by which groups and their copies are named.

A role in a group is called `east/web`; where the group has copies, their numbers are steps of their
own: `east/0/web`. Heat's nested stacks and groups give the same names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def is_within(role: str, name: str) -> bool:
    """Whether a role is the named one, or in the group or copy of that name.

    A name may leave out numbers: `east/web` is that role of every copy of `east`.
    """
    wanted = name.split("/")
    found = 0
    for step in role.split("/"):
        if found == len(wanted):
            return True
        if step == wanted[found]:
            found += 1
        elif not step.isdigit():
            return False
    return found == len(wanted)


@dataclass(slots=True, eq=False)
class PathTree:
    """Names of roles, groups and copies by their steps, to find those that a role is within."""

    name: str = ""
    """The name that ends here; empty: none does."""
    below: dict[str, PathTree] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Iterable[str]) -> PathTree:
        """The tree of these names."""
        tree = cls()
        for name in names:
            at = tree
            for step in name.split("/"):
                at = at.below.setdefault(step, cls())
            at.name = name
        return tree

    def names_of(self, role: str) -> frozenset[str]:
        """The names that the role is within; see `is_within`."""
        found, reached = set[str](), {self}
        for step in role.split("/"):
            further = {at.below[step] for at in reached if step in at.below}
            found |= {at.name for at in further if at.name}
            reached = further | reached if step.isdigit() else further
        return frozenset(found)


def is_known(name: str, roles: Iterable[str]) -> bool:
    """Whether one of the roles has the name, or is in a group or copy that has it."""
    return any(is_within(role, name) for role in roles)


def group_of(role: str) -> str:
    """The group, or its copy, that a role is directly in: `east/0` for `east/0/web`."""
    return role.rpartition("/")[0]


def names_above(role: str) -> tuple[str, ...]:
    """The role's own name and those of all groups and copies that it is in."""
    steps = role.split("/")
    return tuple("/".join(steps[:length]) for length in range(1, len(steps) + 1))
