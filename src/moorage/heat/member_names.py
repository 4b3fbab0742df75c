"""The names of members in a template: text, or a function of parameters that a stack is passed.

In a group the index variable is in the name. Heat gives the members of an autoscaling group no
number: their names are those of the role, which mean any member.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeAlias

STACK: Final = "moorage_stack"
ROLE: Final = "moorage_role"
MEMBER_INDEX: Final = "moorage_index"
FLAVORS: Final = "moorage_flavors"
PASSED_PARAMETERS: Final = {
    STACK: ("string", "Path of this stack; written by Moorage.", ""),
    ROLE: ("string", "The same without the innermost group's number; written by Moorage.", ""),
    MEMBER_INDEX: ("string", "That number in brackets; written by Moorage.", ""),
}
"""Parameters passed to a nested template -> their types, descriptions and defaults."""

NamePart: TypeAlias = "str | dict[str, str]"
"""Text, or a `get_param` function."""
Name: TypeAlias = "str | dict[str, list[object]]"
"""Text, or a `list_join` function."""


class Numbering(Enum):
    """How the members of a definition are named."""

    INDEX = "index"
    """By role and index."""
    SEPARATE = "separate"
    """Each is the only member of a role of its own."""
    ANY = "any"
    """By role: their numbers in the stack are not those in the ensemble."""


@dataclass(frozen=True, slots=True)
class ServerName:
    """A server's role and member name."""

    role: Name
    member: tuple[NamePart, ...]
    several: bool = False
    """Whether the index variable of an outer group is in the role, so that it is several."""


@dataclass(frozen=True, slots=True)
class Naming:
    """The names in one template; `stack` and `role` are prefixes of the names there."""

    stack: tuple[NamePart, ...]
    role: tuple[NamePart, ...]
    index: NamePart

    def server(self, name: str, numbering: Numbering) -> ServerName:
        """The name of a server."""
        separate = numbering is Numbering.SEPARATE
        role = (*(self.stack if separate else self.role), name)
        return _named(role, self.index, numbering)

    def grouped(self, name: str, variable: str, numbering: Numbering) -> ServerName:
        """The name of a group's servers; `variable` stands for the index, if they have one.

        The name of a group inside others ends with their variables: `pods/%index%`.
        """
        separate = numbering is Numbering.SEPARATE
        role = (*self.stack, f"{name}/{variable}" if separate else name)
        named = _named(role, f"[{variable}]" if variable else "", numbering)
        return replace(named, several="/" in name)

    def below(self, name: str) -> dict[str, Name]:
        """The parameters passed to a nested stack."""
        return {
            STACK: joined(*self.stack, name),
            ROLE: joined(*self.role, name),
            MEMBER_INDEX: joined(self.index),
        }

    def below_group(self, name: str, variable: str) -> dict[str, Name]:
        """The parameters passed to each nested stack of a group."""
        return {
            STACK: joined(*self.stack, f"{name}/{variable}"),
            ROLE: joined(*self.stack, name),
            MEMBER_INDEX: f"[{variable}]" if variable else "",
        }


def _named(role: tuple[NamePart, ...], index: NamePart, numbering: Numbering) -> ServerName:
    if numbering is Numbering.SEPARATE:
        index = "[0]"
    elif numbering is Numbering.ANY:
        index = ""
    return ServerName(joined(*role), (*role, index))


def _parameter(name: str) -> dict[str, str]:
    return {"get_param": name}


AT_ROOT: Final = Naming((), (), "[0]")
NESTED: Final = Naming((_parameter(STACK), "/"), (_parameter(ROLE), "/"), _parameter(MEMBER_INDEX))


def joined(*pieces: NamePart) -> Name:
    """Plain text if all pieces are text, else a function that joins them."""
    merged: list[NamePart] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    if len(merged) == 1 and isinstance(merged[0], str):
        return merged[0]
    return {"list_join": ["", merged]}
