"""The hosts on which each unit of a plan may be placed by itself, whoever else is there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.ensembles import Ensemble
from moorage.domain.topology import DEFAULT_TREE, Level
from moorage.engine.joint.host_filters import closed_to
from moorage.usecases.decide.closed_hosts import closed_hosts, exclusive_hosts
from moorage.usecases.plans.move_units import Newcomer, PlacedServer, member_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.period import Period
    from moorage.engine.joint.terrain import Terrain
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.plans.ensemble_rules import EnsembleView
    from moorage.usecases.plans.move_units import Unit

    Bools: TypeAlias = NDArray[np.bool_]

ZONE: Final = Level(DEFAULT_TREE, "zone")
"""Servers that no ensemble describes stay in their domain of this level: Nova may keep them there,
and the ledger does not know whether."""
_NOBODY: Final = Ensemble("", "", "", "", (), ())
"""An ensemble of no project, to which every exclusive one is closed."""


class UnitHosts:
    """Where units may be placed, each mask once."""

    def __init__(
        self,
        snapshot: Snapshot,
        terrain: Terrain,
        exclusive: Sequence[Ensemble],
        closed: frozenset[int],
        period: Period,
    ) -> None:
        self._snapshot, self._terrain, self._exclusive = snapshot, terrain, exclusive
        self._period = period
        self._open = np.ones(terrain.host_count, dtype=np.bool_)
        uuids = {snapshot.uuids[row] for row in closed}
        for some in (*closed_hosts((), snapshot, _NOBODY, period).values(), uuids):
            self._open &= self._without(some)
        self._by_key: dict[object, int] = {}
        self._masks: list[Bools] = []
        self._of_strangers: dict[tuple[int, str], Bools] = {}

    def of(
        self,
        units: Sequence[Unit],
        eligible: Sequence[Bools],
        views: Mapping[str, EnsembleView],
        barred: Mapping[str, frozenset[int]],
    ) -> tuple[NDArray[np.int32], Bools]:
        """[U] index into the masks, and [M, H] the masks."""
        found = []
        for unit, mask in zip(units, eligible, strict=True):
            extra = None if isinstance(unit, Newcomer) else barred.get(unit.consumer)
            key, own = self._own(unit, views)
            key = (id(mask), key, extra)
            number = self._by_key.get(key)
            if number is None:
                whole = mask & self._open
                if own is not None:
                    whole &= own
                if extra:
                    whole &= self._without({self._snapshot.uuids[row] for row in extra})
                number = self._by_key[key] = len(self._masks)
                self._masks.append(whole)
            found.append(number)
        shape = (len(self._masks), self._terrain.host_count)
        return (
            np.array(found, dtype=np.int32),
            np.array(self._masks, dtype=np.bool_).reshape(shape),
        )

    def _own(
        self,
        unit: Unit,
        views: Mapping[str, EnsembleView],
    ) -> tuple[object, Bools | None]:
        """A key that is equal for equal masks, and [H] where a unit may be as who it is."""
        if unit.ensemble is None:
            return self._of_stranger(unit)
        member = member_of(unit)
        assert member is not None  # it is of an ensemble
        mask = views[unit.ensemble.id].permitted(member)
        if self._exclusive:
            free = self._kept_out(unit.ensemble, member.role)
            mask = free if mask is None else mask & free
        return (None if mask is None else mask.tobytes()), mask

    def _of_stranger(self, unit: Unit) -> tuple[object, Bools | None]:
        """The same for a server that no ensemble describes: it stays in its zone."""
        assert not isinstance(unit, Newcomer)
        zone = self._zone(unit)
        key = zone, unit.project_id if self._exclusive else ""
        if key not in self._of_strangers:
            found = np.ones(self._terrain.host_count, dtype=np.bool_)
            if zone >= 0:
                found &= self._terrain.domains(ZONE) == zone
            if self._exclusive:
                stranger = replace(_NOBODY, project_id=unit.project_id, roles=(unit.role,))
                found &= self._kept_out(stranger, unit.role.name)
            self._of_strangers[key] = found
        return key, self._of_strangers[key]

    def _kept_out(self, newcomer: Ensemble, role: str) -> Bools:
        """[H] hosts that no exclusive ensemble keeps to itself."""
        some = exclusive_hosts(self._exclusive, self._snapshot, newcomer, self._period)
        return self._without(closed_to(some, role))

    def _zone(self, unit: PlacedServer) -> int:
        """The zone in which a server stays that no ensemble describes; -1: it may go anywhere."""
        if ZONE not in self._terrain.levels:
            return -1
        row = self._terrain.row_of.get(self._snapshot.uuids[unit.host])
        return -1 if row is None else int(self._terrain.domains(ZONE)[row])

    def _without(self, uuids: Collection[str]) -> Bools:
        """[H] all hosts but these."""
        found = np.ones(self._terrain.host_count, dtype=np.bool_)
        row_of = self._terrain.row_of
        found[[row_of[uuid] for uuid in uuids if uuid in row_of]] = False
        return found
