"""Topology files and files of topology rules: YAML text in, the API's form out.

A topology file is one too: one with a mapping and no rules.

The lines travel along, so that the service's errors (a cycle, an unknown parent) name them.
"""

from __future__ import annotations

import re
from string import Formatter
from typing import TYPE_CHECKING, Any, Final

from moorage.domain.fleet_expansion import aggregate_uuid
from moorage.domain.topology import DEFAULT_TREE, HOST, Attachment, Domain
from moorage.domain.topology_rules import Rule, TopologyRules
from moorage.heat import typed_yaml
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.yaml_tree import YamlNode


def read_topology(text: str) -> dict[str, Any]:
    """Read levels, domains, attachments and `revision`; an outer key `topology` may wrap them.

    Raises:
        InvalidDescription: not YAML, an unknown key or a wrong type; with the line.
    """
    top = parse(text)
    if isinstance(top.value, dict) and set(top.value) == {"topology"}:
        top = top.value["topology"]
    fields = typed_yaml.mapping(
        top, required=("levels", "domains"), optional=("attachments", "revision")
    )
    levels = {
        tree: _read_levels(node) for tree, node in typed_yaml.mapping(fields["levels"]).items()
    }
    attachments = fields.get("attachments")
    revision = fields.get("revision")
    relied = {} if revision is None else {"revision": _read_revision(revision)}
    return relied | {
        "levels": levels,
        "domains": [
            _read_entry(one, ("name", "level"), ("tree", "parent"))
            for one in typed_yaml.items(fields["domains"])
        ],
        "attachments": [
            _read_entry(one, ("host", "domain"), ("tree",))
            for one in (typed_yaml.items(attachments) if attachments else ())
        ],
    }


def _read_revision(node: YamlNode) -> int:
    return typed_yaml.integer(node, least=0, most=2**63 - 1)


def _read_levels(node: YamlNode) -> list[str]:
    names = list(typed_yaml.texts(node))
    if HOST in names:
        raise node.invalid(f"{HOST} is the lowest level of every tree by itself; leave it out")
    return names


def _read_entry(
    node: YamlNode, required: tuple[str, ...], optional: tuple[str, ...]
) -> dict[str, Any]:
    fields = typed_yaml.mapping(node, required=required, optional=(*optional, "line"))
    entry: dict[str, Any] = {
        name: typed_yaml.text(one)
        for name, one in fields.items()
        if name != "line" and one.value is not None
    }
    entry["line"] = node.line
    return entry


_CONDITIONS: Final = ("name", "trait", "aggregate", "availability_zone", "metadata")
_MOST_PATTERN: Final = 1_000


def read_topology_rules(text: str) -> TopologyRules:
    """Read rules; an outer key `topology` may wrap them.

    Raises:
        InvalidDescription: not YAML, an unknown key, level or group, or not a regular expression;
            with the line.
    """
    top = parse(text)
    if isinstance(top.value, dict) and set(top.value) == {"topology"}:
        top = top.value["topology"]
    fields = typed_yaml.mapping(
        top, required=("levels",), optional=("rules", "domains", "attachments", "unplaced")
    )
    levels = {tree: _levels(node) for tree, node in typed_yaml.mapping(fields["levels"]).items()}
    return TopologyRules(
        levels=levels,
        rules=tuple(_rule(one, levels) for one in _items(fields, "rules")),
        domains=tuple(_domain(one) for one in _items(fields, "domains")),
        attachments=tuple(_attachment(one) for one in _items(fields, "attachments")),
        complete="unplaced" in fields
        and typed_yaml.choice(fields["unplaced"], ("allow", "refuse")) == "refuse",
    )


def _items(fields: Mapping[str, YamlNode], key: str) -> list[YamlNode]:
    return typed_yaml.items(fields[key]) if key in fields else []


def _levels(node: YamlNode) -> tuple[str, ...]:
    names = typed_yaml.texts(node)
    if not names or HOST in names:
        raise node.invalid(f"levels are at least one, and {HOST} is the lowest by itself")
    return names


def _domain(node: YamlNode) -> Domain:
    fields = typed_yaml.mapping(node, required=("name", "level"), optional=("tree", "parent"))
    return Domain(
        name=typed_yaml.name(fields["name"]),
        level=typed_yaml.text(fields["level"]),
        tree=_tree(fields),
        parent=typed_yaml.name(fields["parent"]) if "parent" in fields else None,
        line=node.line,
    )


def _attachment(node: YamlNode) -> Attachment:
    fields = typed_yaml.mapping(node, required=("host", "domain"), optional=("tree",))
    host, domain = typed_yaml.name(fields["host"]), typed_yaml.name(fields["domain"])
    return Attachment(host, domain, _tree(fields), node.line)


def _tree(fields: Mapping[str, YamlNode]) -> str:
    return typed_yaml.text(fields["tree"]) if "tree" in fields else DEFAULT_TREE


def _rule(node: YamlNode, levels: Mapping[str, tuple[str, ...]]) -> Rule:
    given = typed_yaml.mapping(node)
    tree = _tree(given)
    if tree not in levels:
        raise given["tree"].invalid(f"no such tree: {tree}")
    fields = typed_yaml.mapping(node, optional=(*_CONDITIONS, "tree", *levels[tree]))
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
    if len(text) > _MOST_PATTERN:
        raise node.invalid(f"a pattern has at most {_MOST_PATTERN} characters")
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
