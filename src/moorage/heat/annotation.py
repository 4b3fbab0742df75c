"""Reads the annotation `metadata: {moorage: …}` of a resource, which Heat itself ignores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import refuse_deferred
from moorage.heat.expanded_template import DeclaredPolicy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from moorage.heat.expanded_template import ExpandedItem, Resource
    from moorage.heat.yaml_tree import YamlNode

KEY: Final = "moorage"
POLICIES: Final = "policies"
DECIDED: Final = "decided"
"""The key of the decision in an emitted template; ignored when a template is read."""
FLAVOR: Final = "flavor"
"""The key in the decision of the flavor that a server had before its ticket's."""
ROLE_KEYS: Final = (
    *("required", "forbidden", "member_of", "tags", "min_available"),
    *("ports", "image_properties", "boot_from_volume"),
)
"""Keys of a server's annotation that become part of its role's description."""


def entries_of(resource: Resource, known: Collection[str]) -> Mapping[str, YamlNode]:
    """The entries of the annotation, all of them known; empty without an annotation.

    Raises:
        InvalidDescription: an unknown entry, or one with a deferred value.
    """
    node = resource.metadata.get(KEY)
    if node is None:
        return {}
    entries = typed_yaml.mapping(node, optional=(*known, DECIDED))
    for name, one in entries.items():
        if name != DECIDED:
            refuse_deferred(one)
    return entries


def flavor_of(resource: Resource, written: YamlNode) -> YamlNode:
    """A server's flavor: as it is written, or the one before an emitted template bound it."""
    node = resource.metadata.get(KEY)
    decided = node.value.get(DECIDED) if node is not None and isinstance(node.value, dict) else None
    before = decided.value.get(FLAVOR) if decided and isinstance(decided.value, dict) else None
    return written if before is None else before


def policies(resource: Resource, entries: Mapping[str, YamlNode]) -> Iterator[ExpandedItem]:
    """The policies of the annotation."""
    if POLICIES in entries:
        for node in typed_yaml.items(entries[POLICIES]):
            yield DeclaredPolicy(resource.stack, resource.path, node)
