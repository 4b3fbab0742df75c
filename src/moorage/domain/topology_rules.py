"""Rules that assign hosts to domains by names, aggregates, traits, and what Nova says of them.

Placement knows no racks, but names do (`az1-r07-n12`), and so do aggregates and traits, Nova's
availability zones and the metadata of its aggregates. A rule says which hosts it is about and the
names of their domains; the first rule that says something about a
level of a tree is right about it. What a mapping says of a host goes before all rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from moorage.domain.errors import InvalidDescription
from moorage.domain.topology import DEFAULT_TREE, Attachment, Domain, Topology
from moorage.domain.words import first_of

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping

SHOWN: Final = 5
_Given = TypeVar("_Given")


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The facts about a host that rules match: its root provider's."""

    name: str
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    zone: str | None = None
    """Nova's availability zone; None: Nova was not asked, or does not have the host."""
    metadata: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Key -> its values in the metadata of Nova's aggregates that the host is in."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Matches hosts that meet all its conditions; a host meets no condition whose fact it lacks.

    `domains` maps levels to names in which `{group}` stands for what a named group of the patterns
    matched. Patterns match whole names, traits, zones and values.
    """

    domains: Mapping[str, str]
    tree: str = DEFAULT_TREE
    name: re.Pattern[str] | None = None
    trait: re.Pattern[str] | None = None
    aggregates: frozenset[str] | None = None
    zone: re.Pattern[str] | None = None
    metadata: Mapping[str, re.Pattern[str]] = field(default_factory=dict)
    line: int | None = None


@dataclass(frozen=True, slots=True)
class TopologyRules:
    """Rules, with explicit levels, domains and attachments beside them."""

    levels: Mapping[str, tuple[str, ...]]
    rules: tuple[Rule, ...] = ()
    domains: tuple[Domain, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    complete: bool = False
    """Whether a host without a place in some tree is a mistake."""


@dataclass
class _NamedDomains:
    """The domains that rules have named so far."""

    known: dict[tuple[str, str], Domain]
    said_by: dict[tuple[str, str], str] = field(default_factory=dict)
    """(tree, domain) -> the host that brought it up."""

    def add(self, domain: Domain, host: str) -> None:
        key = (domain.tree, domain.name)
        other = self.known.setdefault(key, domain)
        first = self.said_by.setdefault(key, host)
        if other.level != domain.level:
            raise InvalidDescription(
                f"{domain.name} is a {other.level} and, for host {host}, a {domain.level}",
                path="rules",
                line=domain.line,
            )
        if domain.parent is not None and other.parent != domain.parent:
            if other.parent is None:
                self.known[key] = domain
                return
            raise InvalidDescription(
                f"{domain.level} {domain.name} stands in {other.parent} (host {first}) and in"
                f" {domain.parent} (host {host}); names of domains are unique within a tree: write,"
                f' for instance, {domain.level}: "{{...}}-{{...}}"',
                path="rules",
                line=domain.line,
            )


def apply(rules: TopologyRules, hosts: Iterable[HostFacts]) -> Topology:
    """The topology that the rules give these hosts.

    Raises:
        InvalidDescription: a domain in two places or of two levels, a trait that matches twice and
            differently, a mapped host that does not exist, a host without a place where every one
            needs one; with the line.
    """
    found = _NamedDomains({(one.tree, one.name): one for one in rules.domains})
    every = sorted(hosts, key=lambda one: one.name)
    names = {one.name for one in every}
    mapped: dict[tuple[str, str], Attachment] = {}
    for one in rules.attachments:
        if one.host not in names:
            raise InvalidDescription(f"no such host: {one.host}", path="hosts.place", line=one.line)
        mapped[one.tree, one.host] = one
    attachments = list(rules.attachments)
    bare: dict[str, list[str]] = {}
    for tree, levels in rules.levels.items():
        for host in every:
            if (tree, host.name) in mapped:
                continue
            leaf = _place(found, host, tree, levels, _said(rules.rules, host, tree))
            if leaf is None:
                bare.setdefault(tree, []).append(host.name)
            else:
                attachments.append(Attachment(host.name, leaf.name, tree, leaf.line))
    if rules.complete:
        _refuse_bare(bare)
    return Topology.build(rules.levels, found.known.values(), attachments)


def unplaced(topology: Topology, hosts: Iterable[HostFacts]) -> dict[str, list[str]]:
    """Tree -> names of hosts without a place in it."""
    names = sorted(one.name for one in hosts)
    found = {
        tree: [name for name in names if (tree, name) not in topology.attachments]
        for tree in topology.levels
    }
    return {tree: some for tree, some in found.items() if some}


def _said(rules: Iterable[Rule], host: HostFacts, tree: str) -> dict[str, tuple[str, Rule]]:
    """Level -> domain and the rule that named it."""
    said: dict[str, tuple[str, Rule]] = {}
    for rule in rules:
        if rule.tree != tree:
            continue
        groups = _groups(rule, host)
        if groups is None:
            continue
        for level, template in rule.domains.items():
            name = _filled(template, groups, rule, host)
            if name:
                said.setdefault(level, (name, rule))
    return said


def _groups(rule: Rule, host: HostFacts) -> dict[str, str] | None:
    """The values of the named groups; None if the rule does not match the host."""
    if rule.aggregates is not None and not rule.aggregates & host.aggregates:
        return None
    conditions = [
        *(("names", pattern, (host.name,)) for pattern in _given(rule.name)),
        *(("zones", pattern, _given(host.zone)) for pattern in _given(rule.zone)),
        *(("traits", pattern, host.traits) for pattern in _given(rule.trait)),
        *(
            (f"values of {key}", pattern, host.metadata.get(key, ()))
            for key, pattern in rule.metadata.items()
        ),
    ]
    found: dict[str, str] = {}
    for what, pattern, texts in conditions:
        matches = [_named(m) for text in texts if (m := pattern.fullmatch(text))]
        if not matches:
            return None
        if any(one != matches[0] for one in matches):
            raise InvalidDescription(
                f"several {what} of host {host.name} match and say different things",
                path="rules",
                line=rule.line,
            )
        found.update(matches[0])
    return found


def _given(one: _Given | None) -> tuple[_Given, ...]:
    return () if one is None else (one,)


def _named(match: re.Match[str]) -> dict[str, str]:
    return {name: text for name, text in match.groupdict().items() if text is not None}


def _filled(template: str, groups: Mapping[str, str], rule: Rule, host: HostFacts) -> str:
    try:
        return template.format(**groups)
    except (KeyError, IndexError, ValueError) as error:
        raise InvalidDescription(
            f"{template!r}: no group {error} matched for host {host.name}",
            path="rules",
            line=rule.line,
        ) from error


def _place(
    found: _NamedDomains,
    host: HostFacts,
    tree: str,
    levels: tuple[str, ...],
    said: Mapping[str, tuple[str, Rule]],
) -> Domain | None:
    """The lowest domain named for a host; records all of them from the top down."""
    leaf: Domain | None = None
    for level in levels:
        if level in said:
            name, rule = said[level]
            declared = found.known.get((tree, name))
            above = None if leaf is None else leaf.name
            if above is None and declared is not None:
                above = declared.parent
            leaf = Domain(name, level, tree, above, rule.line)
            found.add(leaf, host.name)
    return leaf


def _refuse_bare(bare: Mapping[str, list[str]]) -> None:
    for tree, names in bare.items():
        some = ", ".join(first_of(names, SHOWN))
        raise InvalidDescription(
            f"no rule gives these hosts a place in tree {tree}: {some}",
            path="rules",
        )
