"""The annotation `metadata: {moorage: …}` of a resource, which Heat itself ignores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml
from moorage.heat.deferred_values import pending
from moorage.heat.expanded_template import Declared

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from moorage.heat.expanded_template import Found, Resource
    from moorage.heat.yaml_tree import Marked

KEY: Final = "moorage"
POLICIES: Final = "policies"
DECIDED: Final = "decided"
"""Written when a template is emitted with its decision; reading it changes nothing."""
ROLE_KEYS: Final = ("required", "forbidden", "member_of", "tags")
"""What a server's annotation adds to its description."""


def entries_of(resource: Resource, known: Collection[str]) -> Mapping[str, Marked]:
    """The entries of the annotation, all of them known; empty without an annotation.

    Raises:
        InvalidDescription: an unknown entry, or one with a value that comes only later.
    """
    node = resource.metadata.get(KEY)
    if node is None:
        return {}
    entries = typed_yaml.mapping(node, optional=(*known, DECIDED))
    later = pending(node)
    if later is not None:
        raise node.invalid(f"{later} is not known before the stack is made")
    return entries


def policies(resource: Resource, entries: Mapping[str, Marked]) -> Iterator[Found]:
    """The policies of the annotation."""
    if POLICIES in entries:
        for node in typed_yaml.items(entries[POLICIES]):
            yield Declared(resource.stack, resource.path, node)
