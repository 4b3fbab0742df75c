"""Encodes a part of a fleet as `fleet` in the body of `POST /v1/fleet`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moorage.domain.flavors import Flavor
    from moorage.domain.fleet_load import ForeignLoad
    from moorage.domain.fleet_parts import FleetPart
    from moorage.domain.providers import ResourceProvider
    from moorage.domain.topology import Topology


def body(part: FleetPart) -> dict[str, Any]:
    """The JSON document that loads this part."""
    fleet: dict[str, Any] = {
        "providers": [
            {**_provider(one), "line": part.lines.get(one.uuid)} for one in part.providers
        ],
        "flavors": [_flavor(one) for one in part.flavors],
        "consumers": [_consumer(one) for one in part.load],
    }
    if part.topology is not None:
        fleet["topology"] = topology(part.topology)
    return fleet


def topology(trees: Topology) -> dict[str, Any]:
    """The JSON form of a topology, also for `PUT /v1/topology/domains`."""
    return {
        "levels": {tree: list(levels) for tree, levels in trees.levels.items()},
        "domains": [
            {
                "name": one.name,
                "level": one.level,
                "tree": one.tree,
                "parent": one.parent,
                "line": one.line,
            }
            for one in trees.domains.values()
        ],
        "attachments": [
            {
                "host": host,
                "domain": domain,
                "tree": tree,
                "line": trees.lines.get((tree, host)),
            }
            for (tree, host), domain in trees.attachments.items()
        ],
    }


def _provider(provider: ResourceProvider) -> dict[str, Any]:
    return {
        "uuid": provider.uuid,
        "name": provider.name,
        "parent_uuid": provider.parent_uuid,
        "inventories": {
            one.resource_class: {
                "total": one.total,
                "reserved": one.reserved,
                "min_unit": one.min_unit,
                "max_unit": one.max_unit,
                "step_size": one.step_size,
                "allocation_ratio": one.allocation_ratio,
            }
            for one in provider.inventories
        },
        "traits": sorted(provider.traits),
        "aggregates": sorted(provider.aggregates),
    }


def _flavor(flavor: Flavor) -> dict[str, Any]:
    return {
        "id": flavor.id,
        "name": flavor.name,
        "resources": dict(flavor.resources),
        "required": [sorted(group) for group in flavor.required],
        "forbidden": sorted(flavor.forbidden),
        "extra_specs": dict(flavor.extra_specs),
    }


def _consumer(load: ForeignLoad) -> dict[str, Any]:
    return {
        "uuid": load.consumer.uuid,
        "project_id": load.consumer.project_id,
        "user_id": load.consumer.user_id,
        "type": load.consumer.type,
        "allocations": {uuid: dict(amounts) for uuid, amounts in load.allocations.items()},
    }
