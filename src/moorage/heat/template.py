"""Reads a template's text into sections; nothing is resolved yet.

Templates in the form of AWS CloudFormation get the sections and keys of HOT, so that the rest of
this package knows one form only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.cfn_template import hot_sections
from moorage.heat.file_names import file_name, is_nested
from moorage.heat.remarks import Remarks
from moorage.heat.versions import HOT, version_of
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.versions import Version
    from moorage.heat.yaml_tree import YamlNode

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
    mappings: Mapping[str, YamlNode]
    """Only of templates in the form of AWS CloudFormation."""
    size: int = 0
    """Values of its text, aliases expanded."""
    remarks: tuple[str, ...] = ()
    """On its text, such as keys that are written twice."""


def read_template(text: str, *, file: str = "") -> Template:
    """Read a template's sections and the outer form of its resources.

    Raises:
        InvalidDescription: not YAML, an unknown version, section or resource key.
    """
    remarks = Remarks()
    top = parse(text, name=file, remarks=remarks)
    version = version_of(top)
    sections = typed_yaml.mapping(top)
    if version.is_cfn:
        sections = hot_sections(top)
    else:
        optional = (*_SECTIONS, "conditions") if version.has_conditions else _SECTIONS
        typed_yaml.mapping(top, required=(HOT,), optional=optional)
    resources = _section(sections, "resources")
    for name, node in resources.items():
        _check_resource(name, node, resources, version)
    return Template(
        file=file,
        version=version,
        parameters=_section(sections, "parameters"),
        resources=resources,
        conditions=_section(sections, "conditions"),
        mappings=_section(sections, "mappings"),
        size=top.size,
        remarks=tuple(remarks),
    )


def named_files(text: str, *, file: str = "") -> Iterator[tuple[str, bool]]:
    """The files that a template refers to, and whether each is a nested template.

    Raises:
        InvalidDescription: not YAML.
    """
    waiting = [parse(text, name=file, remarks=Remarks())]
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
            if content is not None and isinstance(content.value, str):
                yield file_name(content.value, of=file), False
        elif isinstance(node.value, list):
            waiting += node.value


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
    if "depends_on" in fields and fields["depends_on"].value is not None:
        listed = fields["depends_on"]
        for one in listed.value if isinstance(listed.value, list) else [listed]:
            if typed_yaml.name(one) not in resources:
                raise one.invalid(f"depends on unknown resource {one.value!r}")
