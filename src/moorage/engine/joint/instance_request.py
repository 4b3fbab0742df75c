"""Encodes a joint request and its terrain as plain JSON values, and decodes them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from moorage.domain.ensembles import PolicyStatement, Role, Selector
from moorage.domain.member_names import MemberName
from moorage.domain.period import Period
from moorage.domain.placement import Occupant
from moorage.domain.request_groups import Group
from moorage.domain.request_mix import RequestMix
from moorage.domain.requests import EnsembleRequest
from moorage.domain.shares import Share
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.devices.host_trees import COLUMNS, Devices
from moorage.engine.joint.problem import mask_of
from moorage.engine.joint.room import Room
from moorage.engine.joint.terrain import Terrain, level_columns

if TYPE_CHECKING:
    from collections.abc import Iterable


_GROUP: Final = ("name", "resources", "kind", "required", "forbidden", "member_of", "beside")
_ROLE: Final = (
    *("name", "resources", "kind", "flavor", "required", "forbidden", "member_of", "tags"),
    *("groups", "same_subtree", "isolate"),
)
_STATEMENT: Final = ("name", "type", "members", "zip", "weight", "phases", "parameters")
_REQUEST: Final = (
    *("project_id", "roles", "members", "policies", "objective"),
    *("fixed", "own_consumers", "released", "restated"),
)
# Left out where they say nothing: files that were saved before they were known stay as they are.
_ROLE_AS_NEEDED: Final = ("root_required", "alternatives", "on_server", "servers_of", "shared_with")
_REQUEST_AS_NEEDED: Final = (
    *("absent", "former_edges", "phases", "first_choices", "references", "choices"),
)


def encode_request(request: EnsembleRequest) -> dict[str, object]:
    """Plain values, sets sorted."""
    defaults = EnsembleRequest("", (), (), (), request.period)
    more = [
        name for name in _REQUEST_AS_NEEDED if getattr(request, name) != getattr(defaults, name)
    ]
    period = [request.period.start, request.period.end]
    return {"period": period, **_stated(request, (*_REQUEST, *more))}


def decode_request(values: Mapping[str, Any]) -> EnsembleRequest:
    """The request that `encode_request` wrote."""
    read = {
        "period": Period(*values["period"]),
        "roles": [_of_role(one) for one in values["roles"]],
        "policies": [
            one | {"members": [Selector.parse(text) for text in one["members"]]}
            for one in values["policies"]
        ],
        **{
            field: {MemberName.parse(name): one for name, one in values.get(field, {}).items()}
            for field in ("fixed", "choices")
        },
    }
    return msgspec.convert(
        {**values, **read}, EnsembleRequest, from_attributes=True, dec_hook=_domain_value
    )


def _of_role(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a role: whom it is shared with is written without the share."""
    share = Share("", values["shared_with"]) if "shared_with" in values else None
    alternatives = [_of_role(one) for one in values.get("alternatives", ())]
    return {**values, "share": share, "alternatives": alternatives}


def _domain_value(cls: type, plain: Any) -> object:  # noqa: ANN401 - any JSON
    return MemberName.parse(plain) if cls is MemberName and isinstance(plain, str) else plain


def _stated(thing: object, names: Iterable[str]) -> dict[str, object]:
    return {name: _plain(getattr(thing, name)) for name in names}


def _plain(value: object) -> object:  # noqa: PLR0911 - one return for each kind of value
    match value:
        case Role():
            more = {name: one for name, one in _stated(value, _ROLE_AS_NEEDED).items() if one}
            return _stated(value, _ROLE) | more
        case Group():
            return _stated(value, _GROUP)
        case PolicyStatement():
            return _stated(value, _STATEMENT)
        case MemberName() | Selector() | StrEnum():
            return str(value)
        case frozenset() | set():
            return sorted(map(_plain, value))  # type: ignore[type-var]  # of texts
        case tuple():
            return list(map(_plain, value))
        case Mapping():
            return {str(name): _plain(one) for name, one in value.items()}
        case _:
            return value


def encode_terrain(terrain: Terrain, inspected: Iterable[int] | None = None) -> dict[str, object]:
    """Plain values; masks as lists of rows. Topology is kept for these hosts only.

    Occupants are those of all rows, or of the `inspected` ones.
    """
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
            for row in (range(terrain.host_count) if inspected is None else inspected)
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


def encode_room(room: Room) -> dict[str, object]:
    """What a solver reads of the room; not that of devices, and not the names of its shapes."""
    return {name: getattr(room, name).tolist() for name in _ROOM}


def decode_room(values: Mapping[str, Any]) -> Room:
    """The room that `encode_room` wrote."""
    demand = np.array(values["demand"], dtype=np.int64)
    ceiling, worth = (np.array(values[name], dtype=np.float32) for name in ("ceiling", "worth"))
    return Room(RequestMix(()), demand, ceiling, worth)


_ROOM: Final = ("demand", "ceiling", "worth")


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
