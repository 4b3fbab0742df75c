"""OS::Heat::ResourceGroup: `count` equal resources.

As in Heat, functions in `resource_def` are resolved in the group's own stack first; then the
index variable is replaced in every text of the properties, and nowhere else.
"""

from __future__ import annotations

from itertools import count, islice
from typing import TYPE_CHECKING, Final

from moorage.domain.ensembles import MAX_MEMBERS
from moorage.heat import typed_yaml
from moorage.heat.annotation import POLICIES, entries_of, policies
from moorage.heat.deferred_values import DeferredValue, refuse_deferred
from moorage.heat.numbers import to_integer
from moorage.heat.resources import absent_member, refuse_unknown
from moorage.heat.yaml_tree import collection_node, to_node

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.expanded_template import ExpandedItem, Expander, Resource
    from moorage.heat.yaml_tree import YamlNode

TYPES = ("OS::Heat::ResourceGroup",)
PLACED = True
DEFINITION = "resource_def"

INDEX: Final = "%index%"
_SHORTEST_INDEX: Final = 3
_PROPERTIES: Final = (
    "count",
    "index_var",
    "resource_def",
    "removal_policies",
    "removal_policies_mode",
)


def expand(resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:
    """Each member in turn, and the policies of the group's annotation.

    Raises:
        InvalidDescription: an unknown property, an absurd count, or what a member raises.
    """
    properties = resource.properties
    refuse_unknown(properties, _PROPERTIES, "a resource group")
    if "resource_def" not in properties:
        raise resource.node.invalid("a resource group needs resource_def")
    definition = typed_yaml.mapping(
        properties["resource_def"], required=("type",), optional=("properties", "metadata")
    )
    variable = index_variable(properties)
    unchanged = _numbered(definition, variable, "0") == definition
    numbers = [*_numbers(resource, nested)]
    if not numbers:
        yield from absent_member(resource, nested, _numbered(definition, variable, "0"))
    for number in numbers:
        member = definition if unchanged else _numbered(definition, variable, str(number))
        yield from nested.member(resource, number, member)
    yield from policies(resource, entries_of(resource, (POLICIES,)))


def index_variable(properties: Mapping[str, YamlNode]) -> str:
    """The text that stands for a member's index.

    Raises:
        InvalidDescription: shorter than three characters.
    """
    node = properties.get("index_var")
    if node is None or node.value is None:
        return INDEX
    variable = typed_yaml.text(node)
    if len(variable) < _SHORTEST_INDEX:
        raise node.invalid("index_var needs at least three characters")
    return variable


def _numbers(resource: Resource, nested: Expander) -> Iterator[int]:
    """The numbers of the members; Heat gives none that removal policies name, or have named."""
    properties = resource.properties
    entries = _entries(properties.get("removal_policies"))
    skipped = {nested.name_of(resource, one) for one in entries}
    mode = properties.get("removal_policies_mode")
    if mode is None or mode.value != "update":
        skipped |= set(nested.removed_names(resource))
    numbers = (number for number in count() if str(number) not in skipped)
    return islice(numbers, _count(properties))


def _entries(node: YamlNode | None) -> Iterator[str]:
    for policy in node.value if node is not None and isinstance(node.value, list) else []:
        named = policy.value.get("resource_list") if isinstance(policy.value, dict) else None
        for one in named.value if named is not None and isinstance(named.value, list) else []:
            yield str(one.value)


def _count(properties: Mapping[str, YamlNode]) -> int:
    node = properties.get("count")
    if node is None or node.value is None:
        return 1
    refuse_deferred(node)
    number = to_integer(node.plain())
    if number is None or not 0 <= number <= MAX_MEMBERS:
        raise node.invalid(f"count must be between 0 and {MAX_MEMBERS}, not {node.value!r}")
    return number


def _numbered(
    definition: Mapping[str, YamlNode], variable: str, number: str
) -> Mapping[str, YamlNode]:
    properties = definition.get("properties")
    if properties is None or properties.value is None:
        return {key: node for key, node in definition.items() if key != "properties"}
    return {**definition, "properties": _replaced(properties, variable, number)}


def _replaced(node: YamlNode, variable: str, number: str) -> YamlNode:
    match node.value:
        case dict() as items:
            replaced = {key: _replaced(one, variable, number) for key, one in items.items()}
            return collection_node(replaced, node.line, node.path)
        case list() as listed:
            return collection_node(
                [_replaced(one, variable, number) for one in listed], node.line, node.path
            )
        case DeferredValue():
            return node
        case str() as text if variable in text:
            return to_node(text.replace(variable, number), line=node.line, path=node.path)
        case _:
            return node
