"""Rules of a fleet file: which hosts are in which domains."""

from __future__ import annotations

import re
from string import Formatter
from typing import TYPE_CHECKING, Final

from moorage.client.schema_check import unknown_key
from moorage.domain.fleet_expansion import aggregate_uuid
from moorage.domain.topology import DEFAULT_TREE
from moorage.domain.topology_rules import Rule
from moorage.heat import typed_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.yaml_tree import YamlNode

_CONDITIONS: Final = ("name", "trait", "aggregate", "availability_zone", "metadata")


def rule_of(node: YamlNode, levels: Mapping[str, tuple[str, ...]]) -> Rule:
    """A rule over hosts of the trees with these levels.

    Raises:
        InvalidDescription: an unknown tree, level or group, not a regular expression, or a rule
            without a condition or a domain; with the line.
    """
    fields = typed_yaml.mapping(node)
    tree = typed_yaml.text(fields["tree"]) if "tree" in fields else DEFAULT_TREE
    if tree not in levels:
        raise fields.get("tree", node).invalid(f"no such tree: {tree}")
    known = dict.fromkeys((*_CONDITIONS, "tree", *levels[tree]))
    for key, one in fields.items():
        if key not in known:
            raise unknown_key(key, one, known)
    if not any(one in fields for one in _CONDITIONS):
        raise node.invalid(f"a rule needs at least one of {', '.join(_CONDITIONS)}")
    name, trait, zone = (
        _pattern(fields[key]) if key in fields else None
        for key in ("name", "trait", "availability_zone")
    )
    metadata = _patterns(fields["metadata"]) if "metadata" in fields else {}
    patterns = [one for one in (name, trait, zone, *metadata.values()) if one is not None]
    groups = {group for one in patterns for group in one.groupindex}
    domains = {level: _template(fields[level], groups) for level in levels[tree] if level in fields}
    # A group called like a level says the domain by itself.
    for level in levels[tree]:
        if level in groups:
            domains.setdefault(level, f"{{{level}}}")
    if not domains:
        raise node.invalid(
            f"a rule names a domain of at least one level: {', '.join(levels[tree])}"
        )
    return Rule(
        domains=domains,
        tree=tree,
        name=name,
        trait=trait,
        aggregates=_aggregates(fields["aggregate"]) if "aggregate" in fields else None,
        zone=zone,
        metadata=metadata,
        line=node.line,
    )


def _pattern(node: YamlNode) -> re.Pattern[str]:
    text = typed_yaml.name(node)
    try:
        return re.compile(text)
    except re.error as error:
        raise node.invalid(f"not a regular expression: {error}") from error


def _patterns(node: YamlNode) -> dict[str, re.Pattern[str]]:
    """Patterns of values, by the key that has them."""
    return {key: _pattern(one) for key, one in typed_yaml.mapping(node).items()}


def _template(node: YamlNode, groups: set[str]) -> str:
    text = typed_yaml.name(node)
    try:
        used = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError as error:
        raise node.invalid(f"not a template: {error}") from error
    for name in sorted(used - groups):
        raise node.invalid(f"no pattern of this rule has a group {name!r}")
    return text


def _aggregates(node: YamlNode) -> frozenset[str]:
    """Aggregates by UUID, or by the name they have in a fleet file."""
    names = typed_yaml.texts(node) if isinstance(node.value, list) else (typed_yaml.text(node),)
    return frozenset(aggregate_uuid(one) for one in names)
