"""Reads a template's text into sections; nothing is resolved yet."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.versions import find_version
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.versions import Version
    from moorage.heat.yaml_tree import YamlNode

NESTED: Final = (".yaml", ".template")
"""What the type of a nested template ends with."""

_SECTIONS: Final = ("description", "parameter_groups", "parameters", "resources", "outputs")
_RESOURCE: Final = (
    "properties",
    "metadata",
    "depends_on",
    "deletion_policy",
    "update_policy",
    "description",
)


@dataclass(frozen=True, slots=True)
class Template:
    """The sections that affect placement; outputs are ignored."""

    file: str
    """Its name among the files; empty for the root template."""
    version: Version
    parameters: Mapping[str, YamlNode]
    resources: Mapping[str, YamlNode]
    conditions: Mapping[str, YamlNode]


def read_template(text: str, *, file: str = "") -> Template:
    """Read a template's sections and the outer form of its resources.

    Raises:
        InvalidDescription: not YAML, an unknown version, section or resource key.
    """
    top = parse(text, name=file)
    if not isinstance(top.value, dict) or "heat_template_version" not in top.value:
        raise top.invalid("not a Heat template: heat_template_version is missing")
    version = find_version(top.value["heat_template_version"])
    sections = typed_yaml.mapping(
        top,
        required=("heat_template_version",),
        optional=(*_SECTIONS, "conditions") if version.has_conditions else _SECTIONS,
    )
    resources = _section(sections, "resources")
    for name, node in resources.items():
        _check_resource(name, node, resources, version)
    conditions = _section(sections, "conditions")
    return Template(file, version, _section(sections, "parameters"), resources, conditions)


def file_name(written: str, *, of: str) -> str:
    """The name of a file relative to the root template, as template `of` refers to it."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(of), written))


def named_files(text: str, *, file: str = "") -> Iterator[tuple[str, bool]]:
    """The files that a template refers to, and whether each is a nested template.

    Raises:
        InvalidDescription: not YAML.
    """
    waiting = [parse(text, name=file)]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node.value, dict):
            waiting += node.value.values()
            named = node.value.get("type")
            if named is not None and is_nested(named.value):
                yield file_name(str(named.value), of=file), True
            content = node.value.get("get_file")
            if len(node.value) == 1 and content is not None and isinstance(content.value, str):
                if "://" in content.value:
                    raise content.invalid("get_file: only files beside the template, no URL")
                yield file_name(content.value, of=file), False
        elif isinstance(node.value, list):
            waiting += node.value


def is_nested(type_name: object) -> bool:
    """Whether a resource type names a nested template's file."""
    return isinstance(type_name, str) and type_name.endswith(NESTED)


def _section(sections: Mapping[str, YamlNode], name: str) -> Mapping[str, YamlNode]:
    node = sections.get(name)
    return {} if node is None or node.value is None else typed_yaml.mapping(node)


def _check_resource(
    name: str, node: YamlNode, resources: Mapping[str, YamlNode], version: Version
) -> None:
    extra = ("condition", "external_id") if version.has_conditions else ()
    fields = typed_yaml.mapping(node, required=("type",), optional=(*_RESOURCE, *extra))
    if not name or "/" in name:
        raise node.invalid(f"not a resource name: {name!r}")
    if "external_id" in fields:
        raise fields["external_id"].invalid("external_id is not supported")
    if "depends_on" in fields:
        listed = fields["depends_on"]
        for one in listed.value if isinstance(listed.value, list) else [listed]:
            if typed_yaml.name(one) not in resources:
                raise one.invalid(f"depends on unknown resource {one.value!r}")
