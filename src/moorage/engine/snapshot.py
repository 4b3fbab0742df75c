"""The immutable columnar view of the ledger at one revision.

Memory follows the number of inventories, not providers x classes: every resource class has
its own columns over just the providers that have it. A new revision shares every column
that did not change with the old one (`with_states`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from moorage.domain.bookings import Booking
    from moorage.domain.period import Instant
    from moorage.domain.placement import Occupant
    from moorage.domain.providers import ResourceProvider
    from moorage.domain.topology import Topology

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.int32]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ProviderState:
    """All a snapshot must know of one provider: what the store's feed hands over."""

    provider: ResourceProvider
    bookings: tuple[Booking, ...] = ()
    """Every stored booking on it, lapsed ones included or not: the snapshot judges."""
    occupants: tuple[Occupant, ...] = ()
    """One per consumer among the bookings."""


@dataclass(frozen=True)
class ClassColumns:
    """One resource class over the n providers that have it, by provider row."""

    rows: Rows
    """[n] provider rows, ascending."""
    position: Rows
    """[P] index into these columns per provider row, or -1."""
    total: Ints
    reserved: Ints
    min_unit: Ints
    max_unit: Ints
    step_size: Ints
    allocation_ratio: NDArray[np.float64]
    capacity: Ints
    """[n] `int((total - reserved) * allocation_ratio)`."""
    used: Ints
    """[n] sum of allocations: what Placement's wire shows."""
    peak: Ints
    """[n] the highest occupancy at any instant of [taken_at, FOREVER), all live bookings."""
    updated_at: Ints


@dataclass(frozen=True)
class Snapshot:
    """P providers at one revision. Rows are stable between revisions while providers live."""

    revision: int
    topology_revision: int
    taken_at: Instant
    valid_until: Instant
    """The next instant at which time alone changes an answer (a lapse, a start or an end)."""
    uuids: tuple[str, ...]
    names: tuple[str, ...]
    row_of: Mapping[str, int]
    """UUID -> row."""
    parent: Rows
    """[P] parent row or -1."""
    root: Rows
    """[P] root row (its own for a root)."""
    alive: Bools
    """[P] False for rows of deleted providers."""
    generation: Ints
    revisions: Ints
    """[P] internal revision per provider."""
    created_at: Ints
    updated_at: Ints
    classes: Mapping[str, ClassColumns]
    traits: Mapping[str, Bools]
    """Trait -> [P] mask; absent: no provider has it."""
    aggregates: Mapping[str, Rows]
    """Aggregate UUID -> rows, ascending."""
    topology: Topology
