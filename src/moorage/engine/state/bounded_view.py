"""Variants of a snapshot for candidate search: capacity over a period, and unlimited classes.

Candidate search uses one number per inventory: `peak`, the highest occupancy from now on. For a
request with an end, `peak` is replaced by the highest occupancy until then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.domain.providers import SHARING_TRAIT
from moorage.engine.state.columns import ClassColumns
from moorage.engine.time.occupancy import NO_SPANS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from moorage.domain.period import Period
    from moorage.domain.resources import ResourceClass
    from moorage.engine.state.snapshot import Snapshot

UNLIMITED: Final = 2**31 - 1
"""Capacity of an unlimited class: the largest integer that Placement's API allows."""


def with_period(snapshot: Snapshot, classes: Iterable[ResourceClass], period: Period) -> Snapshot:
    """The snapshot with `peak` of these classes taken over `period` instead of for ever.

    For candidate search only: `with_states` on the result computes `peak` for ever again.
    """
    narrowed = dict(snapshot.classes)
    for name in classes:
        columns = narrowed.get(name)
        if columns is not None and len(columns.timed):
            narrowed[name] = replace(columns, peak=_peak_over(columns, period))
    return replace(snapshot, classes=MappingProxyType(narrowed))


def _peak_over(columns: ClassColumns, period: Period) -> NDArray[np.int64]:
    """`peak_over` of a period that begins now; `peak` if no booking begins after the period."""
    changes_later = columns.timed.start >= period.end
    return columns.peak_over(period) if changes_later.any() else columns.peak


def with_unlimited(snapshot: Snapshot, max_units: Mapping[ResourceClass, int]) -> Snapshot:
    """The snapshot with unlimited inventories of some extra classes on every root provider.

    Args:
        snapshot: the fleet.
        max_units: the extra class -> `max_unit` of its inventories.

    Sharing providers get none, since they would give each candidate twice.
    """
    sharing = snapshot.traits.get(SHARING_TRAIT)
    kept = snapshot.cache.get("plenty")
    if not isinstance(kept, _UnlimitedColumns) or kept.sharing is not sharing:
        mask = snapshot.alive & (snapshot.parent < 0)
        rows = np.flatnonzero(mask if sharing is None else mask & ~sharing).astype(np.int32)
        kept = snapshot.cache["plenty"] = _UnlimitedColumns(sharing, rows, {})
    added = {name: kept.of(name, unit, len(snapshot.alive)) for name, unit in max_units.items()}
    return replace(snapshot, classes=MappingProxyType({**snapshot.classes, **added}))


@dataclass(frozen=True, slots=True)
class _UnlimitedColumns:
    """Cached columns of unlimited classes; valid while roots and sharing providers are the same."""

    sharing: NDArray[np.bool_] | None
    rows: NDArray[np.int32]
    columns: dict[ResourceClass, ClassColumns]

    def of(self, name: ResourceClass, unit: int, size: int) -> ClassColumns:
        """One class's columns over `size` provider rows."""
        found = self.columns.get(name)
        if found is None:
            found = self.columns[name] = _unlimited(self.rows, size, unit)
        return found


def _unlimited(rows: NDArray[np.int32], size: int, unit: int) -> ClassColumns:
    position = np.full(size, -1, dtype=np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    ones = np.ones(len(rows), dtype=np.int64)
    zeros = np.zeros(len(rows), dtype=np.int64)
    return ClassColumns(
        rows=rows,
        position=position,
        total=ones * UNLIMITED,
        reserved=zeros,
        min_unit=ones,
        max_unit=ones * unit,
        step_size=ones,
        allocation_ratio=np.ones(len(rows)),
        capacity=ones * UNLIMITED,
        used=zeros,
        peak=zeros,
        updated_at=zeros,
        base=zeros,
        timed=NO_SPANS,
        server_base=zeros,
        server_spans=NO_SPANS,
        down=NO_SPANS,
        has_unit_rules=False,
    )
