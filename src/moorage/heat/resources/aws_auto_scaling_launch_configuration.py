"""AWS::AutoScaling::LaunchConfiguration: no place of its own, but what the instances of groups are.

Its annotation is that of each instance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.heat.expanded_template import UnplacedResource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.heat.expanded_template import ExpandedItem, Expander, Resource

TYPES = ("AWS::AutoScaling::LaunchConfiguration",)
PLACED = True


def expand(resource: Resource, nested: Expander) -> Iterator[ExpandedItem]:  # noqa: ARG001 - nothing below
    """Nothing to place: the groups that name it have the instances."""
    yield UnplacedResource(resource.path, resource.type, "the groups that name it are placed")
