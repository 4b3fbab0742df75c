"""The fleet as a request with an end sees it.

Candidates are judged by one number per inventory, the highest occupancy from now on. Whoever says
when it ends is judged by the highest until then; all the rest of the search is the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from moorage.engine.state.columns import ClassColumns
from moorage.engine.state.sharing import SHARES
from moorage.engine.time.occupancy import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from moorage.domain.period import Period
    from moorage.domain.resources import ResourceClass
    from moorage.engine.state.snapshot import Snapshot

PLENTY: Final = 2**31 - 1
"""Units of a class that nobody has to count; the most that Placement's wire can say."""


def within(snapshot: Snapshot, classes: Iterable[ResourceClass], period: Period) -> Snapshot:
    """The same fleet, where room of these classes is what is free throughout `period`.

    Only for who looks for room: what follows from it by `with_states` is judged for ever again.
    """
    narrowed = dict(snapshot.classes)
    for name in classes:
        columns = narrowed.get(name)
        if columns is not None and len(columns.timed):
            narrowed[name] = replace(columns, peak=_peak_within(columns, period))
    return replace(snapshot, classes=MappingProxyType(narrowed))


def _peak_within(columns: ClassColumns, period: Period) -> NDArray[np.int64]:
    """`peak_over` of a period that begins now; nothing to do where nothing begins after it."""
    late = columns.timed.start >= period.end
    return columns.peak_over(period) if late.any() else columns.peak


def with_plenty(snapshot: Snapshot, most: Mapping[ResourceClass, int]) -> Snapshot:
    """The same fleet, where every root provider has plenty of some classes besides.

    Args:
        snapshot: the fleet.
        most: the largest unit of each of them.

    Providers that share with other trees have none: nobody should get one candidate twice.
    """
    sharing = snapshot.traits.get(SHARES)
    kept = snapshot.cache.get("plenty")
    if not isinstance(kept, _Plenty) or kept.sharing is not sharing:
        mask = snapshot.alive & (snapshot.parent < 0)
        rows = np.flatnonzero(mask if sharing is None else mask & ~sharing).astype(np.int32)
        kept = snapshot.cache["plenty"] = _Plenty(sharing, rows, {})
    added = {name: kept.of(name, unit, len(snapshot.alive)) for name, unit in most.items()}
    return replace(snapshot, classes=MappingProxyType({**snapshot.classes, **added}))


@dataclass(frozen=True, slots=True)
class _Plenty:
    """Columns of such classes, kept as long as the same providers are roots and share."""

    sharing: NDArray[np.bool_] | None
    rows: NDArray[np.int32]
    made: dict[ResourceClass, ClassColumns]

    def of(self, name: ResourceClass, unit: int, size: int) -> ClassColumns:
        """One class's columns over `size` provider rows."""
        found = self.made.get(name)
        if found is None:
            found = self.made[name] = _plenty(self.rows, size, unit)
        return found


def _plenty(rows: NDArray[np.int32], size: int, unit: int) -> ClassColumns:
    position = np.full(size, -1, dtype=np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    ones = np.ones(len(rows), dtype=np.int64)
    zeros = np.zeros(len(rows), dtype=np.int64)
    return ClassColumns(
        rows=rows,
        position=position,
        total=ones * PLENTY,
        reserved=zeros,
        min_unit=ones,
        max_unit=ones * unit,
        step_size=ones,
        allocation_ratio=np.ones(len(rows)),
        capacity=ones * PLENTY,
        used=zeros,
        peak=zeros,
        updated_at=zeros,
        base=zeros,
        timed=NOTHING,
        taken=zeros,
        taking=NOTHING,
        down=NOTHING,
        stepped=False,
    )
