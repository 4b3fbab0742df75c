"""A joint request and its terrain as plain JSON values, and back."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.domain.ensembles import MemberName, Phase, PolicyStatement, Role, Selector
from moorage.domain.period import Period
from moorage.domain.placement import Occupant
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.terrain import Terrain, place_hosts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def encode_request(request: EnsembleRequest) -> dict[str, object]:
    """Plain values, sets sorted."""
    return {
        "project_id": request.project_id,
        "roles": [_role(role) for role in request.roles],
        "members": [str(member) for member in request.members],
        "policies": [_statement(one) for one in request.policies],
        "period": [request.period.start, request.period.end],
        "objective": str(request.objective),
        "fixed": {str(member): host for member, host in sorted(request.fixed.items())},
        "own_consumers": sorted(request.own_consumers),
        "released": sorted(request.released),
        "restated": sorted(request.restated),
    }


def decode_request(values: Mapping[str, Any]) -> EnsembleRequest:
    """The request that `encode_request` wrote."""
    fixed = {MemberName.parse(text): host for text, host in values["fixed"].items()}
    return EnsembleRequest(
        project_id=values["project_id"],
        roles=tuple(_read_role(one) for one in values["roles"]),
        members=tuple(MemberName.parse(text) for text in values["members"]),
        policies=tuple(_read_statement(one) for one in values["policies"]),
        period=Period(*values["period"]),
        objective=Objective(values["objective"]),
        fixed=MappingProxyType(fixed),
        own_consumers=frozenset(values["own_consumers"]),
        released=frozenset(values["released"]),
        restated=frozenset(values["restated"]),
    )


def _role(role: Role) -> dict[str, object]:
    return {
        "name": role.name,
        "resources": dict(role.resources),
        "kind": role.kind,
        "flavor": role.flavor,
        "required": _lists(role.required),
        "forbidden": sorted(role.forbidden),
        "member_of": _lists(role.member_of),
        "tags": sorted(role.tags),
    }


def _read_role(values: Mapping[str, Any]) -> Role:
    return Role(
        name=values["name"],
        resources=MappingProxyType(dict(values["resources"])),
        kind=values["kind"],
        flavor=values["flavor"],
        required=tuple(frozenset(one) for one in values["required"]),
        forbidden=frozenset(values["forbidden"]),
        member_of=tuple(frozenset(one) for one in values["member_of"]),
        tags=frozenset(values["tags"]),
    )


def _statement(one: PolicyStatement) -> dict[str, object]:
    return {
        "name": one.name,
        "type": one.type,
        "members": [str(selector) for selector in one.members],
        "zip": one.zip,
        "weight": one.weight,
        "phases": sorted(one.phases),
        "parameters": {name: _plain(value) for name, value in one.parameters.items()},
    }


def _read_statement(values: Mapping[str, Any]) -> PolicyStatement:
    return PolicyStatement(
        name=values["name"],
        type=values["type"],
        members=tuple(Selector.parse(text) for text in values["members"]),
        zip=values["zip"],
        weight=values["weight"],
        phases=frozenset(Phase(one) for one in values["phases"]),
        parameters=MappingProxyType(dict(values["parameters"])),
    )


def _plain(value: object) -> object:
    if isinstance(value, frozenset | set):
        return sorted(value)
    return list(value) if isinstance(value, tuple) else value


def _lists(sets: Iterable[frozenset[str]]) -> list[list[str]]:
    return [sorted(one) for one in sets]


# --- the terrain ---------------------------------------------------------------------------


def encode_terrain(terrain: Terrain) -> dict[str, object]:
    """Plain values; masks as lists of rows. Topology is kept for these hosts only."""
    topology = terrain.topology
    hosts = set(terrain.names)
    return {
        "uuids": list(terrain.uuids),
        "names": list(terrain.names),
        "classes": list(terrain.classes),
        **{name: getattr(terrain, name).tolist() for name in _COLUMNS},
        "traits": _rows(terrain.traits),
        "aggregates": _rows(terrain.aggregates),
        "levels": {tree: list(names) for tree, names in sorted(topology.levels.items())},
        "domains": [
            [domain.tree, domain.name, domain.level, domain.parent]
            for _, domain in sorted(topology.domains.items())
        ],
        "attachments": [
            [tree, host, domain]
            for (tree, host), domain in sorted(topology.attachments.items())
            if host in hosts
        ],
        "occupants": [
            [row, one.consumer, one.project_id, sorted(one.tags)]
            for row in range(terrain.host_count)
            for one in sorted(terrain.occupants_of(row), key=lambda one: one.consumer)
        ],
    }


_COLUMNS = ("capacity", "free", "min_unit", "max_unit", "step_size")


def decode_terrain(values: Mapping[str, Any]) -> Terrain:
    """The terrain that `encode_terrain` wrote."""
    names, count = tuple(values["names"]), len(values["names"])
    topology = Topology.build(
        {tree: tuple(levels) for tree, levels in values["levels"].items()},
        [Domain(name, level, tree, parent) for tree, name, level, parent in values["domains"]],
        [Attachment(host, domain, tree) for tree, host, domain in values["attachments"]],
    )
    occupants: dict[int, list[Occupant]] = {}
    for row, consumer, project, tags in values["occupants"]:
        occupants.setdefault(row, []).append(Occupant(consumer, project, frozenset(tags)))
    shape = (count, len(values["classes"]))
    columns = {name: np.array(values[name], dtype=np.int64).reshape(shape) for name in _COLUMNS}
    return Terrain(
        uuids=tuple(values["uuids"]),
        names=names,
        classes=tuple(values["classes"]),
        **columns,
        traits=_masks(values["traits"], count),
        aggregates=_masks(values["aggregates"], count),
        topology=topology,
        levels=place_hosts(topology, names),
        occupants_of=lambda row: occupants.get(row, ()),
    )


def _rows(masks: Mapping[str, np.typing.NDArray[np.bool_]]) -> dict[str, list[int]]:
    return {name: np.flatnonzero(mask).tolist() for name, mask in sorted(masks.items())}


def _masks(rows: Mapping[str, list[int]], count: int) -> dict[str, np.typing.NDArray[np.bool_]]:
    found = {}
    for name, numbers in rows.items():
        found[name] = np.zeros(count, dtype=np.bool_)
        found[name][numbers] = True
    return found
