"""The rows of the terrains of one fleet, kept with its snapshots."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from moorage.domain.providers import SHARING_TRAIT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.topology import Level, Topology
    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TerrainRows:
    """The rows of a fleet's terrains: hosts, pools if they matter, and server providers.

    Valid while the topology, the roots, sharing and server providers stay.
    """

    topology: Topology
    sharing: Bools | None
    offered_by: Mapping[int, str]
    servers: tuple[int, ...]
    """Rows of server providers among them."""
    rows: Ints
    """Their rows in the snapshot."""
    uuids: tuple[str, ...]
    names: tuple[str, ...]
    levels: Mapping[Level, tuple[Ints, tuple[str, ...]]]
    """As `Terrain.levels`. Empty if there are server providers: their servers may move."""
    lists: dict[Level, list[int]] = field(default_factory=dict)
    """As `Terrain._lists`."""

    @cached_property
    def row_of(self) -> Mapping[str, int]:
        """As `Terrain.row_of`."""
        return rows_by_name(self.uuids, self.names)


def terrain_rows(snapshot: Snapshot, servers: tuple[int, ...], *, pools: bool) -> TerrainRows:
    """The rows of a terrain with these server providers, kept with the snapshot."""
    sharing, offered = snapshot.traits.get(SHARING_TRAIT), snapshot.offered_by
    key = ("hosts", bool(servers), pools)
    kept = snapshot.cache.get(key)
    if (
        not isinstance(kept, TerrainRows)
        or kept.topology is not snapshot.topology
        or kept.sharing is not sharing
        or kept.offered_by is not offered
        or kept.servers != servers
    ):
        rows = snapshot.hosts.astype(np.int64)
        rows = rows if sharing is None or pools else rows[~sharing[rows]]
        rows = np.concatenate((rows, np.array(servers, dtype=np.int64)))
        uuids = tuple(snapshot.uuids[row] for row in rows.tolist())
        names = tuple(snapshot.names[row] for row in rows.tolist())
        levels = {} if servers else levels_of_rows(snapshot, rows, servers=False)
        kept = snapshot.cache[key] = TerrainRows(
            snapshot.topology, sharing, offered, servers, rows, uuids, names, levels
        )
    return kept


def levels_of_rows(
    snapshot: Snapshot, rows: Ints, *, servers: bool = True
) -> Mapping[Level, tuple[Ints, tuple[str, ...]]]:
    """`Terrain.levels` of these rows of the snapshot; `servers`: some are of server providers."""
    domains = snapshot.domains if servers else snapshot.domains_of_hosts
    return {
        level: (domains(level)[rows].astype(np.int64), snapshot.domain_names(level))
        for level in snapshot.topology.every_level
    }


def rows_by_name(uuids: Sequence[str], names: Sequence[str]) -> Mapping[str, int]:
    """Host name or UUID -> row."""
    found = {name: row for row, name in enumerate(names)}
    found.update((uuid, row) for row, uuid in enumerate(uuids))
    return MappingProxyType(found)
