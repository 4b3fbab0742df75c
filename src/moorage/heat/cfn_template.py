"""Gives a template in the form of AWS CloudFormation the sections and keys of HOT.

Only names of keys change. Values keep their places, and their functions are those of the version.
Keys that Heat does not know are ignored, as Heat does in this form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.numbers import to_boolean
from moorage.heat.yaml_tree import collection_node, to_node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.yaml_tree import YamlNode

_SECTIONS: Final = ("Parameters", "Resources", "Conditions", "Mappings")
_RESOURCE: Final = {
    "Type": "type",
    "Properties": "properties",
    "Metadata": "metadata",
    "DependsOn": "depends_on",
    "DeletionPolicy": "deletion_policy",
    "UpdatePolicy": "update_policy",
    "Description": "description",
    "Condition": "condition",
}
_TYPES: Final = {
    "String": "string",
    "Number": "number",
    "CommaDelimitedList": "comma_delimited_list",
    "Json": "json",
    "Boolean": "boolean",
}
_BOUNDS: Final = {
    "MinLength": ("length", "min"),
    "MaxLength": ("length", "max"),
    "MinValue": ("range", "min"),
    "MaxValue": ("range", "max"),
}
_CONSTRAINTS: Final = {"AllowedValues": "allowed_values", "AllowedPattern": "allowed_pattern"}


def hot_sections(top: YamlNode) -> dict[str, YamlNode]:
    """The sections of a template, by their names in HOT.

    Raises:
        InvalidDescription: a section, resource or parameter that is no mapping, a resource without
            a type, or a parameter of an unknown type.
    """
    sections: dict[str, YamlNode] = {}
    for name, node in typed_yaml.mapping(top).items():
        if name not in _SECTIONS or node.value is None:
            continue
        entries = typed_yaml.mapping(node)
        if name == "Resources":
            entries = {key: _resource(one) for key, one in entries.items()}
        elif name == "Parameters":
            entries = {key: _parameter(one) for key, one in entries.items()}
        sections[name.lower()] = collection_node(entries, node.line, node.path)
    return sections


def _resource(node: YamlNode) -> YamlNode:
    fields = typed_yaml.mapping(node)
    if "Type" not in fields:
        raise node.invalid("the key 'Type' is missing")
    known = {_RESOURCE[key]: one for key, one in fields.items() if key in _RESOURCE}
    return collection_node(known, node.line, node.path)


def _parameter(node: YamlNode) -> YamlNode:
    fields = typed_yaml.mapping(node)
    if "Type" not in fields:
        raise node.invalid("the key 'Type' is missing")
    kind = typed_yaml.choice(fields["Type"], _TYPES)
    declared = {"type": _plain(_TYPES[kind], fields["Type"])}
    if "Default" in fields:
        declared["default"] = fields["Default"]
    if "NoEcho" in fields:
        hidden = bool(to_boolean(fields["NoEcho"].plain()))
        declared["hidden"] = _plain(hidden, fields["NoEcho"])
    if constraints := _constraints(fields):
        declared["constraints"] = collection_node(constraints, node.line, node.path)
    return collection_node(declared, node.line, node.path)


def _constraints(fields: Mapping[str, YamlNode]) -> list[YamlNode]:
    bounds: dict[str, dict[str, YamlNode]] = {}
    for key, (kind, end) in _BOUNDS.items():
        if key in fields:
            bounds.setdefault(kind, {})[end] = fields[key]
    found = [(kind, next(iter(ends.values())), ends) for kind, ends in bounds.items()]
    made = [
        collection_node({kind: collection_node(ends, at.line, at.path)}, at.line, at.path)
        for kind, at, ends in found
    ]
    made += [
        collection_node({hot: fields[key]}, fields[key].line, fields[key].path)
        for key, hot in _CONSTRAINTS.items()
        if key in fields
    ]
    return made


def _plain(value: str | bool, at: YamlNode) -> YamlNode:  # noqa: FBT001 - a scalar of YAML
    return to_node(value, line=at.line, path=at.path)
