"""Resolves selectors relative to a stack into selectors of the whole ensemble.

In the root stack they are the same. In a nested stack `server` means the server of that stack only:
for example member 2 of role `web_group/server` in the third stack of the group.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from moorage.domain import deadline
from moorage.domain.ensembles import Selector
from moorage.heat.paths import Path

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.member_names import MemberName
    from moorage.heat.expanded_template import Server


class StackMembers:
    """The members at or below one path, indexed by role, member and tag relative to it."""

    def __init__(
        self,
        path: Path,
        members: Sequence[Path],
        names: Mapping[Path, MemberName],
        tags: Mapping[str, frozenset[str]],
    ) -> None:
        self.everyone: list[MemberName] = []
        self.roles: dict[str, list[MemberName]] = {}
        self.members: dict[MemberName, list[MemberName]] = {}
        self.tags: dict[str, list[MemberName]] = {}
        for one in members:
            name, seen = names[one], one.within(path).member_name()
            self.everyone.append(name)
            self.roles.setdefault(seen.role, []).append(name)
            self.members.setdefault(seen, []).append(name)
            for tag in tags[name.role]:
                self.tags.setdefault(tag, []).append(name)

    def selected(self, selector: Selector) -> list[MemberName]:
        """The selected members; may be none."""
        if selector.everyone:
            return self.everyone
        if selector.tag is not None:
            return self.tags.get(selector.tag, [])
        if selector.member is not None:
            return self.members.get(selector.member, [])
        return self.roles.get(selector.role or "", [])


class ServerIndex:
    """Index of all servers of a template; resolved selectors are cached."""

    def __init__(
        self,
        servers: Sequence[Server],
        names: Mapping[Path, MemberName],
        tags: Mapping[str, frozenset[str]],
    ) -> None:
        """Index the servers; `names` are those of the members, `tags` those of every role."""
        self.names = names
        self._tags = tags
        self._size = Counter(one.role for one in names.values())
        self._members = frozenset(names.values())
        self._below: dict[Path, list[Path]] = {}
        self._in_group: dict[Path, list[MemberName]] = {}
        self._views: dict[Path, StackMembers] = {}
        self._found: dict[tuple[Path, Selector], tuple[Selector, ...]] = {}
        for server in servers:
            deadline.check()
            for length in range(len(server.path.steps) + 1):
                above = Path(server.path.steps[:length])
                self._below.setdefault(above, []).append(server.path)
            for group in server.groups:
                self._in_group.setdefault(group, []).append(names[server.path])

    def is_own(self, selector: Selector) -> bool:
        """Whether a selector of the root stack means the same in the ensemble."""
        if selector.member is not None:
            return selector.member in self._members
        return selector.role is None or selector.role in self._size

    def group_members(self, group: Path) -> tuple[Selector, ...]:
        """The members that refer to a server group."""
        return self.selectors_for(self._in_group.get(group, ()))

    def resolve(self, selector: Selector, path: Path) -> tuple[Selector, ...]:
        """The members selected from the stack (or resource) at a path; may be empty."""
        key = (path, selector)
        if key not in self._found:
            self._found[key] = self.selectors_for(self._view(path).selected(selector))
        return self._found[key]

    def _view(self, path: Path) -> StackMembers:
        if path not in self._views:
            self._views[path] = StackMembers(
                path, self._below.get(path, ()), self.names, self._tags
            )
        return self._views[path]

    def selectors_for(self, members: Iterable[MemberName]) -> tuple[Selector, ...]:
        """Selectors for exactly these members: whole roles by name, single members otherwise."""
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
