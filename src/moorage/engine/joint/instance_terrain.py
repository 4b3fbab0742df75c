"""Encodes an instance's terrain and devices as plain JSON values, and decodes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.domain.placement import Occupant
from moorage.domain.topology import Attachment, Domain, Topology
from moorage.engine.devices.host_trees import COLUMNS, Devices
from moorage.engine.joint.terrain import Terrain, level_columns

if TYPE_CHECKING:
    from collections.abc import Mapping


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
    return Terrain(
        uuids=tuple(values["uuids"]),
        names=names,
        classes=tuple(values["classes"]),
        **columns,
        traits=_masks(values["traits"], count),
        aggregates=_masks(values["aggregates"], count),
        topology=topology,
        levels=level_columns(topology, names),
        occupants_of=lambda row: occupants.get(row, ()),
        devices=None if values.get("devices") is None else _read_devices(values["devices"]),
    )


def _devices(devices: Devices) -> dict[str, object]:
    return {
        "uuids": list(devices.uuids),
        "classes": list(devices.classes),
        **{name: getattr(devices, name).tolist() for name in (*_LINKS, *COLUMNS)},
        "traits": _rows(devices.traits),
        "aggregates": _rows(devices.aggregates),
    }


_LINKS = ("host", "parent", "borrower", "lender")


def _read_devices(values: Mapping[str, Any]) -> Devices:
    count, shape = len(values["uuids"]), (len(values["uuids"]), len(values["classes"]))
    return Devices(
        uuids=tuple(values["uuids"]),
        classes=tuple(values["classes"]),
        **{name: np.array(values[name], dtype=np.int64) for name in _LINKS},
        **{name: np.array(values[name], dtype=np.int64).reshape(shape) for name in COLUMNS},
        traits=_masks(values["traits"], count),
        aggregates=_masks(values["aggregates"], count),
    )


def _rows(masks: Mapping[str, np.typing.NDArray[np.bool_]]) -> dict[str, list[int]]:
    return {name: np.flatnonzero(mask).tolist() for name, mask in sorted(masks.items())}


def _masks(rows: Mapping[str, list[int]], count: int) -> dict[str, np.typing.NDArray[np.bool_]]:
    found = {}
    for name, numbers in rows.items():
        found[name] = np.zeros(count, dtype=np.bool_)
        found[name][numbers] = True
    return found
