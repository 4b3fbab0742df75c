"""Topology files: YAML text in, the API's body out, each entry with its line.

The lines travel along, so that the service's errors (a cycle, an unknown parent) name them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moorage.domain.topology import HOST
from moorage.heat import typed_yaml
from moorage.heat.yaml_tree import parse

if TYPE_CHECKING:
    from moorage.heat.yaml_tree import YamlNode


def read_topology(text: str) -> dict[str, Any]:
    """Read levels, domains and attachments; an outer key `topology` may wrap them.

    Raises:
        InvalidDescription: not YAML, an unknown key or a wrong type; with the line.
    """
    top = parse(text)
    if isinstance(top.value, dict) and set(top.value) == {"topology"}:
        top = top.value["topology"]
    fields = typed_yaml.mapping(
        top, required=("levels", "domains"), optional=("attachments", "revision")
    )
    levels = {tree: _levels(node) for tree, node in typed_yaml.mapping(fields["levels"]).items()}
    attachments = fields.get("attachments")
    return {
        "levels": levels,
        "domains": [
            _entry(one, ("name", "level"), ("tree", "parent"))
            for one in typed_yaml.items(fields["domains"])
        ],
        "attachments": [
            _entry(one, ("host", "domain"), ("tree",))
            for one in (typed_yaml.items(attachments) if attachments else ())
        ],
    }


def _levels(node: YamlNode) -> list[str]:
    names = list(typed_yaml.texts(node))
    if HOST in names:
        raise node.invalid(f"{HOST} is the lowest level of every tree by itself; leave it out")
    return names


def _entry(node: YamlNode, required: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    fields = typed_yaml.mapping(node, required=required, optional=(*optional, "line"))
    entry: dict[str, Any] = {
        name: typed_yaml.text(one)
        for name, one in fields.items()
        if name != "line" and one.value is not None
    }
    entry["line"] = node.line
    return entry
