"""Paths in the names of roles, by which groups and their copies are named.

A role in a group is called `east/web`; where the group has copies, their numbers are steps of their
own: `east/0/web`. Heat's nested stacks and groups give the same names.
"""

from __future__ import annotations

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
