"""Capacity over time: how much of a resource class there is and is used, and how many members fit.

What fits is a sum over hosts, without policies and exclusive hosts. A member takes each class from
one provider of a host's tree. Inventories of sharing providers count once (see `FitCount.shared`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.domain.providers import SHARING_TRAIT
from moorage.engine.state.sharing import sharing
from moorage.engine.time.step_functions import (
    StepFunction,
    StepFunctions,
    occupancy_levels,
    pointwise_minimum,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from moorage.domain.period import Duration, Instant, Period
    from moorage.domain.resources import Amounts
    from moorage.engine.state.columns import ClassColumns
    from moorage.engine.state.snapshot import Snapshot
    from moorage.engine.time.occupancy import Spans

    Ints: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """One resource class over some hosts: step functions of time, in units.

    At every instant `total` is the sum of `reserved`, `allocated` and `available`.
    """

    total: StepFunction
    """Capacity, without hosts that are planned to be away."""
    away: StepFunction
    """Capacity of the hosts that are planned to be away."""
    reserved: StepFunction
    """Of the total, what holds and unclaimed leases have booked."""
    allocated: StepFunction
    """Of the total, what servers have, or are being built for."""
    unbacked: StepFunction
    """Booked, but not part of the total: on hosts that are away, and overages."""
    available: StepFunction
    """Free capacity; an inventory with an overage counts 0."""


def profile(snapshot: Snapshot, hosts: Bools, name: str, window: Period) -> Profile:
    """A resource class over time.

    `hosts` are [P] root rows that count, with everything in their trees. A class that no provider
    has is 0 throughout. The window is half-open, and not before the snapshot's instant.
    """
    columns = snapshot.classes.get(name)
    if columns is None:
        nothing = StepFunction(np.array([window.start]), np.zeros(1, dtype=np.int64))
        return Profile(nothing, nothing, nothing, nothing, nothing, nothing)
    some = _InventorySubset.of(snapshot, columns, hosts)
    booked = some.levels(columns.timed, window).mapped(lambda i, level: level + some.base[i])
    down = some.levels(columns.down, window)
    taken = some.levels(columns.server_spans, window).mapped(lambda i, level: level + some.taken[i])
    there = down.mapped(lambda i, level: np.maximum(some.capacity[i] - level, 0))
    total, allocated = there.total(), pointwise_minimum((taken, there)).total()
    available = booked.mapped(lambda i, level: np.maximum(some.capacity[i] - level, 0)).total()
    away, both = down.total(), booked.total()
    at = np.unique(np.concatenate([one.at for one in (total, allocated, available, away, both)]))
    backed = total.values_at(at) - available.values_at(at)
    return Profile(
        total=total,
        away=StepFunction(total.at, int(np.maximum(some.capacity, 0).sum()) - total.value),
        reserved=StepFunction(at, backed - allocated.values_at(at)),
        allocated=allocated,
        unbacked=StepFunction(at, both.values_at(at) - away.values_at(at) - backed),
        available=available,
    )


@dataclass(frozen=True, slots=True, eq=False)
class FitCount:
    """How many members of one size fit, as functions of time."""

    hosts: StepFunctions
    """Per host: how many fit in its own tree."""
    shared: StepFunction | None
    """How many fit in sharing providers, for hosts without the class; None: no limit."""

    def total(self) -> StepFunction:
        """How many fit on all hosts together."""
        own = self.hosts.total()
        if self.shared is None:
            return own
        at = np.unique(np.concatenate((own.at, self.shared.at)))
        return StepFunction(at, np.minimum(own.values_at(at), self.shared.values_at(at)))


def count_fits(
    snapshot: Snapshot,
    hosts: Bools,
    size: Amounts,
    window: Period,
    *,
    duration: Duration | None = None,
) -> FitCount:
    """How many members of a size fit at each instant, or from each instant on for a duration.

    Args:
        snapshot: the fleet.
        hosts: [P] root rows that count.
        size: what a member takes of each class.
        window: half-open, not before the snapshot's instant.
        duration: for how long each must fit; None: at the instant only. With a duration, the
            functions end where less than it is left of the window.
    """
    rows = np.flatnonzero(hosts)
    number = np.full(len(hosts), -1, dtype=np.int64)
    number[rows] = np.arange(len(rows))
    own: list[StepFunctions] = []
    shared: list[StepFunction] = []
    for name, amount in size.items():
        columns = snapshot.classes.get(name)
        if columns is None:
            return FitCount(_zero(len(rows), window.start), None)
        some = _InventorySubset.of(snapshot, columns, hosts)
        fits = _fits_per_inventory(some, columns, amount, window, duration)
        by_host = fits.grouped(number[some.root], len(rows))
        lenders = sharing_roots_of(snapshot, hosts)
        lent = _InventorySubset.of(snapshot, columns, lenders)
        if len(lent.root):
            has_class = np.zeros(len(rows), dtype=np.bool_)
            has_class[number[some.root]] = True
            pool = _fits_per_inventory(lent, columns, amount, window, duration).total()
            if not has_class.all():
                # Hosts without the class take it from their sharing providers.
                shared.append(pool)
                by_host = by_host.mapped(
                    lambda i, value, has_class=has_class: np.where(has_class[i], value, _UNLIMITED)  # type: ignore[misc]
                )
        own.append(by_host)
    return FitCount(pointwise_minimum(own), _pointwise_minimum(shared))


_UNLIMITED: Final = 2**31
"""More than fits anywhere."""


def _pointwise_minimum(some: list[StepFunction]) -> StepFunction | None:
    if not some:
        return None
    at = np.unique(np.concatenate([one.at for one in some]))
    return StepFunction(at, np.minimum.reduce([one.values_at(at) for one in some]))


def _zero(count: int, start: Instant) -> StepFunctions:
    return StepFunctions(
        count,
        np.arange(count, dtype=np.int64),
        np.full(count, start, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
    )


def _sharing_roots(snapshot: Snapshot) -> Bools:
    """[P] roots that share their inventories with other trees."""
    sharing = snapshot.traits.get(SHARING_TRAIT)
    if sharing is None:
        return np.zeros(len(snapshot.alive), dtype=np.bool_)
    return sharing & snapshot.alive & (snapshot.parent < 0)


def sharing_roots_of(snapshot: Snapshot, hosts: Bools) -> Bools:
    """[P] roots that share their inventories with any of these hosts (root rows)."""
    found = np.zeros(len(snapshot.alive), dtype=np.bool_)
    pairs = sharing(snapshot)
    found[pairs.lender[hosts[pairs.anchor]]] = True
    return found & _sharing_roots(snapshot)


def _fits_per_inventory(
    some: _InventorySubset,
    columns: ClassColumns,
    amount: int,
    window: Period,
    duration: Duration | None,
) -> StepFunctions:
    """How many times the amount fits in each inventory, over time."""
    obeys = (
        (columns.min_unit[some.positions] <= amount)
        & (columns.max_unit[some.positions] >= amount)
        & (amount % columns.step_size[some.positions] == 0)
    )
    room = np.where(obeys, some.capacity - some.base, 0)
    fits = some.levels(columns.timed, window).mapped(
        lambda i, level: np.maximum(room[i] - level, 0) // amount
    )
    return fits if duration is None else fits.minimum_through(duration, window.end - duration)


@dataclass(frozen=True, slots=True, eq=False)
class _InventorySubset:
    """The m inventories of a class in the trees of some hosts."""

    positions: Ints
    """[m] index into the class's columns."""
    root: Ints
    """[m] row of the host."""
    index: Ints
    """[P] provider row -> index among the m, or -1."""
    capacity: Ints
    base: Ints
    taken: Ints

    @classmethod
    def of(cls, snapshot: Snapshot, columns: ClassColumns, hosts: Bools) -> _InventorySubset:
        root = snapshot.root[columns.rows].astype(np.int64)
        at = np.flatnonzero(hosts[root])
        index = np.full(len(columns.position), -1, dtype=np.int64)
        index[columns.rows[at]] = np.arange(len(at))
        return cls(
            at, root[at], index, columns.capacity[at], columns.base[at], columns.server_base[at]
        )

    def levels(self, spans: Spans, window: Period) -> StepFunctions:
        mine = spans.selected(self.index[spans.owner] >= 0) if len(spans) else spans
        owned = replace(mine, owner=self.index[mine.owner])
        return occupancy_levels(owned, len(self.positions), window)


def hosts_where(
    snapshot: Snapshot,
    *,
    required: tuple[frozenset[str], ...] = (),
    forbidden: frozenset[str] = frozenset(),
    within: Bools | None = None,
) -> Bools:
    """[P] living hosts that are not sharing providers and meet the trait rules.

    What a server offers does not count: it is for the projects that its owner shares it with.

    Args:
        snapshot: the fleet.
        required: trait sets; some provider of the tree must have one trait of each.
        forbidden: traits that the root itself must not have.
        within: [P] root rows to select from; None: all.
    """
    found = snapshot.fleet & (snapshot.parent < 0) & ~_sharing_roots(snapshot)
    if within is not None:
        found &= within
    for any_of in required:
        has = np.zeros(len(found), dtype=np.bool_)
        for trait in any_of:
            mask = snapshot.traits.get(trait)
            if mask is not None:
                has[snapshot.root[mask & snapshot.alive]] = True
        found &= has
    for trait in forbidden:
        mask = snapshot.traits.get(trait)
        if mask is not None:
            found &= ~mask
    return found
