"""Encodes a joint request and its terrain as plain JSON values, and decodes them."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.domain.ensembles import CREATION, Phase, PolicyStatement, Role, Selector
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.placement import Occupant
from moorage.domain.request_groups import Group, GroupKind
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.domain.shares import Share
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.devices.host_trees import COLUMNS, Devices
from moorage.engine.joint.problem import mask_of
from moorage.engine.joint.terrain import Terrain, level_columns

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
        **({"absent": [str(member) for member in request.absent]} if request.absent else {}),
        **({} if request.former_edges is None else {"former_edges": _edges(request.former_edges)}),
        # As with roles: left out where it is what it was before it was known.
        **({"phases": sorted(request.phases)} if request.phases != CREATION else {}),
        **({} if request.first_choices else {"first_choices": False}),
        **(
            {"references": {one: sorted(hosts) for one, hosts in request.references.items()}}
            if request.references
            else {}
        ),
        **(
            {"choices": {str(one): n for one, n in sorted(request.choices.items())}}
            if request.choices
            else {}
        ),
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
        absent=tuple(MemberName.parse(text) for text in values.get("absent", ())),
        former_edges=_read_edges(values["former_edges"]) if "former_edges" in values else None,
        phases=frozenset(map(Phase, values.get("phases", CREATION))),
        choices=MappingProxyType(
            {MemberName.parse(text): n for text, n in values.get("choices", {}).items()}
        ),
        first_choices=values.get("first_choices", True),
        references=MappingProxyType(
            {one: frozenset(hosts) for one, hosts in values.get("references", {}).items()}
        ),
    )


def _edges(former: Mapping[str, Iterable[Iterable[MemberName]]]) -> dict[str, object]:
    return {
        name: [[str(member) for member in edge] for edge in edges]
        for name, edges in sorted(former.items())
    }


def _read_edges(
    values: Mapping[str, list[list[str]]],
) -> Mapping[str, tuple[tuple[MemberName, ...], ...]]:
    return MappingProxyType(
        {
            name: tuple(tuple(MemberName.parse(text) for text in edge) for edge in edges)
            for name, edges in values.items()
        }
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
        "groups": [_group(one) for one in role.groups],
        "same_subtree": _lists(role.same_subtree),
        "isolate": role.isolate,
        # Left out where it is empty: files that were saved before it was known stay as they are.
        **({"root_required": sorted(role.root_required)} if role.root_required else {}),
        **(
            {"alternatives": [_role(one) for one in role.alternatives]} if role.alternatives else {}
        ),
        **({} if role.on_server is None else {"on_server": role.on_server}),
        **({"servers_of": sorted(role.servers_of)} if role.servers_of else {}),
        **({"shared_with": role.shared_with} if role.shared_with else {}),
    }


def _group(one: Group) -> dict[str, object]:
    return {
        "name": one.name,
        "resources": dict(one.resources),
        "kind": str(one.kind),
        "required": _lists(one.required),
        "forbidden": sorted(one.forbidden),
        "member_of": _lists(one.member_of),
        "beside": one.beside,
    }


def _read_group(values: Mapping[str, Any]) -> Group:
    return Group(
        name=values["name"],
        resources=MappingProxyType(dict(values["resources"])),
        kind=GroupKind(values["kind"]),
        required=tuple(frozenset(one) for one in values["required"]),
        forbidden=frozenset(values["forbidden"]),
        member_of=tuple(frozenset(one) for one in values["member_of"]),
        beside=values["beside"],
    )


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
        groups=tuple(_read_group(one) for one in values.get("groups", ())),
        same_subtree=tuple(frozenset(one) for one in values.get("same_subtree", ())),
        isolate=values.get("isolate", False),
        root_required=frozenset(values.get("root_required", ())),
        alternatives=tuple(_read_role(one) for one in values.get("alternatives", ())),
        on_server=values.get("on_server"),
        servers_of=frozenset(values.get("servers_of", ())),
        share=Share("", values["shared_with"]) if "shared_with" in values else None,
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
        "devices": None if terrain.devices is None else _devices(terrain.devices),
        **({} if terrain.standing_on is None else {"standing_on": terrain.standing_on.tolist()}),
        **({"usable": _rows(terrain.usable)} if terrain.usable else {}),
        **({"offered": _rows(terrain.offered)} if terrain.offered else {}),
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
    columns: dict[str, Any] = {
        name: np.array(values[name], dtype=np.int64).reshape(shape) for name in _COLUMNS
    }
    standing_on = None
    if "standing_on" in values:
        standing_on = np.array(values["standing_on"], dtype=np.int64)
    return Terrain(
        uuids=tuple(values["uuids"]),
        names=names,
        classes=tuple(values["classes"]),
        **columns,
        traits=_masks(values["traits"], count),
        aggregates=_masks(values["aggregates"], count),
        topology=topology,
        levels=level_columns(topology, names, standing_on),
        occupants_of=lambda row: occupants.get(row, ()),
        standing_on=standing_on,
        usable=_masks(values.get("usable", {}), count),
        offered=_masks(values.get("offered", {}), count),
        devices=None if values.get("devices") is None else _read_devices(values["devices"]),
    )


def _devices(devices: Devices) -> dict[str, object]:
    computing = devices.trees.computing
    return {
        "uuids": list(devices.uuids),
        "classes": list(devices.classes),
        **{name: getattr(devices.trees, name).tolist() for name in _LINKS},
        **{name: getattr(devices, name).tolist() for name in COLUMNS},
        "traits": _rows(devices.traits),
        "aggregates": _rows(devices.aggregates),
        **({"computing": np.flatnonzero(computing).tolist()} if computing.any() else {}),
    }


_LINKS = ("host", "parent", "borrower", "lender")


def _read_devices(values: Mapping[str, Any]) -> Devices:
    count, shape = len(values["uuids"]), (len(values["uuids"]), len(values["classes"]))
    return Devices.stated(
        uuids=tuple(values["uuids"]),
        classes=tuple(values["classes"]),
        links={name: np.array(values[name], dtype=np.int64) for name in _LINKS},
        columns={name: np.array(values[name], dtype=np.int64).reshape(shape) for name in COLUMNS},
        traits=_masks(values["traits"], count),
        aggregates=_masks(values["aggregates"], count),
        computing=mask_of(values.get("computing", []), count),
    )


def _rows(masks: Mapping[str, np.typing.NDArray[np.bool_]]) -> dict[str, list[int]]:
    return {name: np.flatnonzero(mask).tolist() for name, mask in sorted(masks.items())}


def _masks(rows: Mapping[str, list[int]], count: int) -> dict[str, np.typing.NDArray[np.bool_]]:
    return {name: mask_of(numbers, count) for name, numbers in rows.items()}
