"""Names of members: a role and a number."""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Final

from moorage.domain.errors import InvalidDescription

_MEMBER: Final = re.compile(r"(?P<role>[^\[\]]+)\[(?P<index>\d{1,6})\]")


@total_ordering
class MemberName:
    """`db[1]`: the second member of role `db`. Immutable; ordered by role, then by number.

    No dataclass: msgspec writes those as objects, which cannot be keys in JSON.
    """

    __slots__ = ("_both", "index", "role")

    def __init__(self, role: str, index: int) -> None:
        self.role: Final = role
        self.index: Final = index
        self._both: Final = (role, index)

    def __eq__(self, other: object) -> bool:
        return self._both == other._both if isinstance(other, MemberName) else NotImplemented

    def __lt__(self, other: MemberName) -> bool:
        return self._both < other._both

    def __hash__(self) -> int:
        return hash(self._both)

    def __repr__(self) -> str:
        return f"MemberName(role={self.role!r}, index={self.index})"

    def __str__(self) -> str:
        return f"{self.role}[{self.index}]"

    @classmethod
    def parse(cls, text: str) -> MemberName:
        """Read `role[i]`.

        Raises:
            InvalidDescription: another form.
        """
        match = _MEMBER.fullmatch(text)
        if match is None:
            raise InvalidDescription(
                f"not a member: {text!r}; write a role and a number, such as 'db[0]'", path="member"
            )
        return cls(match["role"], int(match["index"]))
