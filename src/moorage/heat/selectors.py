"""Selectors as seen from a stack, turned into selectors of the whole ensemble.

In the root stack they are the same. In a nested stack `server` means the server of that stack
only: member 2 of role `web_group/server`, say, when it is the third of its group.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from moorage.domain.ensembles import Selector
from moorage.heat.paths import Path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.ensembles import MemberName
    from moorage.heat.found import Server


class Cast:
    """All servers of a template, by path, role and tag."""

    def __init__(self, servers: Sequence[Server], tags: Mapping[str, frozenset[str]]) -> None:
        """Take every server found, and the tags of every role."""
        self._tags = tags
        self._size: dict[str, int] = {}
        self._below: dict[Path, list[Server]] = {}
        self._in_group: dict[Path, list[Server]] = {}
        for server in servers:
            role = server.path.member_name().role
            self._size[role] = self._size.get(role, 0) + 1
            for length in range(len(server.path.steps) + 1):
                self._below.setdefault(Path(server.path.steps[:length]), []).append(server)
            for group in server.groups:
                self._in_group.setdefault(group, []).append(server)

    def below(self, path: Path) -> list[MemberName]:
        """The members at or below a path."""
        return [one.path.member_name() for one in self._below.get(path, ())]

    def of_group(self, group: Path) -> list[MemberName]:
        """The members that say they belong to a server group."""
        return [one.path.member_name() for one in self._in_group.get(group, ())]

    def selected(self, selector: Selector, stack: Path) -> list[MemberName]:
        """The members a selector means, seen from a stack; may be none."""
        return [
            one.path.member_name()
            for one in self._below.get(stack, ())
            if self._means(selector, one, stack)
        ]

    def _means(self, selector: Selector, server: Server, stack: Path) -> bool:
        if selector.everyone:
            return True
        if selector.tag is not None:
            return selector.tag in self._tags[server.path.member_name().role]
        seen = server.path.within(stack).member_name()
        if selector.member is not None:
            return selector.member == seen
        return selector.role == seen.role

    def shortest(self, members: Iterable[MemberName]) -> tuple[Selector, ...]:
        """Selectors for exactly these members: whole roles by name, the others one by one."""
        wanted = dict.fromkeys(members)
        counts = Counter(name.role for name in wanted)
        return tuple(
            dict.fromkeys(
                Selector(role=name.role)
                if counts[name.role] == self._size[name.role]
                else Selector(member=name)
                for name in wanted
            )
        )
