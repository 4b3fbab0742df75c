"""Capacity over time: how much of a resource class there is, who has it, and how many fit.

Hosts are judged alone: what fits is a sum over hosts, without policies, and without what
ensembles keep to themselves. A member takes each class from one provider of a host's tree. What
other trees share counts once for all (see `Counted.shared`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.state.sharing import SHARING_TRAIT, sharing
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

    The total is what is reserved, allocated and available, at every instant.
    """

    total: StepFunction
    """What may be booked, if nothing was: without hosts that are planned to be away."""
    away: StepFunction
    """What may not, since its hosts are planned to be away."""
    reserved: StepFunction
    """Of the total, booked for who is not there yet: holds, and leases not claimed."""
    allocated: StepFunction
    """Of the total, what servers have, or are being built for."""
    unbacked: StepFunction
    """Booked, but no part of the total: on hosts that are away, and what is over-full."""
    available: StepFunction
    """What is left on every provider; where one is over-full, nothing."""


def profile(snapshot: Snapshot, hosts: Bools, name: str, window: Period) -> Profile:
    """A resource class over time.

    Args:
        snapshot: the fleet.
        hosts: [P] root rows that count, with everything in their trees.
        name: the resource class; one that nobody has is 0 throughout.
        window: half-open, not before the snapshot's instant.
    """
    columns = snapshot.classes.get(name)
    if columns is None:
        nothing = StepFunction(np.array([window.start]), np.zeros(1, dtype=np.int64))
        return Profile(nothing, nothing, nothing, nothing, nothing, nothing)
    some = _Some.of(snapshot, columns, hosts)
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
class Counted:
    """How many members of one size fit, as functions of time."""

    hosts: StepFunctions
    """By host: how many of them fit there, judged by what its own tree has."""
    shared: StepFunction | None
    """How many fit in what other trees share with hosts that have none of their own."""

    def total(self) -> StepFunction:
        """How many fit, over all hosts."""
        own = self.hosts.total()
        if self.shared is None:
            return own
        at = np.unique(np.concatenate((own.at, self.shared.at)))
        return StepFunction(at, np.minimum(own.values_at(at), self.shared.values_at(at)))


def counted(
    snapshot: Snapshot,
    hosts: Bools,
    size: Amounts,
    window: Period,
    *,
    through: Duration | None = None,
) -> Counted:
    """How many members of a size fit at each instant, or from each instant on for a while.

    Args:
        snapshot: the fleet.
        hosts: [P] root rows that count.
        size: what a member takes of each class.
        window: half-open, not before the snapshot's instant.
        through: for how long they stay; None: at the instant. Then instants count up to where
            that long is left of the window.
    """
    rows = np.flatnonzero(hosts)
    number = np.full(len(hosts), -1, dtype=np.int64)
    number[rows] = np.arange(len(rows))
    own: list[StepFunctions] = []
    shared: list[StepFunction] = []
    for name, amount in size.items():
        columns = snapshot.classes.get(name)
        if columns is None:
            return Counted(_nowhere(len(rows), window.start), None)
        some = _Some.of(snapshot, columns, hosts)
        fits = _quotients(some, columns, amount, window, through)
        by_host = fits.grouped(number[some.root], len(rows))
        lenders = lenders_of(snapshot, hosts)
        lent = _Some.of(snapshot, columns, lenders)
        if len(lent.root):
            has = np.zeros(len(rows), dtype=np.bool_)
            has[number[some.root]] = True
            pool = _quotients(lent, columns, amount, window, through).total()
            if not has.all():
                # Hosts without any of their own take it from whoever shares it.
                shared.append(pool)
                by_host = by_host.mapped(
                    lambda i, value, has=has: np.where(has[i], value, _PLENTY)  # type: ignore[misc]
                )
        own.append(by_host)
    return Counted(pointwise_minimum(own), _least(shared))


_PLENTY: Final = 2**31
"""More than fits anywhere."""


def _least(some: list[StepFunction]) -> StepFunction | None:
    if not some:
        return None
    at = np.unique(np.concatenate([one.at for one in some]))
    return StepFunction(at, np.minimum.reduce([one.values_at(at) for one in some]))


def _nowhere(count: int, start: Instant) -> StepFunctions:
    return StepFunctions(
        count,
        np.arange(count, dtype=np.int64),
        np.full(count, start, dtype=np.int64),
        np.zeros(count, dtype=np.int64),
    )


def _lenders(snapshot: Snapshot) -> Bools:
    """[P] roots that share what they have with other trees."""
    sharing = snapshot.traits.get(SHARING_TRAIT)
    if sharing is None:
        return np.zeros(len(snapshot.alive), dtype=np.bool_)
    return sharing & snapshot.alive & (snapshot.parent < 0)


def lenders_of(snapshot: Snapshot, hosts: Bools) -> Bools:
    """[P] roots that share what they have with some of these hosts (root rows)."""
    found = np.zeros(len(snapshot.alive), dtype=np.bool_)
    pairs = sharing(snapshot)
    found[pairs.lender[hosts[pairs.anchor]]] = True
    return found & _lenders(snapshot)


def _quotients(
    some: _Some, columns: ClassColumns, amount: int, window: Period, through: Duration | None
) -> StepFunctions:
    """How many times the amount fits in each inventory."""
    obeys = (
        (columns.min_unit[some.at] <= amount)
        & (columns.max_unit[some.at] >= amount)
        & (amount % columns.step_size[some.at] == 0)
    )
    room = np.where(obeys, some.capacity - some.base, 0)
    fits = some.levels(columns.timed, window).mapped(
        lambda i, level: np.maximum(room[i] - level, 0) // amount
    )
    return fits if through is None else fits.minimum_through(through, window.end - through)


@dataclass(frozen=True, slots=True, eq=False)
class _Some:
    """The m inventories of a class that stand in the trees of some hosts."""

    at: Ints
    """[m] index into the class's columns."""
    root: Ints
    """[m] row of the host."""
    index: Ints
    """[P] provider row -> which of the m; -1: none of them."""
    capacity: Ints
    base: Ints
    taken: Ints

    @classmethod
    def of(cls, snapshot: Snapshot, columns: ClassColumns, hosts: Bools) -> _Some:
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
        return occupancy_levels(owned, len(self.at), window)


def hosts_where(
    snapshot: Snapshot,
    *,
    required: tuple[frozenset[str], ...] = (),
    forbidden: frozenset[str] = frozenset(),
    within: Bools | None = None,
) -> Bools:
    """[P] living root rows that do not share with others, and have what is asked.

    Args:
        snapshot: the fleet.
        required: all of these, each by any trait of its set; any provider of the tree may have it.
        forbidden: none of these on the host itself.
        within: [P] root rows of interest; None: all.
    """
    found = snapshot.alive & (snapshot.parent < 0) & ~_lenders(snapshot)
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
