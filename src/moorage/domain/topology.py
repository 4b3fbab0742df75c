"""Failure and network domains: parallel trees over the fleet's hosts.

A *tree* (`location`, `power`, `network`, ...) has an ordered list of *levels* from the
top down (`zone`, `rack`); every domain has one level, and its parent has a higher one.
A host (a root provider) is attached to at most one domain per tree and is itself the
lowest level, `host`, of every tree. Nested providers inherit their root's place. Below it is the
level `server`: a server that offers slices is a domain of it, and stands on its host.

Distance in a tree: 0 on the same host; otherwise the number of levels, `host` included,
at which the two hosts differ, that is one plus the number of levels between `host` and
the lowest level at which they share a domain. So with levels zone > rack: same rack 1,
same zone 2, otherwise 3. Hosts without a domain at a level share none there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from moorage.domain.errors import InvalidDescription, UnknownName
from moorage.domain.words import did_you_mean

HOST: Final = "host"
"""The level of the hosts themselves, in every tree."""

SERVER: Final = "server"
"""The level of servers that offer slices, in every tree; hosts themselves have no domain there."""

OWN_LEVELS: Final = frozenset({HOST, SERVER})
"""The levels that every tree has by itself."""

DEFAULT_TREE: Final = "location"


def unknown_level(name: str, known: Iterable[str], *, path: str) -> UnknownName:
    """The error of a level that there is not: it names the most similar one, or else all."""
    known = tuple(known)
    error = UnknownName("level", name, path=path, known=known)
    if not did_you_mean(name, known):
        error.message += f"; there are: {', '.join(known)}"
        error.args = (error.message,)
    return error


@dataclass(frozen=True, slots=True, order=True)
class Level:
    """A level of a tree.

    With `or_below`, a host that stands in no domain of the level counts to the highest domain
    below it that holds it, at the latest to itself: so every host has a domain, and two hosts
    share one exactly if they share one at the level or below.
    """

    tree: str
    name: str
    or_below: bool = False

    def __str__(self) -> str:
        return self.name if self.tree == DEFAULT_TREE else f"{self.tree}:{self.name}"


@dataclass(frozen=True, slots=True)
class Domain:
    """A node of a tree; `name` is unique within it. `line` is where a file declared it."""

    name: str
    level: str
    tree: str = DEFAULT_TREE
    parent: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Attachment:
    """The host named `host` (a root provider's name) stands in `domain` of `tree`."""

    host: str
    domain: str
    tree: str = DEFAULT_TREE
    line: int | None = None


@dataclass(frozen=True)
class Topology:
    """All trees, checked. Build it with `Topology.build`."""

    levels: Mapping[str, tuple[str, ...]]
    """Tree -> its levels from the top down, without `host`."""
    domains: Mapping[tuple[str, str], Domain]
    """(tree, name) -> domain."""
    attachments: Mapping[tuple[str, str], str]
    """(tree, host name) -> name of the domain it stands in."""
    lines: Mapping[tuple[str, str], int] = field(default_factory=dict, compare=False, repr=False)
    """(tree, host name) -> line of the file that says so; only where one was just read."""

    @classmethod
    def build(
        cls,
        levels: Mapping[str, tuple[str, ...]],
        domains: Iterable[Domain],
        attachments: Iterable[Attachment] = (),
    ) -> Topology:
        """Check and index a topology.

        Raises:
            InvalidDescription: a level called `host`, a level or domain twice, an unknown or
                cyclic parent, a level out of order, a host attached twice in one tree; `line`
                tells where when the input knew.
        """
        for tree, names in levels.items():
            _check_levels(tree, names)
        known: dict[tuple[str, str], Domain] = {}
        for domain in domains:
            _check_level(domain, levels)
            if known.setdefault((domain.tree, domain.name), domain) is not domain:
                raise InvalidDescription(
                    f"domain {domain.name} is declared twice in tree {domain.tree}",
                    path=f"domains.{domain.name}",
                    line=domain.line,
                )
        for domain in known.values():
            _check_parent(domain, known, levels)
        attached: dict[tuple[str, str], str] = {}
        lines: dict[tuple[str, str], int] = {}
        for one in attachments:
            if (one.tree, one.domain) not in known:
                raise InvalidDescription(
                    f"host {one.host} is attached to unknown domain {one.domain}",
                    path=f"attachments.{one.host}",
                    line=one.line,
                )
            if attached.setdefault((one.tree, one.host), one.domain) != one.domain:
                raise InvalidDescription(
                    f"host {one.host} is attached twice in tree {one.tree}",
                    path=f"attachments.{one.host}",
                    line=one.line,
                )
            if one.line is not None:
                lines[one.tree, one.host] = one.line
        return cls(levels=dict(levels), domains=known, attachments=attached, lines=lines)

    def only(self, shown: Callable[[Domain], bool]) -> Topology:
        """The levels, and the domains for which `shown` is true, without hosts.

        A domain whose parent is left out stands below the nearest one above it that is not.
        """

        def parent(one: Domain) -> str | None:
            if one.parent is None:
                return None
            above = self.domains[one.tree, one.parent]
            return above.name if shown(above) else parent(above)

        domains = {
            key: replace(one, parent=parent(one)) for key, one in self.domains.items() if shown(one)
        }
        return Topology(levels=self.levels, domains=domains, attachments={})

    def find_level(
        self,
        name: str,
        tree: str = DEFAULT_TREE,
        *,
        path: str = "level",
        also: tuple[str, ...] = (),
    ) -> Level:
        """The level of that name; `host` and `server` exist in every tree.

        `path` is the place of the name, and `also` are words beside levels, for the error.

        Raises:
            UnknownName: the tree has no such level.
        """
        if name not in OWN_LEVELS and name not in self.levels.get(tree, ()):
            known = (*map(str, self.every_level), HOST, SERVER, *also)
            raise unknown_level(str(Level(tree, name)), known, path=path)
        return Level(tree, name)

    def level_within(self, distance: int, tree: str = DEFAULT_TREE) -> Level | None:
        """The level whose domains hold exactly the hosts at most `distance` apart.

        None when every pair of hosts is that near, those in no domain of the tree too. Hosts that
        stand in no domain of the level are near each other where they share one below: see
        `Level.or_below`.
        """
        upwards = self.upwards(tree)
        if distance >= len(upwards):
            return None
        return Level(tree, upwards[distance], or_below=distance > 0)

    @cached_property
    def every_level(self) -> tuple[Level, ...]:
        """The levels of all trees, each tree's from the top down."""
        return tuple(Level(tree, name) for tree, names in self.levels.items() for name in names)

    def upwards(self, tree: str) -> tuple[str, ...]:
        """The levels of a tree from `host` up."""
        return (HOST, *reversed(self.levels.get(tree, ())))

    def ancestor(self, tree: str, domain: str, level: str) -> str | None:
        """The domain of `level` above (or equal to) `domain`, or None."""
        name: str | None = domain
        while name is not None:
            node = self.domains[tree, name]
            if node.level == level:
                return name
            name = node.parent
        return None

    def domain_of(self, host: str, level: Level) -> str | None:
        """The domain of `level` that holds the host named `host`, or None."""
        if level.name == HOST:
            return host
        if level.name == SERVER:
            return None
        leaf = self.attachments.get((level.tree, host))
        return None if leaf is None else self.ancestor(level.tree, leaf, level.name)


EMPTY: Final = Topology(levels={}, domains={}, attachments={})


def _check_levels(tree: str, names: tuple[str, ...]) -> None:
    path = f"levels.{tree}"
    if taken := sorted(OWN_LEVELS.intersection(names)):
        raise InvalidDescription(
            f"tree {tree}: {taken[0]} is a level of every tree by itself; leave it out",
            path=path,
        )
    if len(set(names)) < len(names):
        raise InvalidDescription(f"tree {tree}: a level is named twice", path=path)


def _check_level(domain: Domain, levels: Mapping[str, tuple[str, ...]]) -> None:
    if domain.level not in levels.get(domain.tree, ()):
        raise InvalidDescription(
            f"domain {domain.name}: tree {domain.tree} has no level {domain.level}",
            path=f"domains.{domain.name}.level",
            line=domain.line,
        )


def _check_parent(
    domain: Domain,
    known: Mapping[tuple[str, str], Domain],
    levels: Mapping[str, tuple[str, ...]],
) -> None:
    if domain.parent is None:
        return
    path = f"domains.{domain.name}.parent"
    parent = known.get((domain.tree, domain.parent))
    if parent is None:
        raise InvalidDescription(
            f"domain {domain.name}: unknown parent {domain.parent}", path=path, line=domain.line
        )
    order = levels[domain.tree]
    # A parent of a strictly higher level also rules out every cycle.
    if order.index(parent.level) >= order.index(domain.level):
        raise InvalidDescription(
            f"domain {domain.name} ({domain.level}) cannot stand under {parent.name}"
            f" ({parent.level}): a parent's level must be higher, and cycles are not possible",
            path=path,
            line=domain.line,
        )
