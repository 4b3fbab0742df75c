"""Paths of resources in nested stacks, and the role names that follow from them.

A path is the names on the way down; the number of a group's member is a step of its own:
`web_group/0/server`. The innermost group's number becomes the member's index, every other step
stays in the role's name: that path is member 0 of role `web_group/server`, and it remains so
however any group grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from moorage.domain.member_names import MemberName

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """One step of a path; `index` if it is the index of a group's member."""

    name: str
    index: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Path:
    """The path from the root stack to a resource; empty for the root stack itself."""

    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return "/".join(step.name for step in self.steps)

    def __truediv__(self, name: str) -> Path:
        return Path((*self.steps, Step(name)))

    @property
    def parent(self) -> Path:
        """The path of the stack or group that this is in; of the root, the root."""
        return Path(self.steps[:-1])

    def above(self) -> Iterator[Path]:
        """The paths of all stacks and groups that this is in, the innermost first."""
        for length in range(len(self.steps) - 1, -1, -1):
            yield Path(self.steps[:length])

    def member(self, number: int) -> Path:
        """The path of a group's member."""
        return Path((*self.steps, Step(str(number), index=True)))

    def within(self, stack: Path) -> Path:
        """The rest of the path below `stack`."""
        return Path(self.steps[len(stack.steps) :])

    def member_name(self) -> MemberName:
        """Role and index of the resource at this path."""
        last = max((i for i, step in enumerate(self.steps) if step.index), default=-1)
        role = "/".join(step.name for i, step in enumerate(self.steps) if i != last)
        return MemberName(role, int(self.steps[last].name) if last >= 0 else 0)

    def own_name(self) -> MemberName:
        """The only member of a role that has this path for a name.

        So are named the members of a group that are not alike.
        """
        return MemberName(str(self), 0)


ROOT = Path()
