"""The nested and sharing providers of hosts (devices) that one joint request may use, as columns.

Requests whose resources all come from the hosts' root providers need none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from moorage.engine.devices.device_trees import DeviceTrees, Positions, device_trees
from moorage.engine.state.sharing import sharing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from moorage.domain.ensembles import Role
    from moorage.domain.requests import EnsembleRequest
    from moorage.domain.resources import Amounts
    from moorage.engine.state.sharing import Sharing
    from moorage.engine.state.snapshot import Snapshot

    Ints: TypeAlias = NDArray[np.int64]
    Rows: TypeAlias = NDArray[np.integer]
    Bools: TypeAlias = NDArray[np.bool_]

UNITS = ("min_unit", "max_unit", "step_size")
COLUMNS = ("capacity", "free", *UNITS)


@dataclass(frozen=True, eq=False)
class UnitColumns:
    """The unit rules of one class, of n providers."""

    position: Rows
    """[rows of the fleet] index into the others, or -1."""
    min_unit: Ints
    max_unit: Ints
    step_size: Ints
    """[n]"""


NO_UNITS: Final = UnitColumns(*(np.zeros(0, dtype=np.int64) for _ in range(4)))
"""Of a class that no provider has."""


@dataclass(frozen=True, eq=False)
class DeviceRules:
    """What decides which requests a provider may serve, beside its place in a tree."""

    units: tuple[UnitColumns, ...]
    """[K]"""
    traits: Mapping[str, Bools]
    """Trait -> [rows of the fleet]; absent: no provider has it."""
    aggregates: Mapping[str, Rows]
    """Aggregate UUID -> rows of the fleet, ascending; absent: no provider is in it."""
    words: frozenset[str]
    """The traits and aggregates that the request names."""


@dataclass(frozen=True, eq=False)
class Devices:
    """P providers (positions) with K resource classes, for H hosts (rows of a terrain)."""

    trees: DeviceTrees
    rules: DeviceRules
    classes: tuple[str, ...]
    capacity: Ints
    """[P, K] when empty; 0 where the provider has none of the class."""
    free: Ints
    """[P, K] capacity less the peak of every live booking over the request's period."""
    emptied: bool = False
    """Whether all bookings, or most, are left out."""

    @classmethod
    def stated(  # noqa: PLR0913 - all that an instance says of devices
        cls,
        *,
        uuids: tuple[str, ...],
        classes: tuple[str, ...],
        links: Mapping[str, Ints],
        columns: Mapping[str, Ints],
        traits: Mapping[str, Bools],
        aggregates: Mapping[str, Bools],
        computing: Bools,
    ) -> Devices:
        """Devices that were written down.

        `links` are the `host`, `parent`, `borrower` and `lender` of `DeviceTrees`, `columns` the
        `COLUMNS` [P, K]; `traits` and `aggregates` [P] of those that the request names.
        """
        rows = np.arange(len(uuids))
        row_of = {uuid: at for at, uuid in enumerate(uuids)}
        host, parent = links["host"], links["parent"]
        borrower, lender = links["borrower"], links["lender"]
        return cls(
            trees=DeviceTrees(
                rows, row_of, uuids, host, parent, computing, borrower=borrower, lender=lender
            ),
            rules=DeviceRules(
                units=tuple(
                    UnitColumns(rows, *(columns[name][:, k] for name in UNITS))
                    for k in range(len(classes))
                ),
                traits=traits,
                aggregates={uuid: np.flatnonzero(mask) for uuid, mask in aggregates.items()},
                words=frozenset((*traits, *aggregates)),
            ),
            classes=classes,
            capacity=columns["capacity"],
            free=columns["free"],
        )

    @property
    def uuids(self) -> tuple[str, ...]:
        """UUIDs of the providers, [P]."""
        return self.trees.uuids

    @property
    def position_of(self) -> Positions:
        """Provider UUID -> position."""
        return self.trees.position_of

    @property
    def accessible(self) -> tuple[Rows, Rows, Bools]:
        """As of `DeviceTrees`."""
        return self.trees.accessible

    @cached_property
    def min_unit(self) -> Ints:
        """[P, K]; 0 where the provider has none of the class."""
        return self._units("min_unit")

    @cached_property
    def max_unit(self) -> Ints:
        """[P, K]; 0 where the provider has none of the class, so that no amount obeys."""
        return self._units("max_unit")

    @cached_property
    def step_size(self) -> Ints:
        """[P, K]; 1 where the provider has none of the class."""
        return self._units("step_size")

    def _units(self, name: str) -> Ints:
        found = np.zeros((len(self.classes), len(self.uuids)), dtype=np.int64).T
        for k in range(len(self.classes)):
            found[:, k] = self.unit_rule(name, k)
        return found

    def unit_rule(self, name: str, k: int, positions: Rows | None = None) -> Ints:
        """[P], or of some positions, one of the `UNITS` for a class.

        Where a provider has none of the class it is 0, or for steps 1.
        """
        rows, columns = self.trees.rows, self.rules.units[k]
        rows = rows if positions is None else rows[positions]
        found = np.full(len(rows), int(name == "step_size"), dtype=np.int64)
        if len(columns.min_unit):
            at = columns.position[rows]
            there = at >= 0
            found[there] = getattr(columns, name)[at[there]]
        return found

    def max_amount(self, position: int, k: int) -> int:
        """The most of a class that one member may take of a provider."""
        return int(self.unit_rule("max_unit", k, np.array([position]))[0])

    @property
    def traits(self) -> Mapping[str, Bools]:
        """Trait that the request names -> [P]; absent: no provider of the fleet has it."""
        return {one: self.has_trait(one) for one in self.rules.words & self.rules.traits.keys()}

    @property
    def aggregates(self) -> Mapping[str, Bools]:
        """Aggregate UUID that the request names -> [P]; absent: no provider is in it."""
        named = self.rules.words & self.rules.aggregates.keys()
        return {one: self.in_any_aggregate((one,)) for one in named}

    def has_trait(self, trait: str) -> Bools:
        """[P] whether the provider itself carries the trait."""
        mask = self.rules.traits.get(trait)
        return np.zeros(len(self.uuids), dtype=np.bool_) if mask is None else mask[self.trees.rows]

    def in_any_aggregate(self, aggregates: Iterable[str]) -> Bools:
        """[P] whether the provider itself is in one of the aggregates."""
        found = np.zeros(len(self.uuids), dtype=np.bool_)
        for uuid in aggregates:
            members = self.rules.aggregates.get(uuid)
            if members is not None:
                found |= np.isin(self.trees.rows, members)
        return found

    def per_host(self, own: Ints, lent: Ints, count: int) -> Ints:
        """[H] sums over what each of `count` hosts may use: own [P] providers and lent ones [P]."""
        trees = self.trees
        found = np.zeros(count + 1, dtype=np.int64)  # the last is for providers of no host
        np.add.at(found, trees.host, own)
        if len(trees.lender):
            np.add.at(found, trees.borrower, lent[trees.lender])
        return found[:-1]

    def with_places(self, places: Iterable[Mapping[str, Amounts]]) -> Devices:
        """The devices after these amounts by provider UUID were taken from `free`."""
        free = self.free.copy()
        for place in places:
            for uuid, amounts in place.items():
                for name, amount in amounts.items():
                    free[self.position_of[uuid], self.classes.index(name)] -= amount
        return replace(self, free=free)

    def without_bookings(self) -> Devices:
        """The devices with all capacity free."""
        return replace(self, free=self.capacity, emptied=True)


def classes_of(roles: Iterable[Role]) -> tuple[str, ...]:
    """Every resource class that the roles and their groups ask for."""
    classes: set[str] = set()
    for role in roles:
        classes.update(role.resources)
        for group in role.groups:
            classes.update(group.resources)
    return tuple(sorted(classes))


def devices_of(
    snapshot: Snapshot, request: EnsembleRequest, hosts: Ints, max_free: int
) -> Devices | None:
    """The devices that a request may use, or None if it uses only the hosts' root providers.

    `hosts` are [H] rows in the snapshot; free capacity counts up to `max_free`.
    """
    classes = classes_of(request.every_choice)
    grouped = any(role.groups or role.of_one_provider for role in request.every_choice)
    if not grouped and not _outside_hosts(snapshot, classes, hosts, sharing(snapshot)):
        return None
    trees = device_trees(snapshot, request, classes, hosts)
    capacity, free = _amounts(snapshot, request, trees, classes, max_free)
    columns = (snapshot.classes.get(name) for name in classes)
    return Devices(
        trees=trees,
        rules=DeviceRules(
            units=tuple(
                NO_UNITS
                if one is None
                else UnitColumns(one.position, one.min_unit, one.max_unit, one.step_size)
                for one in columns
            ),
            traits=snapshot.traits,
            aggregates=snapshot.aggregates,
            words=frozenset(_named_strings(request.every_choice)),
        ),
        classes=classes,
        capacity=capacity,
        free=free,
    )


def _outside_hosts(snapshot: Snapshot, classes: Sequence[str], hosts: Ints, pairs: Sharing) -> bool:
    """Whether any provider but the hosts, and what servers offer, has any of the classes.

    What lends to other hosts is outside these, also if it is a row.
    """
    outside = np.ones(len(snapshot.uuids), dtype=np.bool_)
    outside[hosts] = False
    outside[list(snapshot.offered_by)] = False
    outside[pairs.lender] = True
    found = (snapshot.classes.get(name) for name in classes)
    return any(bool(outside[one.rows].any()) for one in found if one is not None)


def _amounts(
    snapshot: Snapshot,
    request: EnsembleRequest,
    trees: DeviceTrees,
    classes: Sequence[str],
    max_free: int,
) -> tuple[Ints, Ints]:
    """`Devices.capacity` and `free` over the request's period; `free` is at most `max_free`."""
    # In memory a class is a row: all that reads them reads a class at a time.
    shape = len(classes), len(trees.uuids)
    capacity, free = (np.zeros(shape, dtype=np.int64) for _ in range(2))
    for k, (name, there) in enumerate(zip(classes, trees.inventories, strict=True)):
        if name in snapshot.classes:
            every, left = _capacity_and_free(snapshot, request, name, max_free)
            capacity[k][there.positions] = every[there.at]
            free[k][there.positions] = left[there.at]
    return capacity.T, free.T


def _capacity_and_free(
    snapshot: Snapshot, request: EnsembleRequest, name: str, max_free: int
) -> tuple[Ints, Ints]:
    """What each provider of a class has in all, and free over the request's period."""
    peak = snapshot.peak_over(name, request.period, without=request.released)
    free = np.minimum(snapshot.classes[name].capacity - peak, max_free)
    return free + peak, free


def columns_of(
    snapshot: Snapshot, request: EnsembleRequest, rows: Rows, classes: Sequence[str], max_free: int
) -> dict[str, Ints]:
    """The `COLUMNS` of some providers over the request's period: provider x class, amounts.

    `free` is at most `max_free`; a class that a provider does not have is all 0, in steps of 1.
    """
    found = {name: np.zeros((len(classes), len(rows)), dtype=np.int64).T for name in COLUMNS}
    found["step_size"] += 1
    for k, name in enumerate(classes):
        columns = snapshot.classes.get(name)
        if columns is None:
            continue
        at = columns.position[rows]
        there = at >= 0
        has = slice(None) if there.all() else there
        at = at[has]
        every, left = _capacity_and_free(snapshot, request, name, max_free)
        found["capacity"][has, k] = every[at]
        found["free"][has, k] = left[at]
        for rule in UNITS:
            found[rule][has, k] = getattr(columns, rule)[at]
    return found


def _named_strings(roles: Iterable[Role]) -> Iterable[str]:
    """Every trait and aggregate that a role or group names."""
    for role in roles:
        for sets in (
            (*role.required, role.forbidden, *role.member_of),
            *((*one.required, one.forbidden, *one.member_of) for one in role.groups),
        ):
            for any_of in sets:
                yield from any_of
