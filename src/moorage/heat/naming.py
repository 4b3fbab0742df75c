"""Member names for Nova's metadata, for servers anywhere in the tree of stacks.

In the root template a name is plain text, with the index variable inside a group. A nested template
serves many stacks: there the name is computed from parameters that the parent template passes, by
the rules of `paths`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

STACK: Final = "moorage_stack"
ROLE: Final = "moorage_role"
INDEX: Final = "moorage_index"
PASSED_PARAMETERS: Final = {
    STACK: "Path of this stack; written by Moorage.",
    ROLE: "The same without the innermost group's number; written by Moorage.",
    INDEX: "That number; written by Moorage.",
}
"""Parameters passed to a nested template -> their descriptions."""
ANY_INDEX: Final = ""
"""The index of members of a group that does not number them, such as an autoscaling group."""

NamePart: TypeAlias = "str | dict[str, str]"
"""Text, or a `get_param` function."""
Name: TypeAlias = "str | dict[str, list[object]]"
"""Text, or a `list_join` function."""


@dataclass(frozen=True, slots=True)
class Naming:
    """The names in one template; `stack` and `role` are prefixes of the names there."""

    stack: tuple[NamePart, ...]
    role: tuple[NamePart, ...]
    index: NamePart

    def server(self, name: str) -> Name:
        """The member name of a server."""
        return joined(*self.role, f"{name}[", self.index, "]")

    def grouped(self, name: str, variable: str) -> Name:
        """The member name of a group's servers; `variable` stands for the index."""
        return joined(*self.stack, f"{name}[{variable}]")

    def below(self, name: str) -> dict[str, Name]:
        """The parameters passed to a nested stack."""
        return {
            STACK: joined(*self.stack, name),
            ROLE: joined(*self.role, name),
            INDEX: joined(self.index),
        }

    def below_group(self, name: str, variable: str) -> dict[str, Name]:
        """The parameters passed to each nested stack of a group."""
        return {
            STACK: joined(*self.stack, f"{name}/{variable}"),
            ROLE: joined(*self.stack, name),
            INDEX: variable,
        }


def _parameter(name: str) -> dict[str, str]:
    return {"get_param": name}


AT_ROOT: Final = Naming((), (), "0")
NESTED: Final = Naming((_parameter(STACK), "/"), (_parameter(ROLE), "/"), _parameter(INDEX))


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
