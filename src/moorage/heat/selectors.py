"""Selectors as seen from a stack, turned into selectors of the whole ensemble.

In the root stack they are the same. In a nested stack `server` means the server of that stack
only: member 2 of role `web_group/server`, say, when it is the third of its group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.domain.ensembles import Selector

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.ensembles import MemberName
    from moorage.heat.found import Server
    from moorage.heat.paths import Path


class Cast:
    """All servers of a template, by path, role and tag."""

    def __init__(self, servers: Sequence[Server], tags: Mapping[str, frozenset[str]]) -> None:
        """Take every server found, and the tags of every role."""
        self._servers = servers
        self._tags = tags
        self._roles: dict[str, list[MemberName]] = {}
        for server in servers:
            name = server.path.member_name()
            self._roles.setdefault(name.role, []).append(name)

    def below(self, path: Path) -> list[MemberName]:
        """The members at or below a path."""
        return [one.path.member_name() for one in self._servers if one.path.below(path)]

    def of_group(self, group: Path) -> list[MemberName]:
        """The members that say they belong to a server group."""
        return [one.path.member_name() for one in self._servers if group in one.groups]

    def selected(self, selector: Selector, stack: Path) -> list[MemberName]:
        """The members a selector means, seen from a stack; may be none."""
        return [
            one.path.member_name()
            for one in self._servers
            if one.path.below(stack) and self._means(selector, one, stack)
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
        found: dict[Selector, None] = {}
        for name in wanted:
            whole = all(other in wanted for other in self._roles[name.role])
            found[Selector(role=name.role) if whole else Selector(member=name)] = None
        return tuple(found)
