"""OS::Nova::ServerGroup: a policy over the servers that refer to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.domain.describe import NOVA_SHORTHAND
from moorage.heat import typed_yaml
from moorage.heat.annotation import POLICIES, entries_of, policies
from moorage.heat.deferred_values import refuse_deferred
from moorage.heat.expanded_template import ServerGroup
from moorage.heat.numbers import to_integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.expanded_template import ExpandedItem, Expander, Resource
    from moorage.heat.yaml_tree import YamlNode

TYPES = ("OS::Nova::ServerGroup",)
PLACED = True

DEFAULT: Final = "anti-affinity"
"""What Heat takes when no policy is given."""
MOST: Final = 10_000


def expand(resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:  # noqa: ARG001 - nothing below
    """The group, and the policies of its annotation.

    Raises:
        InvalidDescription: not exactly one of Nova's four policies, or a rule it does not have.
    """
    for name, given in resource.properties.items():
        if name not in {"name", "policies", "rules"}:
            raise given.invalid(f"a server group has no property {name!r}")
        if name != "name":
            refuse_deferred(given)
    policy = _policy(resource.properties)
    yield ServerGroup(
        resource.path, resource.node, policy, _max_per_host(resource.properties, policy)
    )
    yield from policies(resource, entries_of(resource, (POLICIES,)))


def _policy(properties: Mapping[str, YamlNode]) -> str:
    node = properties.get("policies")
    if node is None or node.value is None:
        return DEFAULT
    named = typed_yaml.items(node)
    if len(named) != 1:
        raise node.invalid("a server group has exactly one policy")
    return typed_yaml.choice(named[0], NOVA_SHORTHAND)


def _max_per_host(properties: Mapping[str, YamlNode], policy: str) -> int | None:
    node = properties.get("rules")
    if node is None or not node.value:
        return None
    rules = typed_yaml.mapping(node, optional=("max_server_per_host",))
    limit = rules["max_server_per_host"]
    number = to_integer(limit.plain())
    if number is None or not 1 <= number <= MOST:
        raise limit.invalid(f"max_server_per_host must be between 1 and {MOST}")
    if policy != "anti-affinity":
        raise limit.invalid("max_server_per_host is a rule of anti-affinity only")
    return number
